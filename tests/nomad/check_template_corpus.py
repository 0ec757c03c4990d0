#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Renders every file of a directory as a template, with drover alone, with drover in a cluster, and with the client of the servers' own program,
from the same variables, services and environment, which are generated for the names in the files. Prints how many are the same, and a line for each
file whose outputs differ, that only some of them refuse, or for which only some wait; it fails if such a difference is not listed here. The directory
has templates of public jobs, so it is no part of the tree, and this script is no part of `make check` or `make check-nomad`. It is not below /tmp.

    tests/nomad/isolated.py tests/nomad/check_template_corpus.py PATH DIRECTORY [PART]…

PATH is the servers' program. With PARTs, only files whose names contain one of them."""
import collections
import hashlib
import http.client
import os
import re
import sys
import time
import urllib.error
import urllib.request

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "system"))
from lib import api, case  # noqa: E402
import alike  # noqa: E402
from alike import ALONE, OURS, THEIRS, task  # noqa: E402

TOGETHER, BATCH, PATIENCE = 40, 25, 25  # jobs at a time; files in one job; seconds without any news until a job that is pending waits
NAME, PATH = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?"), re.compile(r"(?!nomad/(?!jobs\b))[A-Za-z0-9_~/-]{1,128}")
# Values of items that a function takes, by that function.
FORMS = {"parseJSON": '{"a": [1, "x"], "b": {"c": null, "é": 1.5}}', "parseYAML": "a: [1, x]\nb: {c: null}\n", "base64Decode": "aGVsbG8=", "parseInt": "42",
         "parseUint": "7", "parseFloat": "2.5", "parseBool": "true"}
# The variables that the client itself sets.
OWN = re.compile(r"NOMAD_(ALLOC_|TASK_|SECRETS_|JOB_|GROUP_|NAMESPACE|REGION|DC|SHORT_|CPU_|MEMORY_|PARENT_|TOKEN|UNIX_|CORES|VAR_)")
# Differences that are known: of texts that match, if the line about it matches, and why (docs/templates.md).
KNOWN = [(r"\bexecuteTemplate\b", "function is disabled", "2.0 disables the function by default"),
         (r"%T\b", r"dependency\.NomadVarItems.*\*dependency\.NomadVarItems", "a pointer with 1.6"),
         (r"\bnomad\.advertise\.address\b", "output differs", "1.6 has this attribute"),
         (r"\bsprig_(?:html[Dd]ate|date|now|uuidv4|rand(?:A|Bytes|Numeric)|env|expandenv|getHostByName)", "^refused.*original client rendered",
          "only 1.6 has the function"),
         (r"\(nomadVar", r"refused.*nil pointer evaluating \*dependency\.NomadVarItems", "1.6 does not wait for a variable whose item is taken at once")]
QUIET = {"Splay": 0, "Wait": {"Min": 0, "Max": 0}}


def read(directory, parts):
    """Returns {name: text} of the files."""
    found = {}
    for name in sorted(os.listdir(directory)):
        if not parts or any(p in name for p in parts):
            with open(os.path.join(directory, name), encoding="utf-8", newline="") as f:
                found[name] = f.read()
    return found


def value_of(key, text):
    """Returns the value of an item: one that the text can use if it gives the item to a function, otherwise one of several kinds."""
    used = re.search(r"\.%s\b[^}|]*\|\s*(%s)\b|\b(%s) [^}|]*\.%s\b" % (re.escape(key), "|".join(FORMS), "|".join(FORMS), re.escape(key)), text)
    if used:
        return FORMS[used[1] or used[2]]
    if "port" in key.lower():
        return "8080"
    number = hashlib.sha256(key.encode()).digest()[0]
    return ("word-%02x" % number, "two \"words\" & <b> 'x' ü", "%d" % number, "a,b,c\nsecond line\n", "true")[number % 5]


def keys_of(text):
    """Returns the names of fields and the keys of `index` that the text has."""
    return set(re.findall(r"\.([A-Za-z_]\w*)", "".join(re.findall(r"\{\{.*?\}\}", text, re.S)))) | set(re.findall(r'index [.$\w]+ "(\w+)"', text))


def items_of(text):
    return {key: value_of(key, text) for key in keys_of(text)} or {"value": "x"}


def reads_own(text):
    """Returns whether the text may read the variable of its job."""
    return "NOMAD_JOB" in text and "nomadVar " in text and "nomadVarList" not in text


def variables(texts):
    """Returns {path: items} of all variables that the texts name; "" is the path of the variable of the own job."""
    found = collections.defaultdict(dict)
    for text in texts.values():
        if reads_own(text):
            found[""].update(items_of(text))
        for path in re.findall(r'nomadVar(?:Exists)? ["`]([^"`@]+)', text):
            if PATH.fullmatch(path):
                found[path.strip("/")].update(items_of(text))
    return found


def services(texts):
    return sorted({name for text in texts.values() for name in re.findall(r'nomadService [^}]*?["`]([^"`]+)["`]', text) if NAME.fullmatch(name)})


def environment(texts):
    """Returns the variables of the environment that the texts name, and the metadata of the job."""
    names = {name for text in texts.values() for name in re.findall(r'(?:env|mustEnv|envOrDefault) ["`](\w+)["`]', text)}
    return {n: value_of(n, "") for n in names if not OWN.match(n) and not n.startswith("NOMAD_META")}, \
        {n[11:]: value_of(n, "") for n in names if n.startswith("NOMAD_META_")}


def with_services(node, render):
    """Returns what render() returns while the node has two instances of each service, with an address and ports that do not depend on it."""
    server, names = both.servers[node], services(TEXTS)
    both.run_on(node, api.job("services", group={"Tasks": [task("t", alike.WAITS)], "Services": [
        {"Name": name, "Provider": "nomad", "Tags": ["b", "a%d" % i][:i + 1], "Address": "192.0.2.%d" % (i + 1), "PortLabel": str(8000 + i)}
        for name in names for i in range(2)]}))
    server.wait("services", ["running"], 120)
    for name in names:
        case.until(lambda: len(server.ask("/v1/service/" + name)) == 2, 60, "two instances of " + name)
    found = render()
    server.purge("services")
    case.until(lambda: not [s for at in server.ask("/v1/services") for s in at["Services"]], 60, "no service")
    return found


def body_of(node, path):
    """Returns the body of an answer, None if it is an error."""
    if node == ALONE:
        answer = both.servers[ALONE].node.request("GET", path)
        return answer.body if answer.status == 200 else None
    try:
        with urllib.request.urlopen("http://127.0.0.1:%d%s" % (both.server.ports[0], path), timeout=60) as answer:
            return answer.read()
    except (OSError, http.client.HTTPException):
        return None


# Parts of an output that differ between allocations, nodes or moments: (a pattern of the template's text, the pattern of the part).
OFTEN = [("", rb"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"), (r"nomadVar|Time", rb"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d[.\d]*"),
         (r"\btimestamp\b|\bnow\b", rb"[0-9a-f]{32,}|\d+"), (r"nomadService \d", rb"\d+")]


def same_words(data, alloc, text):
    """Returns the output without what belongs to the allocation and its node, the time if the text prints it, and which instances of a service it
    takes, if it takes them by hashes."""
    for word, by in ((alloc["ID"], "@alloc"), (alloc["ID"][:8], "@short"), (alloc["JobID"], "@job"), (alloc["JobID"].replace("-", "_"), "@job"),
                     (alloc["NodeID"], "@node-id")):
        data = data.replace(word.encode(), by.encode())
    data = re.sub(rb"[^\s\"'`=:,;(]*/@alloc/(t/)?(?=alloc|local|secrets)", b"@dir/", data)
    data = re.sub(rb"\b(%s|%s|%s)\b" % (OURS.encode(), THEIRS.encode(), ALONE.encode()), b"@name", data)
    for where, what in OFTEN:
        data = re.sub(what, b"0", data) if re.search(where, text) else data
    return re.sub(rb"((?:Create|Modify) ?(?:Index|Time)\W[^\d]{0,40}?)\d+", rb"\g<1>0", data)


def end_of(alloc):
    """Returns how the alloc ended: rendered, refused, or None while it is pending, and why."""
    events = [e for t in (alloc.get("TaskStates") or {}).values() for e in t["Events"] or ()]
    said = [e["DisplayMessage"] for e in events if e["Type"] in ("Template", "Killing", "Task hook failed", "Failed Validation", "Setup Failure")]
    how = {"complete": "rendered", "failed": "refused", "lost": "refused"}.get(alloc["ClientStatus"])
    return how, next((text for text in said if "failed" in text), said[-1] if said else "")


def start(node, name, files):
    """Registers the job that renders these {name: text}."""
    made = [{"EmbeddedTmpl": text, "DestPath": "local/f/%d" % i, "ChangeMode": "noop", **QUIET} for i, text in enumerate(files.values())]
    job = "%s-%s" % (name, node)
    if any(map(reads_own, files.values())):
        both.servers[node].do("/v1/var/nomad/jobs/" + job, {"Path": "nomad/jobs/" + job, "Items": VARIABLES[""]})
    both.run_on(node, api.job(job, group={**alike.restarts(0), "Tasks": [task("t", "exit 0", Templates=made, Env=ENV, Meta=META)]}), Type="batch")


def outcomes(node, jobs):
    """Runs these {job: {file: text}} on the node. Returns {job: (how, why, {file: output})}."""
    done, left = {}, dict(jobs)
    for name, files in jobs.items():
        start(node, name, files)
    last = time.monotonic()
    while left:
        for name, files in list(left.items()):
            allocs = both.servers[node].allocs("%s-%s" % (name, node))
            alloc = allocs and both.servers[node].ask("/v1/allocation/" + allocs[0]["ID"])
            how, why = end_of(alloc) if alloc else (None, "")
            if how is None and not (why and time.monotonic() - last > PATIENCE):
                continue
            found = {f: body_of(node, "/v1/client/fs/cat/%s?path=t/local/f/%d" % (alloc["ID"], i)) for i, f in enumerate(files)} if how == "rendered" else {}
            done[name] = (how or "waits", why, {f: None if data is None else same_words(data, alloc, files[f]) for f, data in found.items()})
            del left[name]
            last = time.monotonic() if how else last
        case.equal(time.monotonic() - last < 300, True, "news of %s on %s" % (sorted(left), node))
        time.sleep(0.3)
    for name in jobs:
        job = "%s-%s" % (name, node)
        both.servers[node].purge(job)
        if any(map(reads_own, jobs[name].values())):
            (both.servers[ALONE].node if node == ALONE else both.server).request("DELETE", "/v1/var/nomad/jobs/" + job)
    return done


def one_by_one(node, texts):
    """Returns {file: (how, why, output)}, of one job for each file."""
    found, names = {}, list(texts)
    for at in range(0, len(names), TOGETHER):
        part = {"one%d" % i: {names[i]: texts[names[i]]} for i in range(at, min(at + TOGETHER, len(names)))}
        for job, (how, why, files) in outcomes(node, part).items():
            name, = part[job]
            found[name] = (how, why, files.get(name))
    return found


def together(node, texts):
    """Returns the same, of jobs with many files; those of a job that has not rendered all are run one by one."""
    found, names = {}, list(texts)
    parts = {"many%d" % at: {n: texts[n] for n in names[at:at + BATCH]} for at in range(0, len(names), BATCH)}
    for how, why, files in outcomes(node, parts).values():
        found.update({name: (how, why, data) for name, data in files.items()})
    return {**found, **one_by_one(node, {n: texts[n] for n in names if n not in found})}


def difference(ours, theirs):
    """Returns a line about two results, None if they are the same."""
    if ours[0] != theirs[0]:
        return "%s (%s), the original client %s (%s)" % (ours[0], ours[1][:150], theirs[0], theirs[1][:250])
    if ours[2] == theirs[2]:
        return None
    if None in (ours[2], theirs[2]):
        return "no file: %s, %s" % (ours[2] is None, theirs[2] is None)
    at = next((i for i, (a, b) in enumerate(zip(ours[2], theirs[2])) if a != b), min(len(ours[2]), len(theirs[2])))
    return "output differs at byte %d: %r, the original client %r" % (at, ours[2][max(at - 20, 0):at + 40], theirs[2][max(at - 20, 0):at + 40])


def check(found, texts):
    """Prints the differences of a node from the original client. Returns those that are not known."""
    new = []
    for name, line in found.items():
        why = [reason for pattern, about, reason in KNOWN if re.search(pattern, texts[name]) and re.search(about, line)]
        print("      %s%s: %s" % (name, " (%s)" % why[0] if why else "", line))
        new += [] if why else [name]
    return new


def test_corpus():
    for path, items in VARIABLES.items():
        if path:
            both.do_apart("/v1/var/" + path, {"Path": path, "Items": items})
    # Lists of variables come first, because those of other jobs would be in them.
    lists = {n: t for n, t in TEXTS.items() if "nomadVarList" in t}
    rest = {n: t for n, t in TEXTS.items() if n not in lists}
    found = {ALONE: with_services(ALONE, lambda: {**one_by_one(ALONE, lists), **one_by_one(ALONE, rest)})}
    good, bad = ({n: t for n, t in rest.items() if (found[ALONE][n][0] == "rendered") == so} for so in (True, False))
    for node in (OURS, THEIRS):
        found[node] = with_services(node, lambda n=node: {**together(n, lists), **together(n, good), **one_by_one(n, bad)})
    for kind in ("rendered", "refused", "waits"):
        print("    the original client: %s: %d" % (kind, sum(r[0] == kind for r in found[THEIRS].values())))
    new = {}
    for node in (ALONE, OURS):
        odd = {n: line for n in TEXTS if (line := difference(found[node][n], found[THEIRS][n]))}
        print("    %s: %d of %d files are the same" % (node, len(TEXTS) - len(odd), len(TEXTS)))
        new[node] = check(odd, TEXTS)
    case.equal(new, {ALONE: [], OURS: []}, "files that differ for no known reason")


if len(sys.argv) < 2 or not os.path.isdir(sys.argv[1]):
    sys.exit("this needs a directory of templates")
TEXTS = read(sys.argv[1], sys.argv[2:])
del sys.argv[1:]
VARIABLES = variables(TEXTS)
ENV, META = environment(TEXTS)
with alike.pair(alone=True) as both:
    case.run(globals())
