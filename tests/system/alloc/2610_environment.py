#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The environment of tasks: every variable and no other, and the interpolation of ${…}."""
import json
import os
import pwd

from lib import api, case
from lib.websocket import Exec, Refused

AGENT_ENV = {"SECRET_OF_THE_AGENT": "sesame", "NOMAD_TOKEN": "sesame", "NOMAD_META_level": "sesame", "VAULT_TOKEN": "sesame", "LC_ALL": "sesame", "LANG": "C.UTF-8"}
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PORTS = [{"Mode": "host", "ReservedPorts": [{"Label": "my-port", "Value": 18090, "To": 80}],
          "DynamicPorts": [{"Label": "same", "To": -1}, {"Label": "free"}]}]


def task(name, driver, args=("-0",), command="/usr/bin/env", **more):
    return api.task(name, command, args, driver, **{"KillTimeout": 10**8, **more})


def batch(name, groups, **more):
    """Returns a batch job. groups: {name: (more fields of the group, tasks)}."""
    made = api.job(name)["Job"]
    base = made["TaskGroups"][0]
    made["TaskGroups"] = [{**base, "Name": g, "Tasks": tasks, **of_group} for g, (of_group, tasks) in groups.items()]
    return {"Job": {**made, "Type": "batch", **more}}


def ended(made):
    """Runs a job to its end. Returns its allocs by group."""
    node.register(made)
    name = made["Job"]["ID"]
    n = len(made["Job"]["TaskGroups"])

    def done():
        found = [a for a in node.allocs(name) if a["ClientStatus"] in ("complete", "failed")]
        return len(found) == n and found
    found = {a["TaskGroup"]: node.ask("/v1/allocation/" + a["ID"]) for a in case.until(done, 60, name)}
    for a in found.values():
        case.equal(a["ClientStatus"], "complete", [e["DisplayMessage"] for t in a["TaskStates"].values() for e in t["Events"]])
    return found


def environment(alloc, name):
    words = node.logs(alloc, name).decode().split("\0")
    case.equal(words.pop(), "", "the text after the last variable")
    return dict(w.split("=", 1) for w in words)


def of_user(user):
    entry = pwd.getpwnam(user)
    return {"PATH": PATH, "HOME": entry.pw_dir, "USER": user, "LOGNAME": user, "SHELL": entry.pw_shell or "/bin/sh"}


def of_alloc(job, alloc, name, driver):
    """Returns the variables that every task of the alloc has."""
    top = "%s/alloc/%s" % (node.data, alloc["ID"])
    dirs = ("/alloc", "/local", "/secrets") if driver == "exec" else (
        top + "/alloc", "%s/%s/local" % (top, name), "%s/%s/secrets" % (top, name))
    made = {"NOMAD_ALLOC_DIR": dirs[0], "NOMAD_TASK_DIR": dirs[1], "NOMAD_SECRETS_DIR": dirs[2],
            "NOMAD_MEMORY_LIMIT": "20", "NOMAD_CPU_LIMIT": "20", "LANG": AGENT_ENV["LANG"],
            "NOMAD_ALLOC_ID": alloc["ID"], "NOMAD_SHORT_ALLOC_ID": alloc["ID"][:8],
            "NOMAD_ALLOC_NAME": "%s.%s[0]" % (job["ID"], alloc["TaskGroup"]), "NOMAD_ALLOC_INDEX": "0",
            "NOMAD_TASK_NAME": name, "NOMAD_GROUP_NAME": alloc["TaskGroup"], "NOMAD_JOB_ID": job["ID"], "NOMAD_JOB_NAME": job["Name"],
            "NOMAD_DC": "dc1", "NOMAD_REGION": "global", "NOMAD_NAMESPACE": "default",
            **of_user("nobody" if driver == "exec" else "root")}
    me = node.ask("/v1/node/" + alloc["NodeID"])
    if me["Attributes"]["os.cgroups.version"] == "2":
        made["NOMAD_PARENT_CGROUP"] = me["CgroupParent"]
    return made


def of_ports(alloc):
    """Returns the variables of the ports. In some of their names a dash is kept."""
    made = {}
    for p in alloc["AllocatedResources"]["Shared"]["Ports"]:
        label, name = p["Label"], p["Label"].replace("-", "_")
        value, inside = str(p["Value"]), str(p["To"] or p["Value"])
        made.update({"NOMAD_IP_" + name: p["HostIP"], "NOMAD_ADDR_" + name: p["HostIP"] + ":" + value, "NOMAD_PORT_" + name: inside,
                     "NOMAD_HOST_PORT_" + name: value, "NOMAD_ALLOC_PORT_" + label: inside,
                     "NOMAD_HOST_IP_" + label: p["HostIP"], "NOMAD_HOST_ADDR_" + label: p["HostIP"] + ":" + value})
    return made


def both(key, value):
    return {"NOMAD_META_" + key: value, "NOMAD_META_" + key.upper(): value}


def all_variables(driver):
    meta = {"level": "job", "a-key.x": "j", "kernel": "${attr.kernel.name} ${NOMAD_GROUP_NAME} ${nobody.knows}"}
    plain = {"Resources": {"CPU": 20, "MemoryMB": 20}}
    own = {"Env": {"GREETING": "hi ${NOMAD_TASK_NAME} at ${NOMAD_ADDR_my_port} of ${node.datacenter} in ${node.region}", "LINES": "a\nb",
                   "AS_IT_IS": '${nobody.knows} $${X} %{if} ${env["NOMAD_DC"]} ${unclosed', "NOMAD_DC": "mine", "PATH": "/opt:${PATH}"},
           "Meta": {"level": "task", "own": ""}, **plain}
    job = batch("envs-" + driver.replace("_", "-"), {
        "g": ({"Networks": PORTS, "Meta": {"level": "group", "of-group": "g"}}, [
            task("t", driver, **own), task("u", driver, Resources={"CPU": 20, "MemoryMB": 20, "MemoryMaxMB": 30})]),
        "h": ({}, [task("t", driver, **plain)])}, Meta=meta, Name="Envs by name")
    found = ended(job)
    for group, name in (("g", "t"), ("g", "u"), ("h", "t")):
        alloc = found[group]
        wanted = {**of_alloc(job["Job"], alloc, name, driver), **both("level", "job"), **both("a_key.x", "j"),
                  **both("kernel", "linux %s ${nobody.knows}" % group)}
        if group == "g":
            wanted.update({**of_ports(alloc), **both("level", "group"), **both("of_group", "g")})
            static = [p for p in alloc["AllocatedResources"]["Shared"]["Ports"] if p["Label"] == "my-port"][0]
        if name == "u":
            wanted["NOMAD_MEMORY_MAX_LIMIT"] = "30"
        elif group == "g":
            wanted.update({**both("level", "task"), **both("own", ""), "LINES": "a\nb", "NOMAD_DC": "mine", "PATH": "/opt:" + PATH,
                           "GREETING": "hi t at %s:18090 of dc1 in global" % static["HostIP"],
                           "AS_IT_IS": '${nobody.knows} $${X} %{if} ${env["NOMAD_DC"]} ${unclosed'})
        case.equal(environment(alloc, name), wanted, "environment of %s in %s" % (name, group))
    shared = {p["Label"]: p for p in found["g"]["AllocatedResources"]["Shared"]["Ports"]}
    case.equal((shared["same"]["To"], shared["free"]["To"], shared["my-port"]["To"]), (shared["same"]["Value"], 0, 80))
    node.purge(job["Job"]["ID"])


def test_all_variables_of_exec():
    all_variables("exec")


def test_all_variables_of_raw_exec():
    all_variables("raw_exec")


def test_each_alloc_has_its_own_index():
    made = batch("indexes", {"g": ({}, [task("t", "raw_exec")])})
    made["Job"]["TaskGroups"][0]["Count"] = 3
    node.register(made)
    for alloc in node.wait_allocs("indexes", [(i, "run", "complete") for i in range(3)], 60):
        env = environment(alloc, "t")
        case.equal((env["NOMAD_ALLOC_NAME"], "indexes.g[%s]" % env["NOMAD_ALLOC_INDEX"]), (alloc["Name"], alloc["Name"]))
    node.purge("indexes")


def test_a_session_has_the_environment_of_its_task():
    node.register(api.job("inside", driver="exec", Env={"OWN": "${NOMAD_TASK_NAME}"}))
    alloc = node.wait_running("inside")[0]
    with Exec(node, alloc["ID"], ["/usr/bin/env", "-0"]) as session:
        out, _, result = session.end()
    found = dict(w.split("=", 1) for w in out.decode().split("\0") if w)
    case.equal((result, found["OWN"], found["NOMAD_ALLOC_ID"], found["NOMAD_SECRETS_DIR"]), ({}, "t", alloc["ID"], "/secrets"))
    case.equal([w for w in found.values() if "sesame" in w], [])
    node.purge("inside")


# Arguments, and their values for the task.
EVALUATED = (
    ("${NOMAD_TASK_NAME}", "t"), ("a${NOMAD_DC}b${NOMAD_DC}", "adc1bdc1"), ('${env["NOMAD_DC"]}', "dc1"), ("${ NOMAD_DC }", "dc1"),
    ('${ env["OWN"] }', "x y"), ("${OWN}", "x y"), ("${attr.kernel.name}", "linux"), ("${node.unique.id}", None), ("${node.class}", ""),
    ("${meta.rack}", "r1"), ("${node.region}", "global"), ("${node.pool}", "default"), ("${PATH}", PATH),
    ("$${NOMAD_DC}", "${NOMAD_DC}"), ("%%{if}", "%{if}"), ("$HOME $1 100% $$ {x}", "$HOME $1 100% $$ {x}"),
    ("${NOMAD_META_a_key}", "v"), ("${NOMAD_META_a-key}", "v"), ("${NOMAD_PORT_http}", "80"), ("${NOMAD_HOST_PORT_http}", "18091"))
# Values of expressions that job-parser evaluates, in the same places.
COMPUTED = (
    ("${upper(NOMAD_JOB_NAME)}", "ARGS"), ("${NOMAD_PORT_http + 1}", "81"), ("${1+1}", "2"), ("${env.NOMAD_DC}", "dc1"),
    ('%{if NOMAD_ALLOC_INDEX == "0"}first%{else}other%{endif}', "first"), ("${node.attr.kernel.name}", "linux"), ("${node.meta.rack}", "r1"),
    ('${env["OWN"]}: ${length(jsondecode(LIST))}', "x y: 2"), ('${NOMAD_META_n > 2 ? "many" : "few"}', "many"),
    ('%{for x in jsondecode(LIST)}<${x}>%{endfor}', "<a><b>"), ("$${upper(X)} ${lower(NOMAD_DC)}", "${upper(X)} dc1"),
    ('${NOMAD_HOST_PORT_http == "18091"}', "true"), ("${NOMAD_META_a-key}${NOMAD_META_a_key}${1}", "vv1"), ("${jsonencode({a = OWN})}", '{"a":"x y"}'),
    ("${NOMAD_DC == null ? nobody : node.unique.id}", None), (8080, "8080"), (0.25, "0.25"), (True, "true"), (None, ""))
# Expressions with an error, and a part of the sentence about it.
OTHERS = (
    ("${nobody}", "${nobody} is not known; write $${nobody} for a literal ${nobody}"), ('${env["NOBODY"]}', '${env["NOBODY"]} is not known'),
    ("${attr.none}", "${attr.none} is not known"), ("${attr.none + 1}", 'there is no attribute "none" here'),
    ("${upper(nobody)}", 'config.args[0]: "${upper(nobody)}": unknown variable "nobody": did you mean "node"?; write $${ for a literal ${'),
    ("${unclosed", 'expected "}" at the end of this ${ }, found the end of the file'), ("${NOMAD_DC + 1}", '"dc1" is not a number'),
    ("${env[NOMAD_DC]}", 'there is no element "dc1" here'), ("${NOMAD_DC:-x}", 'expected "}" at the end of this ${ }'),
    ("${}", "expected a value"), ("${ }", "expected a value"), ('${env["NOMAD_DC"]x}', 'expected "}"'), ("%{if true}x", "expected %{ endif }"),
    ('${file("/etc/passwd")}', 'unknown function "file"'), ("${jsondecode(LIST)}", "config.args[0] must be a string"),
    ("${[for a in split(NOMAD_DC)]}", 'config.args[0]: "'), ("x\ny ${NOPE + 1}", 'config.args[0]: "y ${NOPE + 1}": unknown variable "NOPE"'),
    ("${[for a in jsondecode(BIG): [for b in jsondecode(BIG): [for c in jsondecode(BIG): a]]]}", "the document needs too much"))


def test_driver_configuration_is_evaluated():
    network = [{"Mode": "host", "ReservedPorts": [{"Label": "http", "Value": 18091, "To": 80}]}]
    for driver in ("exec", "raw_exec"):
        made = batch("args", {"g": ({"Networks": network, "Meta": {"a-key": "v", "program": "printf"}}, [
            task("t", driver, ["%s\\n"] + [a for a, _ in EVALUATED], "/usr/bin/${NOMAD_META_program}", Env={"OWN": "x y"})])})
        alloc = ended(made)["g"]
        wanted = [alloc["NodeID"] if w is None else w for _, w in EVALUATED]
        # printf with %s prints each argument unchanged on a line.
        case.equal(node.logs(alloc).decode().splitlines(), wanted, driver)
        node.purge("args")


def test_functions_and_operators_are_evaluated():
    network = [{"Mode": "host", "ReservedPorts": [{"Label": "http", "Value": 18091, "To": 80}]}]
    env = {"OWN": "x y", "LIST": '["a", "b"]'}
    for driver in ("exec", "raw_exec"):
        made = batch("args", {"g": ({"Networks": network, "Meta": {"a-key": "v", "n": "3"}}, [
            task("t", driver, ["%s\n"] + [a for a, _ in COMPUTED], '/usr/bin/${lower("PRINTF")}', Env=env)])})
        alloc = ended(made)["g"]
        wanted = [alloc["NodeID"] if w is None else w for _, w in COMPUTED]
        case.equal(node.logs(alloc).decode().splitlines(), wanted, driver)
        node.purge("args")
    # One expression may be the whole list.
    made = batch("list", {"g": ({}, [task("t", "exec", Env=env)])})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"command": "/usr/bin/printf", "args": '${concat(["%s "], jsondecode(LIST), [1])}'}
    case.equal(node.logs(ended(made)["g"]), b"a b 1 ", "a list of arguments")
    node.purge("list")


def sentences(made, name="t"):
    """Returns the reason why the job's task does not start."""
    node.register(made)
    alloc = node.wait_allocs(made["Job"]["ID"], [(0, "run", "failed")], 60)[0]
    found = node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"][name]["Events"]
    node.purge(made["Job"]["ID"])
    return [(e["Type"], e["DisplayMessage"]) for e in found]


def test_other_expressions_are_refused():
    env = {"LIST": '["a"]', "BIG": json.dumps(list(range(200)))}
    for text, sentence in OTHERS:
        found = sentences(batch("other", {"g": ({}, [task("t", "raw_exec", [text], "/bin/echo", Env=env)])}))
        case.equal([kind for kind, _ in found][-2:], ["Failed Validation", "Not Restarting"], text)
        case.contains(found[-2][1], sentence, text)


def test_a_configuration_that_needs_too_much_fails_its_task_alone():
    """Its worker is killed; job-parser and other tasks go on."""
    big = {"BIG": json.dumps(["x" * 1000] * 100)}
    grow = "${jsonencode([for a in jsondecode(BIG): [for b in jsondecode(BIG): jsonencode([for c in jsondecode(BIG): c])]])}"
    found = sentences(batch("big", {"g": ({}, [task("t", "raw_exec", [grow], "/bin/echo", Env=big)])}))
    case.contains(found[-2][1], "config.args[0]: ")
    case.contains(found[-2][1], "the document needs too much memory")
    alloc = ended(batch("after", {"g": ({}, [task("t", "raw_exec", ["${1 + 1}"], "/bin/echo")])}))["g"]
    case.equal(node.logs(alloc), b"2\n", "the next task")
    node.purge("after")


def test_a_session_of_a_restarted_supervisor_knows_the_evaluated_configuration():
    made = api.job("session", driver="exec")
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["cap_add"] = ['${lower("CHOWN")}']
    node.register(made)
    alloc = node.wait_running("session")[0]["ID"]

    def has_chown():
        try:
            with Exec(node, alloc, ["grep", "CapAmb", "/proc/self/status"]) as s:
                out = s.end()[0]
        except Refused:  # it is still being evaluated
            return False
        return bool(out) and int(out.split()[1], 16) & 1 == 1
    case.equal(has_chown(), True, "chown in a session")
    node.kill("supervisor")
    node.wait_ready()
    case.until(has_chown, 30, "a session after the restart")
    node.purge("session")


def test_other_fields_of_a_drivers_configuration_are_evaluated():
    """Capabilities and modes are checked after interpolation."""
    look = 'readlink /proc/self/ns/ipc; grep CapAmb /proc/self/status; head -c 3 /local/d/file'
    for meta, config, caps in (({"mode": "host"}, {"ipc_mode": "${NOMAD_META_mode}"}, 0),
                               ({"cap": "chown"}, {"cap_add": ["${NOMAD_META_cap}"]}, 1 << 29 | 1 << 10 | 1 << 5 | 1 << 0)):
        made = batch("config", {"g": ({"Meta": meta, "Volumes": {"v": {"Name": "v", "Type": "host", "Source": "vol"}}}, [
            task("t", "exec", ["-c", look], "/bin/sh",
                 VolumeMounts=[{"Volume": "v", "Destination": "${NOMAD_TASK_DIR}/${NOMAD_META_dir}"}], Meta={"dir": "d"})])})
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"].update(config)
        said = node.logs(ended(made)["g"]).decode().splitlines()
        node.purge("config")
        case.equal(said[0] == os.readlink("/proc/self/ns/ipc"), "ipc_mode" in config, "the host's ipc namespace")
        case.equal(int(said[1].split()[1], 16), caps, "capabilities")
        case.equal(said[2], "abc", "the mounted volume")
    for key, value, text in (("ipc_mode", "${NOMAD_DC}", 'config.ipc_mode must be "private" or "host"'),
                             ("pid_mode", "$${x}", 'config.pid_mode must be "private" or "host"'),
                             ("cap_add", ["${NOMAD_DC}"], 'there is no capability "dc1"'),
                             ("cap_add", ["${NOMAD_META_cap}"], "driver does not allow the following capabilities: sys_boot")):
        made = batch("config", {"g": ({"Meta": {"cap": "sys_boot"}}, [task("t", "exec")])})
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"][key] = value
        case.contains("\n".join(text for _, text in sentences(made)), text, key)
    # A value without an expression is checked at registration.
    made = batch("config", {"g": ({}, [task("t", "exec")])})
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"]["pid_mode"] = "sometimes"
    node.refused(400, 'config.pid_mode must be "private" or "host"', "POST", "/v1/jobs", made)


def test_a_path_that_leaves_the_task_directory_after_interpolation_is_refused():
    """CVE-2020-27195: a path was checked before its interpolation."""
    volumes = {"v": {"Name": "v", "Type": "host", "Source": "vol"}}
    for up in ("../etc", "../../../../etc", "/../etc", "..", "a/../.."):
        found = sentences(batch("out", {"g": ({"Meta": {"up": up}, "Volumes": volumes}, [
            task("t", "exec", VolumeMounts=[{"Volume": "v", "Destination": "/local/${NOMAD_META_up}"}])])}))
        case.equal((found[-2][0], found[-2][1]), ("Failed Validation", 'volume_mount "v": destination "/local/%s" has a component ".."' % up))
    made = batch("out", {"g": ({"Meta": {"dots": "..."}, "Volumes": volumes}, [
        task("t", "exec", ["/local/.../x..y/file"], "/bin/cat", VolumeMounts=[{"Volume": "v", "Destination": "/local/${NOMAD_META_dots}/x..y"}])])})
    case.equal(node.logs(ended(made)["g"]), b"abc")
    node.purge("out")
    found = sentences(batch("out", {"g": ({"Volumes": volumes}, [
        task("t", "exec", VolumeMounts=[{"Volume": "v", "Destination": "/local/${NOMAD_META_nobody}"}])])}))
    case.contains("\n".join(text for _, text in found), "${NOMAD_META_nobody} is not known")


def test_user_and_kill_signal_are_not_interpolated():
    made = batch("user", {"g": ({"Meta": {"who": "nobody"}}, [task("t", "raw_exec", User="${NOMAD_META_who}")])})
    case.contains("\n".join(text for _, text in sentences(made)), "${NOMAD_META_who}")
    made = batch("signal", {"g": ({"Meta": {"how": "SIGTERM"}}, [task("t", "raw_exec", KillSignal="${NOMAD_META_how}")])})
    answer = node.request("POST", "/v1/jobs", made)
    if answer.status == 200:
        case.contains("\n".join(text for _, text in sentences(made)), 'there is no signal "${NOMAD_META_how}"')
    else:
        case.contains(answer.text, "${NOMAD_META_how}")


def test_values_that_grow_beyond_the_limit_are_refused():
    """Each variable contains the previous one a thousand times: the fourth would be a terabyte."""
    env = {"A": "x" * 1000}
    for name, of in (("B", "A"), ("C", "B"), ("D", "C")):
        env[name] = "${%s}" % of * 1000
    found = sentences(batch("growing", {"g": ({}, [task("t", "raw_exec", Env=env)])}))
    case.contains("\n".join(text for _, text in found), "make the environment of task t: Argument list too long")
    # Text that looks like a reference after interpolation is not interpolated again.
    found = sentences(batch("growing", {"g": ({}, [task("t", "raw_exec", Env={"A": "${" * (1 << 17)})])}))
    case.contains("\n".join(text for _, text in found), "Argument list too long")
    # Each value is permitted, but all together would be 90 MB.
    env = {"A": "x" * 100000}
    many = {"A%d" % i: "${A}" for i in range(900)}
    found = sentences(batch("growing", {"g": ({}, [task("t", "raw_exec", Env={**env, **many})])}))
    case.contains("\n".join(text for _, text in found), "make the environment of task t: Argument list too long")
    found = sentences(batch("growing", {"g": ({}, [task("t", "raw_exec", ["${A}"] * 900, Env=env)])}))
    case.contains("\n".join(text for _, text in found), "the values of the task's ${…} would add more than 4 MiB")
    made = batch("nul", {"g": ({}, [task("t", "raw_exec", Env={"A": "x\0y"})])})
    case.equal(node.request("POST", "/v1/jobs", made).status, 400, "a value with a NUL")


def directory():
    """Makes a host volume. Returns the configuration of a node that has it."""
    top = case.directory()
    os.mkdir(top + "/vol")
    os.chmod(top + "/vol", 0o755)
    with open(top + "/vol/file", "w", encoding="ascii") as f:
        f.write("abc")
    with open(top + "/agent.hcl", "w", encoding="ascii") as f:
        f.write('client {\n  meta { rack = "r1" }\n  host_volume "vol" { path = "%s/vol" }\n}\n'
                'plugin "exec" {\n  config {\n    allow_host_ipc = true\n  }\n}\n' % top)
    os.chmod(top + "/agent.hcl", 0o600)
    return ["-config", top + "/agent.hcl"]


with api.Node(directory(), env=AGENT_ENV) as node:
    case.run(globals())
