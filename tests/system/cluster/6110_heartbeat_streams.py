# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""heartbeat alone: requests and streams of servers, and TLS."""
import errno
import os
import threading

from lib import case, helper, nomad_server
from lib.hb_link import CallError, Link
import gopack
import yamux

PLACES = helper.Places()
GLOBAL = {"Region": "global", "AuthToken": ""}


def refused(h, *args, **kwargs):
    return case.raises(CallError, h.call, *args, **kwargs)


def in_background(fn, *args, **kwargs):
    """Runs a command of the servers that waits for an answer of this test, in a thread. .result, .error after join()."""
    class Run(threading.Thread):
        result = error = None

        def run(self):
            try:
                self.result = fn(*args, **kwargs)
            except nomad_server.Refusal as e:
                self.error = str(e)
    thread = Run(daemon=True)
    thread.start()
    return thread


def opened(h, servers, method, request):
    """Lets the servers open a stream. Returns its number at the servers."""
    return joined(h, in_background(servers.open_stream, h.id, method, request))


def joined(h, thread, seconds=20):
    h.wait(lambda: not thread.is_alive(), seconds, "the servers' command")
    if thread.error:
        raise AssertionError(thread.error)
    return thread.result


# --- requests of servers ---

def test_requests_of_servers():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        h.methods["ClientStats.Stats"] = lambda body: {"HostStats": {"Uptime": len(str(body))}}
        h.methods["Allocations.Signal"] = lambda body: 'Unknown allocation "%s"' % body["AllocID"]
        h.methods["FileSystem.List"] = lambda body: {"Files": [{"Name": "f%d" % i} for i in range(60000)]}
        for _ in range(3):
            run = in_background(servers.call_node, h.id, "ClientStats.Stats", {"NodeID": h.id})
            case.equal(joined(h, run)["HostStats"]["Uptime"] > 10, True, "statistics")
            run = in_background(servers.call_node, h.id, "Allocations.Signal", {"AllocID": "a" * 8, "Signal": "SIGHUP"})
            h.wait(lambda r=run: not r.is_alive(), 10, "the answer")
            case.contains(run.error, 'Unknown allocation "aaaaaaaa"')
        run = in_background(servers.call_node, h.id, "Nope.Nope", {})
        h.wait(lambda: not run.is_alive(), 10, "the answer")
        case.contains(run.error, "rpc: can't find method Nope.Nope")
        run = in_background(servers.call_node, h.id, "FileSystem.List", {"AllocID": "a"})
        case.equal(len(joined(h, run)["Files"]), 60000, "a large answer")


def test_many_requests_of_servers_at_once():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        h.methods["ClientStats.Stats"] = lambda body: {"HostStats": {"Uptime": body["MinQueryIndex"]}}
        runs = [in_background(servers.call_node, h.id, "ClientStats.Stats", {"MinQueryIndex": i}) for i in range(40)]
        for i, run in enumerate(runs):
            case.equal(joined(h, run)["HostStats"]["Uptime"], i, "answer")


def frames(text, n):
    return b"".join(gopack.pack({"Error": None, "Payload": text}) for _ in range(n))


def test_a_stream_of_frames():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        h.methods["FileSystem.Logs"] = lambda s: None
        stream = opened(h, servers, "FileSystem.Logs", {"AllocID": "a", "Task": "t"})
        run = in_background(servers.read_stream, stream, 2000, 20)
        h.write_stream(h.opened[0], frames(b"x" * 1000, 2000))  # many windows
        h.close_stream(h.opened[0])
        found = joined(h, run, 30)
        case.equal(len(found["frames"]), 2000, "frames")
        case.equal(h.opened[0]["objects"][0]["Task"], "t", "the argument")
        servers.close_stream(stream)


def test_a_cancelled_stream():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        h.methods["FileSystem.Logs"] = lambda s: h.write_stream(s, frames(b"one", 1))
        stream = opened(h, servers, "FileSystem.Logs", {"AllocID": "a", "Follow": True})
        run = in_background(servers.read_stream, stream, 1, 10)
        case.equal(len(joined(h, run)["frames"]), 1, "a frame")
        servers.close_stream(stream)
        h.wait(lambda: h.opened[0]["ended"], 5, "news of the cancel")
        h.close_stream(h.opened[0])
        stream = opened(h, servers, "FileSystem.Logs", {"AllocID": "b", "Follow": True})
        h.wait(lambda: len(h.opened) == 2 and h.opened[1]["objects"], 5, "the next")
        servers.drop()
        h.wait(lambda: h.opened[1]["gone"], 5, "news of the lost connection")


# --- streams opened by the supervisor ---

LOGS = "FileSystem.Logs", {"AllocID": "a", "Task": "t", "LogType": "stdout"}, "FsLogsRequest"


def asked(h, servers, *args):
    """Returns (the stream here, its number at the servers)."""
    after = servers.last_call()
    s = h.ask(*args)
    run = in_background(servers.wait_call, args[0], after)
    return s, joined(h, run)[0]["stream"]


def test_a_stream_opened_by_the_supervisor():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        s, number = asked(h, servers, "Allocations.Exec", {"AllocID": "a", "Task": "t", "Cmd": ["cat"]}, "AllocExecRequest")
        run = in_background(servers.say_asked, number, [{"Error": None, "Payload": b"x" * 1000}] * 1000)
        h.write_stream(s, gopack.pack({"Stdin": {"Data": b"y" * 1000}}) * 1000)  # many windows both ways
        joined(h, run, 60)
        h.wait(lambda: len(s["objects"]) == 1000, 60, "the frames")
        run = in_background(servers.hear_asked, number, 1000, 60)
        case.equal(len(joined(h, run, 60)["objects"]), 1000)
        servers.end_asked(number)
        h.wait(lambda: s["ended"], 60, "the end")
        case.equal((s["gone"], s["error"]), (False, ""))
        h.close_stream(s)
        s, number = asked(h, servers, *LOGS)
        h.close_stream(s)
        run = in_background(servers.hear_asked, number, 1, 60)
        case.equal(joined(h, run, 60), {"objects": [], "over": "end"}, "the end of the stream at the servers")


def test_streams_that_are_refused_or_lost():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        servers.fault("error", "FileSystem.Logs", text="not today", times=1)
        s = h.ask(*LOGS)
        h.wait(lambda: s["gone"], 60, "the refusal")
        case.equal(s["error"], "not today")
        # A silent server: a stream that is closed meanwhile is dropped, and its data is never sent.
        silent = servers.fault("silent", "FileSystem.Logs")
        s = h.ask(*LOGS)
        h.write_stream(s, b"\xc0" * 100000)
        h.close_stream(s)
        left = h.ask(*LOGS)
        h.call("Status.Ping", GLOBAL)
        case.equal((s["ended"], left["ended"]), (False, False))
        servers.clear(silent)
        servers.drop()
        h.wait(lambda: left["gone"], 60, "news of the lost connection")
        case.equal(left["error"], "")
    with Link(PLACES, ["127.0.0.1:1"]) as h:
        s = h.ask(*LOGS)
        h.wait(lambda: s["gone"], 60, "that there is no server")
        case.equal(s["error"] != "", True, "whether there is a reason")


def test_input_on_a_stream():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        h.methods["Allocations.Exec"] = lambda s: None
        stream = opened(h, servers, "Allocations.Exec", {"AllocID": "a", "Cmd": ["cat"]})
        for i in range(20):
            servers.send_stream(stream, {"Stdin": {"Data": b"%d" % i, "Close": False}})
        h.wait(lambda: h.opened and len(h.opened[0]["objects"]) == 21, 10, "the input")
        servers.close_stream(stream)
        h.wait(lambda: h.opened[0]["ended"], 5, "the end")


def test_unknown_streams_are_refused():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        run = in_background(servers.open_stream, h.id, "Nope.Logs", {})
        h.wait(lambda: not run.is_alive(), 10, "the refusal")
        case.contains(run.error or "", 'Unknown rpc method: "Nope.Logs"')


def was_read(h):
    """Returns the bytes that heartbeat has read so far."""
    with open("/proc/%d/io" % h.pid, encoding="ascii") as f:
        return int(f.read().split("rchar:")[1].split()[0])


def test_a_flood_of_streams_while_the_supervisor_is_stopped():
    head = gopack.pack({"ServiceMethod": "ClientStats.Stats", "Seq": 1})
    flood = b"".join(yamux.frame(yamux.DATA, yamux.SYN, number, len(head) + 1, b"\1" + head) +
                     yamux.frame(yamux.WINDOW, yamux.RST, number, 0) for number in range(10000, 30000, 2))
    with nomad_server.Servers(forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        before = was_read(h)
        servers.session_fault("frame", hex=flood)
        case.until(lambda: was_read(h) - before >= len(flood), 20, "heartbeat to read all of it")
        case.equal(h.call("Status.Ping", GLOBAL), {}, "afterwards")
        print("        %d of 10000 streams were taken" % len(h.opened))
        case.equal(0 < len(h.opened) < 2000, True, "whether some streams were accepted")


def test_a_server_that_sends_go_away_and_keeps_its_streams():
    """Each time another connection with a silent stream is left: their number is limited."""
    with nomad_server.Servers(forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        h.register()
        h.methods["FileSystem.Logs"] = lambda s: None
        for n in range(18):
            opened(h, servers, "FileSystem.Logs", {"AllocID": "a", "Task": "t"})

            def next_one(n=n):
                servers.session_fault("go_away")  # a go-away soon after another is ignored
                return sum(servers.accepted()) >= n + 2
            h.wait(next_one, 60, "connection %d" % (n + 2))
            case.equal(h.call("Status.Ping", GLOBAL), {}, "a call")
            case.equal(len(servers.connections()) <= 16, True, "%d connections" % len(servers.connections()))
        case.equal(len(servers.connections()) > 2, True, "whether connections with streams are kept")


# --- TLS ---

def test_tls_and_servers_that_are_refused():
    certificates = nomad_server.make_certificates(case.directory(), names=("server", "client", "stranger"))
    ours = (certificates["ca"][0],) + certificates["client"]
    with nomad_server.Servers(certificates=certificates, forgive=True) as servers:
        with Link(PLACES, servers.addresses, tls=ours) as h:
            case.equal(h.call("Status.Ping", GLOBAL), {}, "TLS")
            servers.fault("pad", "Status.Ping", bytes=3 << 20, times=1)
            case.equal(len(h.call("Status.Ping", {**GLOBAL, "Prefix": "x" * (1 << 20)})["Zpadding"]), 3 << 20, "a large answer")
            # A server name that must be resolved.
        with Link(PLACES, [a.replace("127.0.0.1", "localhost") for a in servers.addresses], tls=ours) as h:
            case.equal(h.call("Status.Ping", GLOBAL), {}, "answer with a server name")
        for what, tls in (("another CA's client", (certificates["ca"][0],) + certificates["stranger"]),
                          ("another CA's server", (os.path.dirname(ours[0]) + "/other-ca.pem",) + certificates["client"])):
            with Link(PLACES, servers.addresses, tls=tls) as h:
                e = refused(h, "Status.Ping", GLOBAL, deadline_s=2)
                case.equal(e.code, -errno.ENETUNREACH, what)
                print("        %s: %s" % (what, e.text))
        with Link(PLACES, servers.addresses) as h:
            case.equal(refused(h, "Status.Ping", GLOBAL, deadline_s=2).code, -errno.ENETUNREACH, "a connection without TLS")
        for kind in ("refuse", "mute", "tls_close", "tls_alert", "tls_plain"):
            servers.connection_fault(0, kind)
            with Link(PLACES, servers.addresses, tls=ours) as h:
                e = refused(h, "Status.Ping", GLOBAL, deadline_s=1)
                case.equal(e.code, -errno.ENETUNREACH, kind)
                servers.connection_fault(0, None)
                case.equal(h.call("Status.Ping", GLOBAL, deadline_s=20), {}, "after " + kind)


def test_a_server_with_the_wrong_name_is_refused():
    certificates = nomad_server.make_certificates(case.directory(), names=("server", "client", "nobody"))
    ours = (certificates["ca"][0],) + certificates["client"]
    certificates["server"] = certificates["nobody"]
    with nomad_server.Servers(certificates=certificates, forgive=True) as servers:
        with Link(PLACES, servers.addresses, tls=ours) as h:
            case.until(lambda: "hostname mismatch" in refused(h, "Status.Ping", GLOBAL, deadline_s=1).text, 10, "the reason")
        with Link(PLACES, servers.addresses, tls=ours, verify=False) as h:
            case.equal(h.call("Status.Ping", GLOBAL), {}, "answer without verification of the name")


def test_invalid_keys_are_reported():
    certificates = nomad_server.make_certificates(case.directory(), names=("server", "client"))
    ca, (cert, key) = certificates["ca"][0], certificates["client"]
    for what, tls in (("tls.ca_file", ("/dev/null", cert, key)), ("tls.cert_file", (ca, key, key)),
                      ("tls.key_file", (ca, cert, cert)), ("does not belong", (ca, cert, certificates["server"][1]))):
        h = Link(PLACES, ["127.0.0.1:1"], tls=tls)
        case.equal(h.wait_exit(), 1, what)
        case.contains(h.log(), what)
        h.close()


try:
    case.run(globals())
finally:
    PLACES.remove()
