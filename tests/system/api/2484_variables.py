#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Variables of the embedded server: writing with and without an index, reading, lists, paths, limits, namespaces, queries that wait, locks
and how they end, a crash, a lost key, and a database that has garbage."""
import contextlib
import json
import os
import sqlite3
import threading
import time

from lib import api, case, state

SECRET = "s3cr3t-0f-a-variable"
LOST = "state/seal.key is not the key they were encrypted with"


def put(path, items=None, status=200, query="", **more):
    answer = node.request("PUT", "/v1/var/%s%s" % (path, query), dict({"Items": items or {"k": "v"}}, **more))
    case.equal(answer.status, status, answer.text)
    return answer.json if status in (200, 409) else answer.text


def get(path, query=""):
    return node.ask("/v1/var/%s%s" % (path, query))


def lock(path, operation, status=200, lock_id=None, **more):
    body = dict(more, **({"Lock": {"ID": lock_id}} if lock_id else {}))
    answer = node.request("PUT", "/v1/var/%s?lock-%s" % (path, operation), body)
    case.equal(answer.status, status, answer.text)
    return answer


def paths(query=""):
    return [v["Path"] for v in node.ask("/v1/vars" + query)]


def test_a_variable_is_written_read_and_deleted():
    made = put("a/b", {"user": "me", "empty": "", "": "no key", "lines": "a\nb\"\u20ac"})
    case.equal({k: v for k, v in made.items() if k in ("Namespace", "Path", "Items")},
               {"Namespace": "default", "Path": "a/b", "Items": {"user": "me", "empty": "", "": "no key", "lines": "a\nb\"\u20ac"}})
    case.equal((made["CreateIndex"], made["CreateTime"]), (made["ModifyIndex"], made["ModifyTime"]))
    answer = node.request("GET", "/v1/var/a/b")
    case.equal((answer.json, int(answer.headers["X-Nomad-Index"]) >= made["ModifyIndex"]), (made, True))
    changed = put("a/b", {"other": "x"})
    case.equal((changed["Items"], changed["CreateIndex"], changed["CreateTime"], changed["ModifyIndex"] > made["ModifyIndex"]),
               ({"other": "x"}, made["CreateIndex"], made["CreateTime"], True))
    answer = node.request("DELETE", "/v1/var/a/b")
    case.equal((answer.status, answer.body), (204, b""))
    node.refused(404, "variable not found", "GET", "/v1/var/a/b")
    case.equal(node.request("DELETE", "/v1/var/a/b").status, 204)


def test_the_path_and_the_namespace_of_the_request_and_the_body():
    node.do("PUT", "/v1/namespace", {"Name": "dev"})
    case.equal(put("a", Path="other")["Path"], "a")
    case.equal(put("n", {"in": "dev"}, query="?namespace=dev")["Namespace"], "dev")
    case.equal(put("n", {"in": "default"}, query="?namespace=dev", Namespace="default")["Namespace"], "default")
    case.equal((get("n")["Items"], get("n", "?namespace=dev")["Items"]), ({"in": "default"}, {"in": "dev"}))
    case.contains(put("a", status=400, query="?namespace=none"), 'nonexistent namespace "none"')
    put("a", status=400, query="?namespace=*")
    node.refused(404, "variable not found", "GET", "/v1/var/n?namespace=*")
    node.refused(409, 'has a variable: "n"', "DELETE", "/v1/namespace/dev")
    node.request("DELETE", "/v1/var/n?namespace=dev")
    node.do("DELETE", "/v1/namespace/dev")
    for path in ("a", "n"):
        node.request("DELETE", "/v1/var/" + path)


def test_an_index_is_checked():
    first = put("cas", query="?cas=0")
    case.equal(put("cas", status=409, query="?cas=0"), first)
    case.equal(put("cas", status=409, query="?cas=%d" % (first["ModifyIndex"] + 1)), first)
    second = put("cas", {"k": "w"}, query="?cas=%d" % first["ModifyIndex"])
    none = {"Namespace": "default", "Path": "none", "CreateIndex": 0, "CreateTime": 0, "ModifyIndex": 0, "ModifyTime": 0}
    case.equal(put("none", status=409, query="?cas=7"), none)
    for query, body in (("cas=1", second), ("cas=0", second)):
        answer = node.request("DELETE", "/v1/var/cas?" + query)
        case.equal((answer.status, answer.json, int(answer.headers["X-Nomad-Index"])), (409, body, second["ModifyIndex"]))
    case.equal(node.request("DELETE", "/v1/var/none?cas=7").json, none)
    case.equal(node.request("DELETE", "/v1/var/none?cas=0").status, 204)
    case.equal(node.request("DELETE", "/v1/var/cas?cas=%d" % second["ModifyIndex"]).status, 204)
    put("x", status=400, query="?cas=x")
    node.refused(400, "not a number", "DELETE", "/v1/var/x?cas=x")


def test_paths():
    fine = ["a" * 128, "a/" * 63 + "bb", "~_-9", "nomad/jobs", "nomad/jobs/web/group/task", "nomad/sentinel/x", "nomad/job-templates/x", "nomadic"]
    for path in fine:
        case.equal((put(path)["Path"], get(path)["Path"]), (path, path))
    case.equal(sorted(paths()), sorted(fine))
    for path in ("a" * 129, "a.b", "a%20b", "a@b", "%C3%A4", "nomad", "nomad/x", "nomad/job-templates",
                 "nomad/job-templates/x/y", "nomad/jobsx"):
        put(path, status=400)
    for path in fine:
        node.request("DELETE", "/v1/var/" + path)


def test_what_is_no_variable():
    for body in ({}, {"Items": {}}, {"Items": None}, {"Items": {"k": 5}}, {"Items": {"k": ["v"]}}, {"Items": ["k"]}, [], "x", {"Items": {"k": "v"}, "Lock": {"TTL": "20s"}}):
        answer = node.request("PUT", "/v1/var/x", body)
        case.equal(answer.status, 400, "%r: %s" % (body, answer.text))
    for body in (b"", b"{", b'{"Items":{"k":"v","k":"w"}}', b'{"Items":{"k":"\\u0000"}}', b'{"Items":{"k":"\xff"}}', b"\0" * 100, b"[" * 100000):
        case.equal(node.request("PUT", "/v1/var/x", body).status, 400, repr(body[:40]))
    node.refused(405, "Invalid method", "PUT", "/v1/vars", {})
    case.equal(paths(), [])


def test_the_limit_of_its_size():
    put("big", {"k": "x" * 65535})
    case.equal(len(get("big")["Items"]["k"]), 65535)
    case.contains(put("big", {"kk": "x" * 65535}, status=400), "limited to 64 KiB")
    case.contains(put("big", {str(i): "" for i in range(20000)}, status=400), "limited to 64 KiB")
    many = {"%05d" % i: "" for i in range(13107)}
    put("big", many)
    case.equal(get("big")["Items"], many)
    node.request("DELETE", "/v1/var/big")


def test_lists():
    node.do("PUT", "/v1/namespace", {"Name": "dev"})
    node.do("PUT", "/v1/namespace", {"Name": "dev-2"})
    for path in ("b", "a/b", "a", "ab"):
        put(path, {"k": SECRET})
    put("a/c", query="?namespace=dev")
    put("a/d", query="?namespace=dev-2")
    answer = node.request("GET", "/v1/vars?namespace=*")
    case.equal([(v["Namespace"], v["Path"]) for v in answer.json],
               [("default", "a"), ("default", "a/b"), ("default", "ab"), ("default", "b"), ("dev-2", "a/d"), ("dev", "a/c")])
    case.equal(({"Items" in v for v in answer.json}, SECRET in answer.text), ({False}, False))
    case.equal(paths("?prefix=a"), ["a", "a/b", "ab"])
    case.equal(paths("?prefix=a/"), ["a/b"])
    case.equal((paths("?namespace=dev"), paths("?namespace=none"), paths("?prefix=z")), (["a/c"], [], []))
    case.equal(paths("?filter=Path%20contains%20%22b%22"), ["a/b", "ab", "b"])
    case.equal(paths("?filter=VariableMetadata.Path==%22ab%22"), ["ab"])
    node.refused(400, 'no field "Items"', "GET", "/v1/vars?filter=Items.k==%22v%22")
    for query, wanted in (("namespace=*", 6), ("prefix=a", 3), ("namespace=*&reverse=true", 6), ("filter=Path!=%22a%22", 3)):
        found, token, whole = [], "", [(v["Namespace"], v["Path"]) for v in node.ask("/v1/vars?" + query)]
        while token is not None:
            answer = node.request("GET", "/v1/vars?%s&per_page=2&next_token=%s" % (query, token))
            found += [(v["Namespace"], v["Path"]) for v in answer.json]
            token = answer.headers["X-Nomad-NextToken"]
            case.equal(SECRET in answer.text, False)
        case.equal((found, len(found)), (whole, wanted), "pages of " + query)
    case.equal(node.do("PUT", "/v1/search", {"Prefix": "a", "Context": "vars"})["Matches"], {"vars": ["a", "a/b", "ab"]})
    for namespace, path in (("dev", "a/c"), ("dev-2", "a/d")):
        node.request("DELETE", "/v1/var/%s?namespace=%s" % (path, namespace))
        node.do("DELETE", "/v1/namespace/" + namespace)
    for path in ("b", "a/b", "a", "ab"):
        node.request("DELETE", "/v1/var/" + path)


class Waiting:
    """A query that waits for a change."""
    def __init__(self, path):
        index = node.request("GET", path).headers["X-Nomad-Index"]
        self.answer = None
        self.thread = threading.Thread(target=self.ask, args=("%s%sindex=%s&wait=10m" % (path, "&" if "?" in path else "?", index),), daemon=True)
        self.thread.start()

    def ask(self, path):
        self.answer = node.request("GET", path, timeout=2 * case.LEAST_S)

    def ended(self):
        self.thread.join(2 * case.LEAST_S)
        return self.answer


def test_queries_that_wait():
    missing, some = Waiting("/v1/var/w"), Waiting("/v1/vars")
    made = put("w")
    case.equal((missing.ended().json, [v["Path"] for v in some.ended().json]), (made, ["w"]))
    changed, other = Waiting("/v1/var/w"), Waiting("/v1/var/other")
    put("w", {"k": "new"})
    case.equal(changed.ended().json["Items"], {"k": "new"})
    other.ended()
    gone, some = Waiting("/v1/var/w"), Waiting("/v1/vars")
    node.request("DELETE", "/v1/var/w")
    case.equal((gone.ended().status, some.ended().json), (404, []))


def test_a_lock_is_acquired_renewed_and_released():
    put("lock", {"k": "kept"})
    held = lock("lock", "acquire").json
    lock_id = held["Lock"]["ID"]
    case.equal((held["Lock"], held["Items"]), ({"ID": lock_id, "TTL": "15s", "LockDelay": "15s"}, {"k": "kept"}))
    case.equal((get("lock"), node.ask("/v1/vars")[0]["Lock"]), (held, held["Lock"]))
    named = {"Namespace": "default", "Path": "lock", "CreateIndex": 0, "CreateTime": 0, "ModifyIndex": 0, "ModifyTime": 0}
    case.equal(lock("lock", "acquire", 409).json, named)
    case.equal((put("lock", status=409), put("lock", status=409, Lock={"ID": "wrong"})), (named, named))
    case.equal(node.request("DELETE", "/v1/var/lock").json, named)
    # Its holder changes it, and the lock stays as it is.
    changed = put("lock", {"k": "by the holder"}, Lock={"ID": lock_id})
    case.equal((changed["Lock"], get("lock")), (held["Lock"], changed))
    put("lock", status=400, Lock={"ID": lock_id, "TTL": "20s"})
    renewed = lock("lock", "renew", lock_id=lock_id).json
    case.equal((renewed["Lock"], renewed["ModifyIndex"], "Items" in renewed), (held["Lock"], changed["ModifyIndex"], False))
    lock("lock", "renew", 409, lock_id="wrong")
    lock("lock", "release", 409, lock_id="wrong")
    lock("lock", "release", 400, lock_id=lock_id, Items={"k": "v"})
    # Acquired again by its holder, with items and a longer time.
    again = lock("lock", "acquire", **{"Items": {"k": "again"}, "Lock": {"ID": lock_id, "TTL": "1h", "LockDelay": "1m30s"}}).json
    case.equal((again["Lock"], again["Items"]), ({"ID": lock_id, "TTL": "1h0m0s", "LockDelay": "1m30s"}, {"k": "again"}))
    waiting = Waiting("/v1/var/lock")
    released = lock("lock", "release", lock_id=lock_id).json
    case.equal(("Lock" in released, "Items" in released, released["ModifyIndex"] > again["ModifyIndex"], released["ModifyTime"]),
               (False, False, True, again["ModifyTime"]))
    case.equal(waiting.ended().json, dict(released, Items={"k": "again"}))
    # Who does not know yet that the lock is over changes nothing.
    put("lock", status=409, Lock={"ID": lock_id})
    lock("lock", "renew", 409, lock_id=lock_id)
    lock("lock", "release", 409, lock_id=lock_id)
    node.request("DELETE", "/v1/var/lock")


def test_requests_for_locks_that_are_refused():
    for body in ({"Lock": {"TTL": "9s"}}, {"Lock": {"TTL": "25h"}}, {"Lock": {"TTL": "-15s"}}, {"Lock": {"LockDelay": "-1s"}}, {"Lock": {"TTL": "x"}},
                 {"Lock": 5}, {"Items": {"k": "x" * 70000}}):
        case.equal(node.request("PUT", "/v1/var/x?lock-acquire", body).status, 400, repr(body)[:80])
    for query in ("lock-acquire&lock-renew", "lock-acquire&cas=1", "lock-release&lock-renew"):
        case.equal(node.request("PUT", "/v1/var/x?" + query, {}).status, 400, query)
    for path in ("a.b", "nomad/x"):
        lock(path, "acquire", 400)
    for operation in ("renew", "release"):
        lock("none", operation, 400)
        lock("none", operation, 404, lock_id="x")
    case.equal(paths(), [])


def test_a_lock_that_is_not_renewed_ends():
    """The lock cannot be renewed in its delay, and is removed after it; the shortest TTL is 10 s, and a lock lasts twice as long."""
    body = {"Items": {"k": "kept"}, "Lock": {"TTL": "10s", "LockDelay": "1s"}}
    ids = {path: lock(path, "acquire", **body).json["Lock"]["ID"] for path in ("ends", "renewed")}
    slow = lock("slow", "acquire", **{"Lock": {"TTL": "10s", "LockDelay": "10m"}}).json["Lock"]["ID"]
    end = time.monotonic() + 2 * case.LEAST_S
    while "Lock" in get("ends") and time.monotonic() < end:
        lock("renewed", "renew", lock_id=ids["renewed"])
        time.sleep(0.5)
    case.equal((get("ends").get("Lock"), get("ends")["Items"], get("renewed")["Lock"]["ID"]), (None, {"k": "kept"}, ids["renewed"]))
    # It is lost, and its delay is not over.
    case.contains(lock("slow", "renew", 409, lock_id=slow).text, "not renewed in time")
    lock("slow", "acquire", 409)
    lock("slow", "release", lock_id=slow)
    lock("ends", "acquire")
    node.replace_supervisor()
    case.equal([get(p)["Lock"]["TTL"] for p in ("ends", "renewed")], ["15s", "10s"])
    lock("renewed", "renew", lock_id=ids["renewed"])
    for path in ("ends", "renewed", "slow"):
        if "Lock" in get(path):
            lock(path, "release", lock_id=get(path)["Lock"]["ID"])
        node.request("DELETE", "/v1/var/" + path)


def test_what_was_acknowledged_is_there_after_a_crash():
    made = {"crash/%d" % i: put("crash/%d" % i, {"k": "%d" % i}) for i in range(20)}
    node.request("DELETE", "/v1/var/crash/7")
    del made["crash/7"]
    index = made["crash/19"]["ModifyIndex"]
    node.replace_supervisor()
    case.equal({p: get(p) for p in paths()}, made)
    case.equal(put("crash/0")["ModifyIndex"] > index, True, "a later index")
    for path in made:
        node.request("DELETE", "/v1/var/" + path)


def stopped(change):
    node.kill_launcher()
    change()
    node.start()
    node.wait_ready()


def test_items_are_only_in_sealed_form():
    put("sealed", {"k": SECRET})
    case.equal(state.files_with(node, SECRET), [])
    (json_text, items), = state.query(node, "SELECT json, items FROM variable WHERE path = 'sealed'")
    case.equal(set(json.loads(json_text)), {"Namespace", "Path", "CreateIndex", "CreateTime", "ModifyIndex", "ModifyTime"})
    case.contains(state.unseal(node, "variable items of default/sealed", items).decode(), "k\0%s\0" % SECRET)


def test_without_its_key_a_variable_is_listed_and_can_be_replaced():
    put("other", {"k": "other"})
    lines = len(node.log())
    key = node.data + "/state/seal.key"
    stopped(lambda: os.rename(key, node.base + "/kept"))
    case.contains(node.log()[lines:], "the items of variables cannot be read, because " + LOST)
    node.refused(500, LOST, "GET", "/v1/var/sealed")
    case.equal(paths(), ["other", "sealed"])
    case.equal("Items" in put("sealed", status=409, query="?cas=0"), False)
    put("other", {"k": "again"})
    case.equal(get("other")["Items"], {"k": "again"})
    node.refused(500, LOST, "GET", "/v1/var/sealed")
    case.equal(node.request("DELETE", "/v1/var/sealed").status, 204)


def write_rows(change):
    """Calls change(db) with the database of the agent, which is stopped meanwhile."""
    def write():
        with contextlib.closing(sqlite3.connect(node.data + "/state/state.db", isolation_level=None)) as db:
            db.execute("BEGIN")
            change(db)
            db.execute("COMMIT")
        for name in ("state.db", "state.db-wal"):
            if os.path.exists(node.data + "/state/" + name):
                os.chown(node.data + "/state/" + name, os.stat(node.data + "/state").st_uid, -1)
        if os.path.exists(node.data + "/state/state.db-shm"):
            os.unlink(node.data + "/state/state.db-shm")
    stopped(write)


def test_the_limit_of_their_number():
    def fill(db):
        (there,), = db.execute("SELECT count(*) FROM variable")
        db.executemany("INSERT INTO variable VALUES('default', 'full/' || ?, '{}', x'00')", [(str(n),) for n in range(65535 - there)])
    write_rows(fill)
    put("full/last")
    for query in ("", "?lock-acquire"):
        case.equal(put("full/more", status=507, query=query), "the agent has 65536 variables, which is the limit: delete some first")
    put("full/last", {"k": "another"})
    case.equal(node.request("DELETE", "/v1/var/full/0").status, 204)
    put("full/more")
    put("full/0", status=507)
    write_rows(lambda db: db.execute("DELETE FROM variable WHERE path GLOB 'full/*'"))
    put("full/0")
    case.equal(node.request("DELETE", "/v1/var/full/0").status, 204)


def test_the_limit_of_their_size():
    large = {"k": "x" * 60000}
    write_rows(lambda db: db.executemany("INSERT INTO variable VALUES('default', 'full/' || ?, '{}', zeroblob(1 << 20))", [(str(n),) for n in range(63)]))
    for n in range(17):
        put("full/a%d" % n, large)
    case.equal(put("full/a17", large, status=507), "all variables of the agent are limited to 64 MiB together: delete some first")
    put("full/a0", {"k": "x"})
    put("full/a0", large)
    put("full/a17", {"k": "x" * 25000})
    put("full/a0", {"k": "x" * 65000}, status=507)
    case.equal(get("full/a0")["Items"], large)
    case.equal(node.request("DELETE", "/v1/var/full/0").status, 204)
    for n in range(17):
        put("full/b%d" % n, large)
    put("full/b17", large, status=507)
    node.replace_supervisor()
    put("full/b17", large, status=507)
    write_rows(lambda db: db.execute("DELETE FROM variable WHERE path GLOB 'full/*'"))


def test_rows_that_are_garbage_are_left_out():
    put("good", {"k": "good"})

    def spoil(db):
        for path, text, items in (("a", "{", b"x"), ("b", "[]", b""), ("c", "{}", None), ("d", '{"Path":"good","Lock":{}}', b"x")):
            db.execute("INSERT INTO variable VALUES('default', ?, ?, ?)", (path, text, items))
        db.execute("INSERT INTO variable VALUES('gone', 'e', '{}', ?)", (b"\1garbage",))
    write_rows(spoil)
    case.equal([(v["Namespace"], v["Path"]) for v in node.ask("/v1/vars?namespace=*")], [("default", "c"), ("default", "d"), ("default", "good"), ("default", "other"), ("gone", "e")])
    case.equal(get("good")["Items"], {"k": "good"})
    for path in ("c", "d", "e?namespace=gone"):
        node.refused(500, LOST, "GET", "/v1/var/" + path)
    case.contains(node.log(), "state.db: variable a is ignored")
    case.equal(put("a", {"k": "new"})["Items"], {"k": "new"})


with api.Node() as node:
    case.run(globals())
