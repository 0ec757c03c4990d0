#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 40
"""drover var: each form of items and specifications, each format, conflicts, locks around commands, and that no message has a value."""
import contextlib
import json
import os
import pty
import signal
import subprocess

from lib import api, build_dir, case

SECRET = "Zq7-s3cr3t"


def drover(*words, code=0, stdin=None):
    return node.drover("var", *words, code=code, stdin=(stdin or "").encode())


def says(part, *words, stdin=None):
    """The command fails with this on stderr, and without the secret."""
    r = drover(*words, code=1, stdin=stdin)
    case.contains(r.err, part)
    case.equal(SECRET in r.err + r.out, False, r.err + r.out)


def items(path, query=""):
    return node.ask("/v1/var/" + path + query).get("Items")


def write(name, text):
    return case.write(os.path.join(node.base, name), text)


def purge(*paths):
    for path in paths:
        drover("purge", path)


def test_items_of_the_command_line():
    out = drover("put", "app/db", "user=me", "password=" + SECRET).out
    made = json.loads(out)
    case.equal((made["Path"], made["Items"], made), ("app/db", {"user": "me", "password": SECRET}, node.ask("/v1/var/app/db")))
    case.equal(drover("get", "-item", "password", "app/db").out, SECRET)
    case.equal(json.loads(drover("get", "app/db").out), made)
    case.equal(json.loads(drover("get", "-json", "-out", "hcl", "/app/db/").out), made)
    case.equal(drover("get", "-out", "none", "app/db").out, "")
    says('no item "none"', "get", "-item", "none", "app/db")
    says("variable not found", "get", "none")
    file, binary = write("value", "of a file\n"), node.base + "/binary"
    with open(binary, "wb") as f:
        f.write(b"\0\xff")
    drover("put", "-force", "app/db", "f=@" + file, "in=-", "at=\\@x", "eq=a=b", "gone=", "utf=\u20ac", stdin="of stdin")
    case.equal(items("app/db"), {"f": "of a file\n", "in": "of stdin", "at": "@x", "eq": "a=b", "utf": "\u20ac"})
    more = write("more.json", json.dumps({"a": "1", "b": "2"}))
    drover("put", "-force", "app/db", "x=y", "@" + more, "b=3", "-", stdin='{"c": "4"}')
    case.equal(items("app/db"), {"x": "y", "a": "1", "b": "3", "c": "4"})
    says("there is nothing to write", "put", "app/db")
    says("word 2 of the items is not KEY=VALUE", "put", "app/db", "a=" + SECRET, SECRET)
    says("a is given twice", "put", "app/db", "a=" + SECRET, "a=" + SECRET)
    says("only once", "put", "app/db", "a=-", "b=-", stdin=SECRET)
    says("not text in UTF-8", "put", "app/db", "a=@" + binary)
    says("open /nothing", "put", "app/db", "a=@/nothing")
    says("the value of k is not a text", "put", "app/db", "a=b", "@" + write("n.json", '{"k": 5}'))
    says("not JSON", "put", "app/db", "a=" + SECRET, "@" + write("bad.json", '{"k": "%s' % SECRET))
    says("a.b", "put", "a.b", "k=" + SECRET)
    says("64 KiB", "put", "x", "k=@" + write("big", SECRET * 7000))
    r = drover("put", "-force", "app/db", "we-ird=x")
    case.contains(r.err, 'the key "we-ird"')
    purge("app/db")


def test_specifications():
    hcl = write("v.hcl", 'path = "spec/a"\nitems {\n  key = "%s"\n  number = 5\n  yes = true\n  text = "${x} \\"q\\" \\n"\n}\n' % SECRET)
    drover("put", "@" + hcl)
    case.equal(items("spec/a"), {"key": SECRET, "number": "5", "yes": "1", "text": '${x} "q" \n'})
    # What is printed can be written again.
    for form in ("hcl", "json"):
        copy = write("copy." + form, drover("get", "-out", form, "spec/a").out)
        before = node.ask("/v1/var/spec/a")
        drover("put", "@" + copy, "key=" + form)
        case.equal(items("spec/a"), dict(before["Items"], key=form))
        says("its index is", "put", "@" + copy, "key=" + SECRET)
        drover("put", "-force", "@" + copy)
        drover("put", "-check-index", str(node.ask("/v1/var/spec/a")["ModifyIndex"]), "@" + copy)
        drover("put", "other/" + form, "@" + copy)
        case.equal(items("other/" + form), before["Items"])
    drover("put", "-in", "hcl", "-", stdin='path = "in"\nitems = { "a b" = "c" }\n')
    drover("put", "stdin/json", "-", "k=w", stdin='{"Items": {"k": "v", "l": "m"}}')
    case.equal((items("in"), items("stdin/json")), ({"a b": "c"}, {"k": "w", "l": "m"}))
    drover("put", "-in", "hcl", "noend", "@" + write("noend", "items { k = 1 }"))
    case.equal(items("noend"), {"k": "1"})
    says('did you mean "items"', "put", "x", "@" + write("w.hcl", 'item { k = "%s" }' % SECRET))
    says("line 2, column 7", "put", "x", "@" + write("w.hcl", 'items {\n  k = %s\n}\n' % SECRET.replace("-", "_")))
    says("w.hcl is not HCL", "put", "x", "@" + write("w.hcl", 'items {\n  k = "%s\n}\n' % SECRET))
    says("expected a string", "put", "x", "@" + write("w.hcl", 'items {\n  k = ["%s"]\n}\n' % SECRET))
    says("expected a string", "put", "x", "@" + write("w.json", '{"Items": {"k": ["%s"]}}' % SECRET))
    says("is not JSON", "put", "x", "@" + write("w.json", '{"Items": {"k": "%s\\x"}}' % SECRET))
    says("no Path", "put", "@" + write("w.json", '{"Items": {"k": "%s"}}' % SECRET))
    says("Items", "put", "x", "@" + write("w.json", '{"Path": "x"}'))
    purge("spec/a", "other/hcl", "other/json", "in", "stdin/json", "noend")


def test_indexes():
    drover("put", "-check-index", "0", "cas", "k=" + SECRET)
    index = node.ask("/v1/var/cas")["ModifyIndex"]
    says("its index is %d, not 0" % index, "put", "cas", "k=w")
    says("its index is %d, not %d" % (index, index + 1), "put", "-check-index", str(index + 1), "cas", "k=w")
    says("none with the index 7", "put", "-check-index", "7", "none", "k=w")
    says("-check-index must be a number", "put", "-check-index", "x", "cas", "k=w")
    drover("put", "-check-index", str(index), "cas", "k=w")
    says("its index is", "purge", "-check-index", str(index), "cas")
    drover("purge", "-check-index", str(node.ask("/v1/var/cas")["ModifyIndex"]), "cas")
    case.equal(node.ask("/v1/vars"), [])


def test_lists_and_namespaces():
    node.do("PUT", "/v1/namespace", {"Name": "dev"})
    for path in ("a/b", "a/c", "b"):
        drover("put", path, "k=" + SECRET)
    drover("put", "-namespace", "dev", "a/d", "k=in dev")
    lines = drover("list", "-out", "table").out.splitlines()
    case.equal([line.split()[:2] for line in lines], [["Namespace", "Path"], ["default", "a/b"], ["default", "a/c"], ["default", "b"], ["dev", "a/d"]])
    case.equal(drover("list", "-out", "terse", "-namespace", "default", "a/").out, "a/b\na/c\n")
    case.equal(drover("list", "-quiet", "a/").out, "default a/b\ndefault a/c\ndev a/d\n")
    case.equal([v["Path"] for v in json.loads(drover("list").out)], ["a/b", "a/c", "b", "a/d"])
    r = drover("list", "-out", "terse", "-per-page", "1", "-namespace", "default")
    token = (r.out + r.err).split("-page-token ")[1].split()[0]
    case.equal((r.out.splitlines()[0], token), ("a/b", "default.a/c"))
    case.equal(drover("list", "-out", "terse", "-page-token", token, "-namespace", "default").out, "a/c\nb\n")
    case.equal(drover("list", "-out", "terse", "-filter", 'Path matches "d$"').out, "dev a/d\n")
    case.contains(drover("list", "-out", "table", "none").out, "No matching variables")
    case.equal(SECRET in drover("list").out, False)
    case.equal(drover("get", "-namespace", "dev", "-item", "k", "a/d").out, "in dev")
    says("belongs to one namespace", "get", "-namespace", "*", "a/d")
    says("belongs to one namespace", "put", "-namespace", "*", "a/d", "k=" + SECRET)
    says("nonexistent namespace", "put", "-namespace", "none", "a/d", "k=" + SECRET)
    spec = write("ns.json", json.dumps({"Namespace": "dev", "Path": "a/d", "Items": {"k": "w"}}))
    drover("put", "-force", "@" + spec)
    drover("put", "-namespace", "default", "@" + spec)
    case.equal((items("a/d", "?namespace=dev"), items("a/d")), ({"k": "w"}, {"k": "w"}))
    case.equal(node.drover("__complete", "var", "get", "a/").out.splitlines(), ["a/b\tdefault", "a/c\tdefault", "a/d\tdefault", "a/d\tdev"])
    purge("a/b", "a/c", "a/d", "b")
    drover("purge", "-namespace", "dev", "a/d")
    node.do("DELETE", "/v1/namespace/dev")


def test_formats():
    drover("put", "form", "user=me", "we ird=a\"b\\c", "lines=a\nb")
    text = drover("get", "-out", "table", "form").out
    for part in ("Namespace            = default", "Path                 = form", "Check Index", "Items", "user                 = me"):
        case.contains(text, part)
    text = drover("get", "-out", "hcl", "form").out
    case.contains(text, 'path         = "form"')
    case.contains(text, '  "we ird" = "a\\"b\\\\c"\n')
    case.contains(text, '  lines    = "a\\nb"\n')
    case.contains(drover("put", "-force", "-out", "none", "form", "k=v").out, 'The variable "form" is written with index')
    case.contains(drover("put", "-force", "-out", "table", "form", "k=v").out, "k                    = v")
    for words in (("put", "-out", "x", "form", "k=" + SECRET), ("get", "-out", "terse", "form"), ("list", "-out", "hcl")):
        says("-out must be one of", *words)
    case.equal(drover("get", "-out", "go-template", "-template", "{{.Path}}:{{range $k, $v := .Items}} {{$k}}={{$v}}{{end}}", "form").out, "form: k=v\n")
    case.equal(drover("list", "-out", "go-template", "-template", "{{range .}}{{.Namespace}}/{{.Path}}{{end}}", "form").out, "default/form\n")
    case.equal(drover("put", "-force", "-out", "go-template", "-template", "{{.Items.k | len}}", "form", "k=" + SECRET).out, "%d\n" % len(SECRET))
    for words in (("-out", "go-template"), ("-template", "{{.Path}}"), ("-out", "json", "-template", "{{.Path}}")):
        for verb in ("get", "list", "put"):
            says("-template and -out go-template need each other", verb, *words, "form", *(["k=v"] if verb == "put" else []))
    says('-template: execute: template: :1:8', "get", "-out", "go-template", "-template", "{{.Items.k.x}}", "form")
    says('-template: parse: template: :1', "get", "-out", "go-template", "-template", "{{", "form")
    says("no web interface", "list", "-ui")
    says("-in must be one of", "put", "-in", "xml", "form", "-", stdin=SECRET)
    # On a terminal it is a table.
    leader, follower = pty.openpty()
    done = subprocess.run([build_dir() + "/drover", "var", "get", "form"], env=dict(os.environ, DROVER_ADDR="unix://" + node.socket_path),
                          stdout=follower, stdin=subprocess.DEVNULL, check=False)
    os.close(follower)
    text = ""
    with contextlib.suppress(OSError):  # at the end
        while data := os.read(leader, 4096):
            text += data.decode()
    os.close(leader)
    case.equal((done.returncode, "Check Index" in text, "{" in text), (0, True, False), text)
    purge("form")


def test_examples():
    for form in ("hcl", "json"):
        path = "%s/spec.nv.%s" % (node.base, form)
        drover("init", "-quiet", "-out", form, path)
        drover("put", "example/" + form, "@" + path)
        case.equal(items("example/" + form), {"key1": "value 1", "key2": "value 2"})
        says("exists already", "init", "-out", form, path)
    says("-out must be one of", "init", "-out", "xml")
    purge("example/hcl", "example/json")


def start(*words):
    return subprocess.Popen([build_dir() + "/drover", "var", "lock", *words], env=dict(os.environ, SHELL="/bin/sh", DROVER_ADDR="unix://" + node.socket_path),
                            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def held(path):
    found = node.request("GET", "/v1/var/" + path)
    return found.status == 200 and found.json.get("Lock")


def test_a_command_runs_while_the_lock_is_held():
    drover("put", "lock", "k=kept")
    r = drover("lock", "lock", "echo", "one;", "echo two; exit 7", code=7)
    case.equal((r.out, held("lock"), items("lock")), ("one\ntwo\n", None, {"k": "kept"}))
    r = drover("lock", "-shell=false", "lock", "echo", "a;", "b")
    case.equal(r.out, "a; b\n")
    case.contains(drover("lock", "-shell=false", "lock", "/nothing", code=127).err, "run /nothing")
    case.contains(drover("lock", "-verbose", "lock", "true").err, "the lock is acquired")
    spec = write("lock.json", json.dumps({"Path": "new/lock", "Items": {"k": "spec"}, "Lock": {"TTL": "20s", "LockDelay": "1s"}}))
    first = start("@" + spec, "sleep 1000")
    found = case.until(lambda: held("new/lock"), 30, "the lock to be held")
    case.equal((found["TTL"], found["LockDelay"], items("new/lock")), ("20s", "1s", {"k": "spec"}))
    says("another process holds its lock", "put", "-force", "new/lock", "k=" + SECRET)
    says("another process holds its lock", "purge", "new/lock")
    r = drover("lock", "-early-return", "new/lock", "echo no")
    case.equal((r.out, "another holds the lock" in r.err), ("", True))
    # A second one waits; it gets the lock when the first one's command was ended by a signal, which is passed on.
    second = start("-backoff", "100ms", "-ttl", "30s", "-delay", "1m", "new/lock", "echo second")
    first.send_signal(signal.SIGTERM)
    case.equal((first.wait(case.LEAST_S), second.communicate(timeout=case.LEAST_S)[0], second.returncode), (128 + 15, "second\n", 0))
    case.equal((held("new/lock"), items("new/lock")), (None, {"k": "spec"}))
    says("no command", "lock", "x", "@" + spec)
    says("-ttl must be a time", "lock", "-ttl", "x", "lock", "true")
    says("10s to 24h", "lock", "-ttl", "1s", "lock", "true")
    purge("lock", "new/lock")


def test_a_command_ends_when_its_lock_is_lost():
    run = start("-ttl", "10s", "lost", 'trap "echo ended; exit 3" TERM; while :; do sleep 0.1; done')
    lock = case.until(lambda: held("lost"), 30, "the lock to be held")
    answer = node.request("PUT", "/v1/var/lost?lock-release", {"Lock": {"ID": lock["ID"]}})
    case.equal(answer.status, 200)
    out, err = run.communicate(timeout=case.LEAST_S)
    case.equal((run.returncode, out, "the lock is lost" in err), (1, "ended\n", True), err)
    # The lock survives a restart of the agent.
    run = start("-ttl", "10s", "kept", "sleep 12; echo done")
    lock = case.until(lambda: held("kept"), 30, "the lock to be held")
    node.replace_supervisor()
    case.equal(held("kept"), lock)
    out, err = run.communicate(timeout=case.LEAST_S)
    case.equal((run.returncode, out, held("kept")), (0, "done\n", None), err)
    # Without an agent it cannot be renewed.
    run = start("-ttl", "10s", "-max-retry", "2", "kept", "sleep 1000")
    case.until(lambda: held("kept"), 30, "the lock to be held")
    node.kill_launcher()
    out, err = run.communicate(timeout=case.LEAST_S)
    node.start()
    node.wait_ready()
    case.equal((run.returncode, "cannot be renewed" in err), (1, True), err)


with api.Node() as node:
    case.run(globals())
