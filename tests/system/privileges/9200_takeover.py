# SPDX-License-Identifier: Apache-2.0
# timeout: 1200
# takes: 50
"""A program in the supervisor's place sends each message with each field invalid. Values for mount-helper and file-helper are in 1130, more
values for exec-helper in 1050. After each refusal a normal request works."""
import errno
import fcntl
import json
import os
import random
import signal
import socket
import struct
import time
import uuid

from lib import agent, case, csi, exe, helper, hostile, ipc, runs

TO_EXEC = [m for m in ipc.TABLE if m.receiver == "EXEC_HELPER"]
TO_CHECK = [m for m in ipc.TABLE if m.receiver == "CHECK_HELPER"]
TO_FETCHER = [m for m in ipc.TABLE if m.receiver == "FETCHER"]
TO_PARSER = [m for m in ipc.TABLE if m.receiver == "JOB_PARSER"]
TO_LISTENER = [m for m in ipc.TABLE if m.receiver == "LISTENER"]
TO_RENDERER = [m for m in ipc.TABLE if m.receiver == "TEMPLATE_RENDERER"]
TO_IMAGES = [m for m in ipc.TABLE if m.receiver == "IMAGE_FETCHER"]
TO_UNPACKER = [m for m in ipc.TABLE if m.receiver == "IMAGE_UNPACKER"]
TO_NETWORK = [m for m in ipc.TABLE if m.receiver == "NETWORK_HELPER"]
TO_CSI = [m for m in ipc.TABLE if m.receiver == "CSI_HELPER"]
SLOW = b'job "j" {\n meta {\n  x = bcrypt("a", 15)\n }\n}'  # takes seconds
ALL_CAPS = range(41)
DEFAULT_CAPS = 0x20000420
RAW = "raw_exec cannot mount"


def cut_off(h, no, body, n_fds, zero, what):
    """Checks that the helper ends by itself, without an answer."""
    fds = [helper.memfd_sealed(b"x") for _ in range(n_fds)]
    h.ipc.send_raw(no, body, fds, zero=zero)
    for fd in fds:
        os.close(fd)
    try:
        while True:
            packet = h.ipc.recv()
            if packet is None:
                break
            if packet.name != "HB_BEAT_REQ":
                raise AssertionError("%s: answered by %s" % (what, packet.name))
    except ipc.Error as e:
        raise AssertionError("%s: %s" % (what, e)) from None
    case.equal(h.wait(), 1, what + ": exit code")


def cut_off_new(name, places, no, body, n_fds, zero, what):
    """cut_off() on a helper of its own."""
    h = helper.Helper(name, places)
    try:
        cut_off(h, no, body, n_fds, zero, what)
    finally:
        h.close()


def cut_off_all(name, places, messages, stranger=None):
    """Sends each broken packet of the messages, and those of peers that are not the helper's own. Returns their number."""
    packets = [(m.no, body, n_fds, zero, "%s: %s" % (m.name, what)) for m in messages for what, body, n_fds, zero in hostile.packets(m)]
    if stranger:
        packets += [(no, b"", 0, 0, what) for what, no in hostile.strangers(stranger)]
    for packet in packets:
        cut_off_new(name, places, *packet)
    return len(packets)


def normal(r):
    case.equal(r.output("echo", ["well"]), "well\n")


# --- exec-helper ---

def test_exec_helper_ends_when_the_protocol_is_broken():
    n = 0
    with runs.Runs() as r:
        for m in TO_EXEC:
            for what, body, n_fds, zero in hostile.packets(m):
                cut_off(r.helper, m.no, body, n_fds, zero, "%s: %s" % (m.name, what))
                r.restart()
                n += 1
                if n % 20 == 0:
                    normal(r)
        for what, no in hostile.strangers("EXEC_HELPER"):
            cut_off(r.helper, no, b"", 0, 0, what)
            r.restart()
            n += 1
        normal(r)
        print("    %d packets" % n)


def test_exec_helper_refuses_invalid_values():
    """Each field of a start request from the table: too long, a path, an invalid name, a number beyond its range. Values that do not fit
    the record are in the previous test."""
    bad_text = ["..", ".", "/", "a/b", "../../etc", "/etc/passwd", "x" * 129, "x" * 135, "a\nb", "\x7f", "-x", "\u00e9", "%s%n", " "]
    volume = {"kind": "EXEC_MOUNT_HOST_VOLUME", "name": "v"}
    place = {"kind": "PLUGIN_NODE", "plugin": "p", "volume": "v", "usage": "u", "alloc": b"0123456789abcdef"}
    csi_mount = {"kind": "EXEC_MOUNT_CSI_VOLUME", "place": place, "proof": {"mnt_id": 1}}
    wrong = [("cannot be a task's name", {"task": text}) for text in bad_text if text != "-x"]
    wrong += [(("is not a user name", "does not exist"), {"user": text}) for text in bad_text]
    wrong += [("cannot be a plugin's name", {"csi_plugin": kind, "plugin": text}) for kind in (1, 2, 3) for text in bad_text + [""]
              if text != "-x"]
    wrong += [("the run's id is missing", {"run": bytes(16)}), ("the alloc's id is missing", {"alloc": bytes(16)})]
    wrong += [("kill signal", {"kill_signal": value}) for value in (0, 65, 1 << 20, (1 << 32) - 1)]
    wrong += [("oom_score_adj", {"oom_score_adj": value}) for value in (1001, 1 << 31, (1 << 32) - 1)]
    wrong += [("logs need", {"log_max_files": value}) for value in (0, 1001, (1 << 32) - 1)] + [("logs need", {"log_max_bytes": 0})]
    wrong += [(("is not configured", RAW), {"mounts": [dict(volume, name=text)]}) for text in bad_text + ["", "other"]]
    wrong += [(("a mount is of no kind", RAW), {"mounts": [dict(volume, kind=0)]})]
    bad_places = [{field: text} for field in ("plugin", "volume", "usage") for text in bad_text + [""] if text != "-x"]
    bad_places += [{"alloc": bytes(16)}, {"kind": 0}]
    wrong += [(("volume's place", RAW), {"mounts": [dict(csi_mount, place=dict(place, **bad))]}) for bad in bad_places]
    wrong += [(("volume's place", RAW), {"mounts": [{"kind": "EXEC_MOUNT_CSI_VOLUME"}]})]
    wrong += [(("only for csi_plugin tasks", RAW), {"mounts": [{"kind": "EXEC_MOUNT_PLUGIN_%s" % kind}]}) for kind in ("SOCKET", "ROOT")]
    directory = case.directory()
    with runs.Runs('client { host_volume "v" { path = "%s" } }' % directory) as r:
        alloc = r.make_alloc()
        for texts, fields in wrong:
            for driver in ("RAW_EXEC", "EXEC"):
                _, req = r.request(driver=driver, alloc=alloc)
                req.update(fields)
                if "mounts" in req:
                    req["mounts"] = [{"dest": "/m", **mount} for mount in req["mounts"]]
                e = case.raises(ipc.RequestError, r.send, req, exe.spec("true"))
                texts = (texts,) if isinstance(texts, str) else texts
                assert any(text in e.text for text in texts), "%s by %s: %s" % (fields, driver, e)
        case.equal(r.list(), [], "runs")
        normal(r)
        print("    %d requests" % (2 * len(wrong)))


def test_exec_helper_grants_no_capability_beyond_the_policy():
    with runs.Runs("", dev=False) as r:  # with -dev the policy grants SYS_ADMIN
        alloc = r.make_alloc()
        for cap in list(ALL_CAPS) + [41, 62, 63]:
            bit = 1 << cap
            if DEFAULT_CAPS & bit:
                continue
            _, req = r.request(driver="EXEC", alloc=alloc, cap_add=bit)
            e = case.raises(ipc.RequestError, r.send, req, exe.spec("true"))
            case.equal(e.code in (-errno.EPERM, -errno.EINVAL), True, "capability %d: %s" % (cap, e))
        case.equal(r.list(), [], "runs")
        out = r.output("grep", ["CapBnd", "/proc/self/status"], driver="EXEC", cap_drop=(1 << 64) - 1)
        case.equal(int(out.split()[1], 16), 0, "capabilities after all are dropped")


def test_exec_helper_refuses_runs_that_are_not_its_own():
    with runs.Runs() as r:
        mine = r.start("sleep", ["1000"])
        pid = r.wait_state(mine, exe.EXE_RUNNING)["task_pid"]
        # A second start with the same run id, but another alloc, task and user, starts nothing.
        other, req = r.request(task="other", user="daemon")
        case.equal(r.send(dict(req, run=mine.id), exe.spec("sleep", ["1000"]))["existed"], True)
        case.equal(r.record(mine)["task_pid"], pid)
        # Unknown ids are not runs: files with such names elsewhere are not touched.
        victim = r.places.cgroup_dirs()["v2"] + "/exec"
        for run in (b"../exec/../exec/", b"/sys/fs/cgroup/x", b"exec" + b"\0" * 12, b"\xff" * 16):
            case.equal(r.ipc.call("EXEC_RUN_REAP_REQ", {"run": run})["killed"], False, repr(run))
        case.equal(os.path.isdir(victim), True, victim)
        case.equal(os.path.exists("/proc/%d" % pid), True, "whether the task still runs")
        r.reap(mine)
        normal(r)


def test_links_at_every_path_of_a_start_are_not_followed():
    victim = case.directory()
    os.chmod(victim, 0o777)
    with open(victim + "/who", "w", encoding="ascii") as f:
        f.write("victim\n")
    before = sorted((n, os.lstat(victim + "/" + n).st_mtime_ns, os.lstat(victim + "/" + n).st_uid) for n in os.listdir(victim))
    owner = os.stat(victim)
    places = ("alloc/%s", "alloc/%s/alloc", "alloc/%s/alloc/logs", "alloc/%s/web", "alloc/%s/web/local", "alloc/%s/web/tmp",
              "alloc/%s/web/private", "alloc/%s/web/secrets", "logs/%s")
    with runs.Runs() as r:
        for place in places:
            for target in (victim, "../../../../../../../.." + victim, "/proc/1/root"):
                for driver in ("RAW_EXEC", "EXEC"):
                    alloc = r.make_alloc()
                    at = "%s/%s" % (r.places.data, place % uuid.UUID(bytes=alloc))
                    os.system("rm -rf '%s'" % at)
                    os.symlink(target, at)
                    run, req = r.request(driver=driver, alloc=alloc)
                    try:
                        r.send(req, exe.spec("sh", ["-c", "echo ran; echo x > secrets/x; echo x > /secrets/x"], secrets={"token": b"sesame"}))
                    except ipc.RequestError as e:
                        case.contains((-errno.ELOOP, -errno.ENOTDIR), e.code, place)
                        continue
                    record = r.ended(run)
                    if record["state"] == exe.EXE_FAILED:
                        case.contains((errno.ELOOP, errno.ENOTDIR), record["error"], "%s by %s" % (place, driver))
                    elif place != "alloc/%s/web/secrets":  # exec does not open this path, raw_exec replaces it by a directory
                        case.equal(driver, "RAW_EXEC", place)
                        case.contains(("alloc/%s/alloc", "alloc/%s/alloc/logs"), place)
                    r.reap(run)
        after = sorted((n, os.lstat(victim + "/" + n).st_mtime_ns, os.lstat(victim + "/" + n).st_uid) for n in os.listdir(victim))
        case.equal(after, before, "contents of the victim")
        now = os.stat(victim)
        case.equal((now.st_uid, now.st_mode), (owner.st_uid, owner.st_mode), "the victim")
        normal(r)


def test_invalid_memfds_of_task_specs_are_refused():
    with runs.Runs() as r:
        unsealed = os.memfd_create("x", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(unsealed, exe.spec("true"))
        some = os.memfd_create("x", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        os.write(some, exe.spec("true"))
        fcntl.fcntl(some, helper.F_ADD_SEALS, 0x2 | 0x4)  # not sealed against writing
        ours, theirs = socket.socketpair()
        for what, fd in (("unsealed", unsealed), ("half sealed", some), ("a socket", ours.fileno()), ("empty", helper.memfd_sealed(b"")),
                         ("too large", helper.memfd_sealed(exe.spec("true") + exe.spec_entry(2, "x" * (32 << 20)))),
                         ("/dev/zero", os.open("/dev/zero", os.O_RDWR)), ("/proc/self/mem", os.open("/proc/self/mem", os.O_RDWR))):
            run, req = r.request()
            r.ipc.call("EXEC_TASK_START_REQ", runs.start_record(req), [fd])
            record = r.ended(run)
            case.equal((record["state"], record["step"]), (exe.EXE_FAILED, exe.EXE_STEP_SPEC), what)
            r.reap(run)
        ours.close()
        theirs.close()
        normal(r)


# --- mount-helper and file-helper: cases that are not in 1130 ---

def test_mount_helper_and_file_helper_end_when_the_protocol_is_broken():
    for name, receiver in (("mount-helper", "MOUNT_HELPER"), ("file-helper", "FILE_HELPER")):
        with helper.Places() as places:
            n = cut_off_all(name, places, [m for m in ipc.TABLE if m.receiver == receiver])
            print("    %s: %d packets" % (name, n))
            with helper.Helper(name, places) as h:
                alloc = {"alloc": os.urandom(16)}
                if name == "file-helper":
                    h.ipc.call("FILE_ALLOC_DIR_MAKE_REQ", {**alloc, "tasks": ["web"]})
                    h.ipc.call("FILE_ALLOC_DIR_REMOVE_REQ", alloc)
                else:
                    h.ipc.call("MNT_ALLOC_RELEASE_REQ", alloc)


# --- check-helper ---

def ask_https(h, server, **fields):
    address, port = server.getsockname()
    return h.ipc.call("CHK_HTTPS_ASK_REQ", {"address": socket.inet_aton(address), "port": port, "server_name": "x", "request": b"GET",
                                            "timeout_ms": 60000, **fields}).fields


def test_check_helper_ends_when_the_protocol_is_broken_and_refuses_invalid_values():
    with helper.Places() as places, socket.create_server(("127.0.0.1", 0)) as server:
        n = cut_off_all("check-helper", places, TO_CHECK, "CHECK_HELPER")
        print("    %d packets" % n)
        with helper.Helper("check-helper", places) as h:
            for wrong in ({"address": b""}, {"address": b"x" * 5}, {"address": b"x" * 17}, {"port": 0}, {"port": 65536}, {"request": b""},
                          {"timeout_ms": 0}, {"server_name": ""}, {"server_name": "x" * 256}, {"server_name": "x" * 50000}):
                e = case.raises(ipc.RequestError, ask_https, h, server, **wrong)
                case.equal(e.code, -errno.EINVAL, str(wrong)[:60])
            h.ipc.send("CHK_HTTPS_CANCEL_EV", {"ask": 77})
            # It still works: a request with an expired deadline gets its answer.
            case.equal(ask_https(h, server, timeout_ms=1, skip_verify=True)["number"], errno.ETIMEDOUT)


# --- fetcher ---

def test_fetcher_ends_when_the_protocol_is_broken():
    """1410 has the requests that are well-formed, but not valid."""
    with helper.Places() as places:
        n = cut_off_all("fetcher", places, TO_FETCHER, "FETCHER")
        print("    %d packets" % n)
        with helper.Helper("fetcher", places) as h:
            e = case.raises(ipc.RequestError, h.ipc.call, "FET_ARTIFACT_PROGRESS_REQ", {"staging": bytes(range(16))})
            case.equal(e.code, -errno.ENOENT, "progress of nothing")


# --- job-parser ---

def parse(h, text, job_bytes=None, **fields):
    """Returns the reply and the contents of its memfd."""
    fd = helper.memfd_sealed(text)
    try:
        packet = h.ipc.call("PAR_JOB_PARSE_REQ", {"job_bytes": len(text) if job_bytes is None else job_bytes, **fields}, fds=[fd])
    finally:
        os.close(fd)
    try:
        return packet.fields, os.pread(packet.fds[0], 1 << 20, 0)
    finally:
        os.close(packet.fds[0])


def evaluate(h, config, values, **fields):
    """Returns whether the configuration was evaluated, and the contents of the reply's memfd."""
    fd = helper.memfd_sealed(config + values)
    try:
        packet = h.ipc.call("PAR_CONFIG_EVALUATE_REQ", {"config_bytes": len(config), "values_bytes": len(values), **fields}, fds=[fd])
    finally:
        os.close(fd)
    try:
        return packet.fields["evaluated"], os.pread(packet.fds[0], 1 << 20, 0)
    finally:
        os.close(packet.fds[0])


def test_job_parser_ends_when_the_protocol_is_broken_and_refuses_invalid_values():
    with helper.Places() as places:
        n = cut_off_all("job-parser", places, TO_PARSER, "JOB_PARSER")
        print("    %d packets" % n)
        with helper.Helper("job-parser", places) as h:
            for wrong in ({"job_bytes": 0}, {"job_bytes": 9}, {"job_bytes": 11}, {"job_bytes": 9, "variables_bytes": 2},
                          {"job_bytes": (1 << 32) - 1, "variables_bytes": 11}):
                e = case.raises(ipc.RequestError, parse, h, b"job \"j\" {}", **wrong)
                case.equal(e.code, -errno.EINVAL, str(wrong))
            e = case.raises(ipc.RequestError, parse, h, b"#" * ((2 << 20) + 1))
            case.equal(e.code, -errno.EFBIG, "a text of more than 2 MiB")
            fields, text = parse(h, b"job \"j\" {\n}")
            case.equal((fields["parsed"], json.loads(text)["ID"]), (True, "j"), "a job after the refusals")
            for wrong in ({"config_bytes": 0}, {"values_bytes": 1}, {"config_bytes": 3}, {"config_bytes": 4, "values_bytes": 0}):
                e = case.raises(ipc.RequestError, evaluate, h, b"{}", b"{}", **wrong)
                case.equal(e.code, -errno.EINVAL, str(wrong))
            for config, values in ((b"[]", b"{}"), (b"{}", b"[]"), (b"{\"a\":", b"{}"), (b"{}", b"\xff\xfe"), (b"{\"a\":1,\"a\":2}", b"{}")):
                e = case.raises(ipc.RequestError, evaluate, h, config, values)
                case.equal(e.code, -errno.EINVAL, config)
            # Values that are no texts, and members of other names, do not count.
            evaluated, text = evaluate(h, b'{"a": "${env.Y}${X}"}', b'{"env": {"X": 5, "Y": "y"}, "node": 7, "more": []}')
            case.equal((evaluated, text), (False, b'config.a: "${env.Y}${X}": unknown variable "X"; write $${ for a literal ${'))
            case.equal(evaluate(h, b'{"a": "${1 + 1}"}', b"{}"), (True, b'{"a":"2"}'), "a configuration after the refusals")
            fields, text = parse(h, bytes(range(256)))
            case.equal(fields["parsed"], False, "bytes that are no text")
            case.contains(text.decode(), "input.hcl:2:118: expected UTF-8 text, found an invalid byte")


def test_a_worker_of_job_parser_that_hangs_or_dies_delays_no_other():
    with helper.Places() as places, helper.Helper("job-parser", places) as h:
        for text in (SLOW, SLOW):
            fd = helper.memfd_sealed(text)
            h.ipc.send("PAR_JOB_PARSE_REQ", {"job_bytes": len(text)}, fds=[fd])
            os.close(fd)
        workers = case.until(lambda: len(agent.children(h.pid)) == 2 and agent.children(h.pid), 10, "two workers")
        os.kill(workers[1], signal.SIGSTOP)
        fields, _ = parse(h, b"job \"j\" {\n}")
        case.equal(fields["parsed"], True, "another job file")
        os.kill(workers[0], signal.SIGKILL)
        packet = h.ipc.recv()
        case.equal((packet.name, packet.fields["code"]), ("IPC_ERROR_REP", -errno.EIO), "the killed one")
        packet = h.ipc.recv()
        case.equal((packet.name, packet.fields["code"]), ("IPC_ERROR_REP", -errno.ETIMEDOUT), "the stopped one")


# --- template-renderer ---

def render(h, template, values=None, **fields):
    """Returns whether the template was rendered, the head of the answer, and the output."""
    text = json.dumps({"env": {}, "known": {}, **(values or {})}).encode() if not isinstance(values, bytes) else values
    fd = helper.memfd_sealed(text + template)
    try:
        packet = h.ipc.call("REN_RENDER_REQ", {"values_bytes": len(text), "template_bytes": len(template), **fields}, fds=[fd])
    finally:
        os.close(fd)
    try:
        head, output = os.pread(packet.fds[0], 32 << 20, 0).split(b"\n", 1)
        return packet.fields["rendered"], json.loads(head), output
    finally:
        os.close(packet.fds[0])


def test_template_renderer_ends_when_the_protocol_is_broken_and_refuses_invalid_values():
    with helper.Places() as places:
        n = cut_off_all("template-renderer", places, TO_RENDERER, "TEMPLATE_RENDERER")
        print("    %d packets" % n)
        with helper.Helper("template-renderer", places) as h:
            for wrong in ({"values_bytes": 0}, {"values_bytes": 5}, {"template_bytes": 2}, {"template_bytes": (1 << 32) - 1}):
                e = case.raises(ipc.RequestError, render, h, b"x", **wrong)
                case.equal(e.code, -errno.EINVAL, str(wrong))
            for values in (b"[]", b"{}", b"{\"env\":[],\"known\":{}}", b"{\"env\":", b"\xff\xfe", b"{\"env\":{},\"env\":{},\"known\":{}}"):
                e = case.raises(ipc.RequestError, render, h, b"x", values)
                case.equal(e.code, -errno.EINVAL, values)
            e = case.raises(ipc.RequestError, render, h, b"x" * (4 << 20))
            case.equal(e.code, -errno.EFBIG, "a text of more than 4 MiB")
            # Values of other types than they must have count as nothing.
            known = {"nomad.var.block(a@default.global)": {"items": {"x": 5}, "path": 7}, "nomad.service(s)": [{"port": "x", "tags": [1, {}]}, 3],
                     "nomad.var.list(@default.global)": "x", "file(f)": ["x"]}
            rendered, head, output = render(h, b'{{ with nomadVar "a" }}{{ .x }}{{ end }}|{{ range nomadService "s" }}{{ .Port }}{{ .Tags }}{{ end }}|'
                                               b'{{ nomadVarList }}', {"known": known})
            case.equal((rendered, output), (True, b"|0[ ]0[]|[]"), "values of other types")
            case.equal([n["missing"] for n in head["needs"]], [False] * 3, "needs")
            case.equal(render(h, b""), (True, {"needs": []}, b""), "a template without text")
            case.equal(render(h, bytes(range(256)))[0], True, "bytes that are no text")
            rendered, head, output = render(h, b"{{ \xff }}")
            case.equal((rendered, head["needs"], output), (False, [], b""), "bytes that are no text, in an action")
            case.contains(head["problem"], "unrecognized character in action")


def test_template_renderer_renders_what_is_known_and_names_what_is_missing():
    with helper.Places() as places, helper.Helper("template-renderer", places) as h:
        template = b'[[ with nomadVar "nomad/jobs/web" ]]user [[ .user ]][[ end ]] [[ env "A" ]] [[ file "local/f" ]]'
        values = {"namespace": "default", "left_delimiter": "[[", "right_delimiter": "]]", "env": {"A": "b"}}
        rendered, head, output = render(h, template, values)
        case.equal((rendered, output), (False, b""), "an incomplete template has no output")
        case.equal([(n["need"], n["missing"], n["name"]) for n in head["needs"]],
                   [("nomad.var.block(nomad/jobs/web@default.global)", True, "nomad/jobs/web"), ("file(local/f)", True, "local/f")], "needs")
        values["known"] = {"nomad.var.block(nomad/jobs/web@default.global)": {"items": {"user": "me"}}, "file(local/f)": "text"}
        case.equal(render(h, template, values)[::2], (True, b"user me b text"), "the output")
        values["known"]["file(local/f)"] = {"problem": "it is outside of the task's directory"}
        rendered, head, output = render(h, template, values)
        case.equal((rendered, output), (False, b""), "a refused file")
        case.contains(head["problem"], "local/f: it is outside of the task's directory")


def test_a_template_that_needs_too_much_is_stopped_and_delays_no_other():
    with helper.Places() as places, helper.Helper("template-renderer", places) as h:
        for text, sentence in ((b"{{ range loop 1000000000 }}{{ end }}", "the template needs too many steps"),
                               (b"{{ range loop 1000000000 }}xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx{{ end }}", "the output is larger than 16777216 bytes"),
                               (b'{{ define "a" }}{{ template "a" }}{{ end }}{{ template "a" }}', "the template needs too many levels"),
                               (b'{{ $s := "x" }}{{ range loop 100 }}{{ $s = print $s $s }}{{ end }}', "the template needs too much memory"),
                               (b"{{ if true }}" * 100000, "the template needs too many levels")):
            rendered, head, output = render(h, text)
            case.equal((rendered, output), (False, b""), text[:60])
            case.contains(head["problem"], sentence)
        # Each match is sure only at the end of the text.
        values, slow = b'{"env":{},"known":{}}', b'{{ sprig_repeat 10000000 "a" | regexReplaceAll "a.*b|a" "x" }}'
        fd = helper.memfd_sealed(values + slow)
        for _ in range(2):
            h.ipc.send("REN_RENDER_REQ", {"values_bytes": len(values), "template_bytes": len(slow)}, fds=[fd])
        os.close(fd)
        workers = case.until(lambda: len(agent.children(h.pid)) == 2 and agent.children(h.pid), 10, "two workers")
        os.kill(workers[1], signal.SIGSTOP)
        os.kill(workers[0], signal.SIGKILL)
        packet = h.ipc.recv()
        case.equal((packet.name, packet.fields["code"]), ("IPC_ERROR_REP", -errno.EIO), "the killed one")
        case.equal(render(h, b"other")[::2], (True, b"other"), "another template")
        # If it was stopped before it asked to die with its parent, it would stay.
        os.kill(workers[1], signal.SIGKILL)
        packet = h.ipc.recv()
        case.equal((packet.name, packet.fields["code"]), ("IPC_ERROR_REP", -errno.EIO), "the stopped one")


# --- listener ---

def test_listener_ends_when_the_protocol_is_broken():
    with helper.Places() as places:
        n = cut_off_all("listener", places, TO_LISTENER, "LISTENER")
        print("    %d packets" % n)


# --- image-fetcher, image-unpacker ---

def test_image_fetcher_ends_when_the_protocol_is_broken():
    with helper.Places() as places:
        n = cut_off_all("image-fetcher", places, TO_IMAGES, "IMAGE_FETCHER")
        print("    %d packets" % n)


def test_image_unpacker_ends_when_the_protocol_is_broken():
    with helper.Places() as places:
        n = cut_off_all("image-unpacker", places, TO_UNPACKER, "IMAGE_UNPACKER")
        print("    %d packets" % n)
        with helper.Helper("image-unpacker", places) as h:
            for blob, layer in (("", "0" * 64), ("../../etc/shadow", "0" * 64), ("0" * 64, "../x"), ("0" * 63 + "G", "0" * 64), ("0" * 64, "0" * 63)):
                request = {"max_bytes": 1, "max_files": 1, "timeout_ms": 1000, "blob": blob, "layer": layer}
                e = case.raises(ipc.RequestError, h.ipc.answer, h.ipc.send("UNP_LAYER_UNPACK_REQ", request))
                case.contains(str(e), "the request for a layer is not valid")
            case.contains(str(case.raises(ipc.RequestError, h.ipc.answer, h.ipc.send("UNP_LAYER_REMOVE_REQ", {"layer": "../blobs"}))), "64 hexadecimal digits")


# --- network-helper ---

def test_network_helper_ends_when_the_protocol_is_broken():
    with helper.Places() as places:
        n = cut_off_all("network-helper", places, TO_NETWORK, "NETWORK_HELPER")
        print("    %d packets" % n)
        with helper.Helper("network-helper", places) as h:
            alloc, port = uuid.uuid4().bytes, {"host_ip": "", "host_port": 80, "inside_port": 80}
            for change in ({"alloc": bytes(16)}, {"kind": "NET_KIND_UNKNOWN"}, {"kind": "NET_KIND_BRIDGE", "name": "x"},
                           {"kind": "NET_KIND_CNI", "name": "../x"}, {"kind": "NET_KIND_CNI", "name": ""}, {"ports": [{**port, "host_port": 0}]},
                           {"ports": [{**port, "inside_port": 65536}]}, {"ports": [{**port, "host_ip": "127.0.0.1 -j ACCEPT"}]}):
                request = {"alloc": alloc, "name": "", "args": "", "kind": "NET_KIND_LOOPBACK", "ports": [], **change}
                e = case.raises(ipc.RequestError, h.ipc.answer, h.ipc.send("NET_NETWORK_MAKE_REQ", request))
                case.equal("is not valid" in str(e) or "names no alloc" in str(e), True, str(e))
            case.equal(os.listdir(places.runtime + "/netns"), [])


# --- csi-helper ---

def test_csi_helper_ends_when_the_protocol_is_broken():
    with helper.Places() as places, csi.bad() as plugin:
        n = cut_off_all("csi-helper", places, TO_CSI, "CSI_HELPER")
        # The messages inside each of the calls.
        call = ipc.BY_NAME["CSI_CALL_REQ"]
        inside = [(what, body) for fields in hostile.alternatives(call.message) for what, body in hostile.bodies(call.message, fields)
                  if "." in what]
        for what, body in inside:
            cut_off_new("csi-helper", places, call.no, body, 0, 0, "CSI_CALL_REQ: " + what)
        print("    %d packets" % (n + len(inside)))
        with helper.Helper("csi-helper", places) as h:
            case.equal(csi.open_channel(h, plugin, 1), True, "ready")


def test_csi_helper_accepts_only_connected_unix_sockets():
    with helper.Places() as places, csi.bad() as plugin, helper.Helper("csi-helper", places) as h:
        tcp = socket.socket()
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(case.directory() + "/s")
        listener.listen()
        packets = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        pipe = os.pipe()
        files = [("a file", os.open("/etc/passwd", os.O_RDONLY)), ("a directory", os.open("/etc", os.O_RDONLY)), ("a pipe", pipe[1]),
                 ("tcp", tcp.fileno()), ("a listener", listener.fileno()), ("datagrams", packets[0].fileno()),
                 ("a memfd", helper.memfd_sealed(b"x")), ("O_PATH", os.open(plugin.socket, os.O_PATH))]
        for what, fd in files:
            serial = h.ipc.send("CSI_PLUGIN_OPEN_REQ", {"channel": 7, "probe_timeout_ms": 300}, [fd])
            e = case.raises(ipc.RequestError, h.ipc.answer, serial)
            print("    %-12s %s" % (what, e))
        case.equal(csi.open_channel(h, plugin, 1), True, "ready")


# --- heartbeat ---

class Heartbeat(helper.Helper):
    def __init__(self, places):
        super().__init__("heartbeat", places, hello=False)

    def question(self):
        """Returns the cycle number of its next beat."""
        packet = self.ipc.recv()
        case.equal(packet.name, "HB_BEAT_REQ")
        return packet["cycle"]

    def tell(self, cycle):
        self.ipc.send("HB_BEAT_REP", {"cycle": cycle}, serial=1)


def last_ok(places):
    with open(places.runtime + "/lease", "rb") as f:
        return struct.unpack("<Q40sQQ", f.read(64))[3]


def test_heartbeat_renews_the_lease_only_for_a_timely_answer():
    with helper.Places() as places:
        with Heartbeat(places) as h:
            cycle = h.question()
            for wrong in (0, cycle + 1, cycle + 2, (1 << 64) - 1):
                h.tell(wrong)
            second = h.question()
            case.equal((second, last_ok(places)), (cycle + 1, 0), "cycle and lease after unexpected answers")
            h.tell(cycle)
            third = h.question()
            case.equal(last_ok(places), 0, "lease after a late answer")
            while not last_ok(places):  # on a busy machine an answer may be too late
                h.tell(third)
                told, third = third, h.question()
            first, third = last_ok(places), told
            assert first <= time.clock_gettime_ns(time.CLOCK_BOOTTIME)
            for _ in range(50):
                h.tell(third)
            h.question()
            case.equal(last_ok(places), first, "lease after a repeated answer")
            case.equal(os.stat(places.runtime + "/lease").st_size, 4096, "size of the page")


def test_heartbeat_ends_when_the_protocol_is_broken():
    with helper.Places() as places:
        for m in [m for m in ipc.TABLE if m.receiver == "HEARTBEAT"]:
            for what, body, n_fds, zero in hostile.packets(m):
                h = Heartbeat(places)
                try:
                    cut_off(h, m.no, body, n_fds, zero, "%s: %s" % (m.name, what))
                finally:
                    h.close()
        for what, no in hostile.strangers("HEARTBEAT"):
            h = Heartbeat(places)
            try:
                cut_off(h, no, b"", 0, 0, what)
            finally:
                h.close()
        case.equal(last_ok(places), 0, "lease")


# --- executors ---

def follow(r, run):
    """Checks with a new connection that the run still works."""
    c = r.connect(run)
    case.equal(c.hello["state"], exe.EXE_RUNNING)
    return c


def test_an_executor_survives_hostile_bytes():
    rng = random.Random(20)
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"], lease_ms=3600000)
        r.wait_state(run, exe.EXE_RUNNING)
        bad = []
        for kind in (0, 1, 2, 3, 4, 5, 6, 7, 255, 65535):
            for size in (0, 1, 7, 8, 9, 15, 16, 23, 24, 31, 255, 256, 257, 4096, 60000):
                body = bytes(rng.randrange(256) for _ in range(min(size, 64))).ljust(size, b"\xa5")
                if size >= 8:
                    bad.append(struct.pack("<HHI", 0, kind, size) + body[8:])  # version 0
                    bad.append(struct.pack("<HHI", 1, kind, size + 1) + body[8:])  # a wrong size
                    bad.append(struct.pack("<HHI", 1, kind, 0xFFFFFFFF) + body[8:])
                else:
                    bad.append(body)
        for signo in (0, 65, 0x7FFFFFFF, 0xFFFFFFFF):
            bad.append(exe.HEAD.pack(1, exe.EXE_SIGNAL, 16) + struct.pack("<II", signo, 0))
            if signo:
                bad.append(exe.HEAD.pack(1, exe.EXE_STOP, 24) + struct.pack("<IIQ", signo, 0, 1000))
        bad += [bytes(rng.randrange(256) for _ in range(rng.randrange(1, 256))) for _ in range(300)]
        for data in bad:
            if not data:
                continue
            c = r.connect(run)
            try:
                c.send_bytes(data)
                case.until(lambda: c.recv() is None, 5, "end of the connection after %r" % data[:32])
            except (BrokenPipeError, ConnectionResetError):
                pass
            finally:
                c.close()
        with follow(r, run) as c:
            case.equal(c.hello["lease_ms"], 3600000)
        print("    %d messages" % len(bad))
        r.reap(run)


def test_an_executor_accepts_only_lease_pages_of_root():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"], lease_ms=3600000)
        r.wait_state(run, exe.EXE_RUNNING)
        page = os.stat(r.places.runtime + "/lease")
        own = case.directory() + "/page"
        with open(own, "wb") as f:
            f.write(b"\0" * 4096)
        os.chown(own, r.places.uid["drover"], r.places.uid["drover"])
        pipe = os.pipe()
        for what, fd in (("a page of the supervisor's", os.open(own, os.O_RDONLY)), ("a directory", os.open("/etc", os.O_RDONLY)),
                         ("a pipe", pipe[0]), ("a device", os.open("/dev/zero", os.O_RDONLY)), ("O_PATH", os.open("/", os.O_PATH))):
            with r.connect(run) as c:
                c.send(exe.EXE_LEASE, [fd], limit_ms=3600000)
                case.until(lambda: c.recv() is None, 5, "end of the connection after " + what)
            with follow(r, run) as c:
                case.equal((c.hello["lease_dev"], c.hello["lease_ino"]), (page.st_dev, page.st_ino), "its lease page after " + what)
        for limit in (1 << 63, (1 << 64) - 1, 1 << 40):  # an overflow of the limit would stop the task at once
            with r.connect(run) as c:
                c.send(exe.EXE_LEASE, limit_ms=limit)
                time.sleep(0.05)
            follow(r, run).close()
        r.reap(run)


def test_an_executor_limits_its_peers_and_descriptors():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"])
        r.wait_state(run, exe.EXE_RUNNING)
        held = [r.connect(run) for _ in range(4)]
        for _ in range(20):
            case.raises((exe.Error, ConnectionError), r.connect, run)
        for c in held[:3]:
            c.close()
        fds = [os.open("/etc", os.O_RDONLY) for _ in range(200)]
        for kind, values in ((exe.EXE_SIGNAL, {"signal": signal.SIGURG}), (exe.EXE_LEASE, {"limit_ms": 0})):
            c = case.until(lambda: connect_or_none(r, run), 5, "another connection to be accepted")
            try:
                c.send(kind, fds, **values)
            except OSError:
                pass
            c.close()
        pid = held[3].hello["executor_pid"]
        case.until(lambda: len(os.listdir("/proc/%d/fd" % pid)) < 40, 5, "its descriptors to be closed")
        for fd in fds:
            os.close(fd)
        held[3].send(exe.EXE_STOP, signal=15, timeout_ms=(1 << 64) - 1)
        case.equal(held[3].wait_exited()["exit_signal"], 15)
        held[3].close()
        r.reap(run)


def connect_or_none(r, run):
    try:
        return r.connect(run)
    except (exe.Error, ConnectionError):
        return None


def test_an_executor_refuses_other_users():
    with runs.Runs() as r:
        run = r.start("sleep", ["1000"])
        r.wait_state(run, exe.EXE_RUNNING)
        sock = "%s/x/%s.sock" % (r.places.runtime, run.name)
        case.equal(oct(os.stat(sock).st_mode & 0o7777), "0o660", "mode of the socket")
        os.chmod(r.places.runtime + "/x", 0o777)
        os.chmod(sock, 0o777)
        os.chmod(r.places.base, 0o755)
        stop = exe.HEAD.pack(1, exe.EXE_STOP, 24) + struct.pack("<IIQ", 9, 0, 0)
        for uid in [1, 65534, r.places.uid["csi"], r.places.uid["heartbeat"], r.places.uid["executor"]]:
            pid = os.fork()
            if pid == 0:
                os.setgroups([])
                os.setresgid(uid, uid, uid)
                os.setresuid(uid, uid, uid)
                s = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                try:
                    s.connect("/proc/self/fd/%d/%s.sock" % (os.open(r.places.runtime + "/x", os.O_PATH), run.name))
                    s.send(stop)
                    os._exit(1 if s.recv(300) else 0)
                except OSError:
                    os._exit(0)
            case.equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "whether uid %d got an answer" % uid)
        follow(r, run).close()
        r.reap(run)


case.run(globals())
