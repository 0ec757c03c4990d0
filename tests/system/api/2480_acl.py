#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""An agent that works alone with acl { enabled = true }: its first token, policies, roles and tokens, and what each request needs."""
import base64
import json
import os
import re
import urllib.parse
import uuid

from lib import agent, api, case, screen

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))
HOUR = 3600
ACL = 'acl { enabled = true }\n'
PATHS = 'plugin "docker" { config { volumes { enabled = true } } }\nclient { host_volume "data" { path = "/srv/data" }\nhost_volume "other" { path = "/srv/other" } }\n'


def read(path):
    with open(ROOT + "/" + path, encoding="utf-8") as f:
        return f.read()


class Node(api.Node):
    """A request may have another token than the node's; "": none."""

    def open(self, method, path, body=None, token=None, bearer=False):
        """Returns the connection and its answer, whose body was not read."""
        c = api.Connection(self, case.LEAST_S)
        secret = self.token if token is None else token
        headers = {} if not secret else {"Authorization": "Bearer " + secret} if bearer else {"X-Nomad-Token": secret}
        c.request(method, path, body if body is None or isinstance(body, bytes) else json.dumps(body).encode(), headers)
        return c, c.getresponse()

    def request(self, method, path, body=None, timeout=case.LEAST_S, token=None, bearer=False):
        c, response = self.open(method, path, body, token, bearer)
        try:
            return api.Answer(response)
        finally:
            c.close()

    def status(self, *args, **kwargs):
        c, response = self.open(*args, **kwargs)
        c.close()
        return response.status


def start(**more):
    return Node(args=agent.config_args(ACL + PATHS), **more)


def bootstrap():
    made = node.do("POST", "/v1/acl/bootstrap")
    node.token = made["SecretID"]
    return made


def policy(name, rules, **more):
    node.do("POST", "/v1/acl/policy/" + name, {"Name": name, "Rules": rules, **more})
    return name


def token(*policies, **more):
    return node.do("POST", "/v1/acl/token", {"Name": "of " + "-".join(policies), "Type": "client", "Policies": list(policies), **more})


def secret_with(rules, name="tried"):
    return token(policy(name, rules))["SecretID"]


def namespace(name, *caps):
    return 'namespace "%s" { capabilities = %s }\n' % (name, json.dumps(caps))


# --- the first token ---

def test_without_a_token_the_refusal_says_what_to_do():
    node.refused(403, "Permission denied: the request has no ACL token, and none has been made yet: `drover acl bootstrap`", "GET", "/v1/jobs")
    case.equal(node.ask("/v1/agent/health")["client"]["ok"], True)
    case.equal((node.ask("/v1/regions"), node.ask("/.well-known/jwks.json")), (["global"], {"keys": []}))
    case.equal(node.ask("/v1/namespaces"), [])
    self = node.ask("/v1/acl/token/self")
    case.equal((self["AccessorID"], self["Policies"]), ("anonymous", ["anonymous"]))


def test_the_first_token_is_made_once():
    made = bootstrap()
    case.equal((made["Name"], made["Type"], made["Global"], made["Policies"]), ("Bootstrap Token", "management", True, None))
    node.refused(400, "ACL bootstrap already done (reset index: %d)" % made["CreateIndex"], "POST", "/v1/acl/bootstrap")
    case.equal(node.ask("/v1/acl/token/self")["SecretID"], made["SecretID"])
    node.refused(403, "Permission denied: the request has no ACL token (", "GET", "/v1/jobs?x=" + "1") if not node.token else None
    answer = node.request("GET", "/v1/jobs", token="")
    case.equal((answer.status, answer.text.startswith("Permission denied: the request has no ACL token (-token")), (403, True))


def test_root_may_reset_the_first_token():
    done = node.ask("/v1/acl/token/self")
    path = node.data + "/state/acl-bootstrap-reset"
    for text, reason in (("0", "already done"), ("nonsense", "already done"), (str(done["CreateIndex"] + 1), "Invalid bootstrap reset index")):
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        node.refused(400, reason, "POST", "/v1/acl/bootstrap")
    with open(path, "w", encoding="utf-8") as f:
        f.write("%d\n" % done["CreateIndex"])
    node.refused(400, "not a UUID", "POST", "/v1/acl/bootstrap", {"BootstrapSecret": "secret"})
    chosen = str(uuid.uuid4())
    again = node.do("POST", "/v1/acl/bootstrap", {"BootstrapSecret": chosen})
    case.equal((again["SecretID"], again["AccessorID"] == done["AccessorID"]), (chosen, False))
    node.refused(400, "Invalid bootstrap reset index", "POST", "/v1/acl/bootstrap")
    os.unlink(path)
    case.equal(sorted(t["Name"] for t in node.ask("/v1/acl/tokens")), ["Bootstrap Token"] * 2)
    node.do("DELETE", "/v1/acl/token/" + again["AccessorID"])


# --- policies, roles, tokens ---

def test_policies():
    policy("reads", 'namespace "default" { policy = "read" }', Description="to read")
    found = node.ask("/v1/acl/policy/reads")
    case.equal((found["Rules"], found["Description"], found["JobACL"]), ('namespace "default" { policy = "read" }', "to read", None))
    policy("reads", 'namespace "default" { policy = "write" }')
    again = node.ask("/v1/acl/policy/reads")
    case.equal((again["CreateIndex"], again["ModifyIndex"] > found["ModifyIndex"]), (found["CreateIndex"], True))
    case.equal([(p["Name"], "Rules" in p) for p in node.ask("/v1/acl/policies", prefix="re")], [("reads", False)])
    for body, reason in (({"Name": "other"}, "does not match"), ({"Name": "reads", "Rules": 'namespce "a" { }'}, "namespce"),
                         ({"Name": "reads", "Rules": 'namespace "a" { policy = "all" }'}, '"all"'),
                         ({"Name": "reads", "Rules": "{"}, ""), ({"Name": "reads", "Description": "x" * 257}, "longer than 256"),
                         ({"Name": "reads", "JobACL": {"JobID": "j"}}, "JobACL"), (b"[]", ""), (b"", "")):
        node.refused(400, reason, "POST", "/v1/acl/policy/reads", body)
    node.refused(400, "letters", "POST", "/v1/acl/policy/a_b", {"Name": "a_b"})
    node.do("DELETE", "/v1/acl/policy/reads")
    node.do("DELETE", "/v1/acl/policy/reads")
    node.refused(404, "ACL policy not found", "GET", "/v1/acl/policy/reads")


def test_roles():
    policy("one", ""), policy("two", "")
    role = node.do("POST", "/v1/acl/role", {"Name": "both", "Policies": [{"Name": "one"}, {"Name": "two"}, {"Name": "one"}]})
    case.equal([p["Name"] for p in role["Policies"]], ["one", "two"])
    case.equal(node.ask("/v1/acl/role/" + role["ID"]), role)
    case.equal(node.ask("/v1/acl/role/name/both"), role)
    node.do("POST", "/v1/acl/role/" + role["ID"], {"ID": role["ID"], "Name": "renamed", "Policies": [{"Name": "two"}]})
    case.equal([(r["Name"], r["ID"]) for r in node.ask("/v1/acl/roles")], [("renamed", role["ID"])])
    for body, reason in (({"Name": "x"}, "at least one policy"), ({"Name": "x", "Policies": [{"Name": "three"}]}, "cannot find policy three"),
                         ({"Name": "renamed", "Policies": [{"Name": "one"}]}, "already exists"),
                         ({"ID": str(uuid.uuid4()), "Name": "x", "Policies": [{"Name": "one"}]}, "cannot find role")):
        node.refused(400, reason, "POST", "/v1/acl/role", body)
    node.refused(400, "does not match", "POST", "/v1/acl/role/" + role["ID"], {"Name": "x", "Policies": [{"Name": "one"}]})
    node.do("DELETE", "/v1/acl/role/" + role["ID"])
    node.refused(404, "not found", "DELETE", "/v1/acl/role/" + role["ID"])


def test_tokens():
    role = node.do("POST", "/v1/acl/role", {"Name": "of-one", "Policies": [{"Name": "one"}]})
    made = token("two", Roles=[{"Name": "of-one"}, {"ID": role["ID"]}], ExpirationTTL="1h")
    case.equal((made["Roles"], made["ExpirationTTL"], "ExpirationTime" in made), ([{"ID": role["ID"], "Name": "of-one"}], "1h", True))
    case.equal(node.ask("/v1/acl/token/" + made["AccessorID"]), made)
    listed = [t for t in node.ask("/v1/acl/tokens") if t["AccessorID"] == made["AccessorID"]]
    case.equal(["SecretID" in t for t in listed], [False])
    update = {"AccessorID": made["AccessorID"], "Name": "renamed", "Type": "client", "Policies": ["one"], "SecretID": str(uuid.uuid4())}
    after = node.do("POST", "/v1/acl/token/" + made["AccessorID"], update)
    case.equal([after[k] for k in ("SecretID", "CreateTime", "ExpirationTime")], [made[k] for k in ("SecretID", "CreateTime", "ExpirationTime")])
    case.equal((after["Name"], after["Policies"], after["Roles"]), ("renamed", ["one"], None))
    for body, reason in (({"Type": "client"}, "missing policies or roles"), ({"Type": "x"}, "client or management"),
                         ({"Type": "management", "Policies": ["one"]}, "cannot be associated"),
                         ({"Type": "client", "Policies": ["one"], "ExpirationTTL": "59s"}, "less than 1m0s"),
                         ({"Type": "client", "Policies": ["one"], "ExpirationTTL": "25h"}, "more than 24h0m0s"),
                         ({"Type": "client", "Policies": ["one"], "ExpirationTTL": "-1h"}, "negative"),
                         ({"Type": "client", "Policies": ["one"], "ExpirationTTL": "soon"}, "no duration"),
                         ({"Type": "client", "Roles": [{"Name": "none"}]}, "cannot find role none"),
                         ({"Type": "client", "Policies": ["one"], "Name": "x" * 257}, "too long"),
                         ({"Type": "management", "AccessorID": str(uuid.uuid4()), "SecretID": str(uuid.uuid4())}, "cannot find token"),
                         ({"Type": "client", "Policies": ["one"], "AccessorID": str(uuid.uuid4()), "SecretID": made["SecretID"]}, "another token"),
                         ({**update, "Global": True}, "global"), ({**update, "ExpirationTTL": "2h"}, "TTL")):
        node.refused(400, reason, "POST", "/v1/acl/token", body)
    node.do("DELETE", "/v1/acl/token/" + made["AccessorID"])
    node.refused(400, "nonexistent", "DELETE", "/v1/acl/token/" + made["AccessorID"])
    node.refused(404, "not found", "GET", "/v1/acl/token/" + made["AccessorID"])
    case.equal(node.status("GET", "/v1/jobs", token=made["SecretID"]), 403)


def test_the_limits_of_the_expiration():
    limits = 'acl {\n  enabled = true\n  token_min_expiration_ttl = "1s"\n  token_max_expiration_ttl = "30h"\n}\n'
    with Node(args=agent.config_args(limits)) as other:
        other.token = other.do("POST", "/v1/acl/bootstrap")["SecretID"]
        other.do("POST", "/v1/acl/policy/p", {"Name": "p", "Rules": ""})
        for ttl, status in (("30h", 200), ("2s", 200), ("30h1s", 400), ("500ms", 400)):
            body = {"Name": "t", "Type": "client", "Policies": ["p"], "ExpirationTTL": ttl}
            case.equal(other.request("POST", "/v1/acl/token", body).status, status, ttl)
        case.equal(other.request("GET", "/.well-known/openid-configuration", token="").status, 404)


def test_what_is_not_supported_says_so():
    for method, path, reason in (("GET", "/v1/acl/auth-methods", "auth methods"), ("POST", "/v1/acl/login", "auth methods"),
                                 ("GET", "/v1/acl/binding-rules", "binding rules"), ("POST", "/v1/acl/token/onetime", "one-time tokens"),
                                 ("POST", "/v1/acl/token/onetime/exchange", "one-time tokens")):
        node.refused(501, reason, method, path)


def test_a_client_sees_its_own_token_policies_and_roles():
    role = node.ask("/v1/acl/role/name/of-one")
    made = token("two", Roles=[{"ID": role["ID"]}])
    other = token("two")
    for path, status in (("token/self", 200), ("token/" + made["AccessorID"], 200), ("token/" + other["AccessorID"], 403), ("token/none", 403),
                         ("tokens", 403), ("policy/one", 200), ("policy/two", 200), ("policy/anonymous", 404), ("policy/none", 403),
                         ("role/" + role["ID"], 200), ("role/name/of-one", 200), ("role/none", 403)):
        case.equal(node.status("GET", "/v1/acl/" + path, token=made["SecretID"]), status, path)
    for path in ("policies", "policy/self"):
        case.equal([p["Name"] for p in node.request("GET", "/v1/acl/" + path, token=made["SecretID"]).json], ["one", "two"], path)
    case.equal([r["Name"] for r in node.request("GET", "/v1/acl/roles", token=made["SecretID"]).json], ["of-one"])
    case.equal(node.request("GET", "/v1/acl/roles", token=other["SecretID"]).json, [])
    for secret in (str(uuid.uuid4()), "nonsense", "a.b.c", "x" * 5000, made["AccessorID"]):
        case.equal([node.status("GET", p, token=secret) for p in ("/v1/acl/token/self", "/v1/acl/policies", "/v1/namespaces", "/v1/jobs")], [403] * 4)


# --- the command ---

def drover(*words, code=0, token=None, stdin=None):
    r = node.drover(*words, code=code, env={"DROVER_TOKEN": node.token if token is None else token}, stdin=stdin)
    return r.out + r.err


def shown(text):
    return dict(re.findall(r"^(\w[\w ]*?) += (.*)$", text, re.M))


def test_the_command_manages_policies_roles_and_tokens():
    case.contains(drover("acl", "bootstrap", code=1), "already done")
    rules = 'namespace "default" {\n  policy = "read"\n}\n'
    path = node.base + "/rules.hcl"
    with open(path, "w", encoding="ascii") as f:
        f.write(rules)
    case.contains(drover("acl", "policy", "apply", "-description", "to read", "cli", path), 'Policy "cli" is applied')
    drover("acl", "policy", "apply", "-job", "j", "-group", "g", "cli-job", path)
    case.equal(node.ask("/v1/acl/policy/cli-job")["JobACL"], {"Namespace": "default", "JobID": "j", "Group": "g", "Task": ""})
    case.contains(drover("acl", "policy", "apply", "bad", path + "x", code=1), "rules.hclx")
    case.contains(drover("acl", "policy", "info", "cli"), 'policy = "read"')
    case.contains(drover("acl", "policy", "list"), "to read")
    role = shown(drover("acl", "role", "create", "-name", "cli", "-policy", "cli", "-policy", "cli-job"))
    case.equal(role["Policies"], "cli, cli-job")
    drover("acl", "role", "update", "-description", "changed", "-policy", "cli", role["ID"])
    case.equal(shown(drover("acl", "role", "info", "-by-name", "cli")), {**role, "Description": "changed", "Policies": "cli"})
    case.contains(drover("acl", "role", "list"), "changed")
    made = shown(drover("acl", "token", "create", "-name", "by hand", "-role-name", "cli", "-policy", "cli-job", "-ttl", "2h"))
    case.equal((made["Type"], made["Policies"], made["Roles"], "Expires" in made), ("client", "cli-job", "cli", True))
    after = shown(drover("acl", "token", "update", "-name", "renamed", made["Accessor ID"]))
    case.equal((after["Name"], after["Secret ID"], after["Roles"], after["Expires"]), ("renamed", made["Secret ID"], "cli", made["Expires"]))
    case.equal(shown(drover("acl", "token", "self", token=made["Secret ID"]))["Name"], "renamed")
    case.equal("Secret ID" in drover("acl", "token", "list") or made["Secret ID"] in drover("acl", "token", "list"), False)
    case.contains(drover("job", "status", token=made["Secret ID"]), "")
    case.contains(drover("node", "status", code=1, token=made["Secret ID"]), "Permission denied")
    case.contains(drover("node", "status", code=1, token=""), "Permission denied: the request has no ACL token")
    for words in ("policy list", "policy info cli", "role list", "role info " + role["ID"], "token list", "token info " + made["Accessor ID"], "token self"):
        for width in (60, 80):
            page = screen.Screen(["acl", *words.split()], width, {"DROVER_ADDR": "unix://" + node.socket_path, "DROVER_TOKEN": node.token})
            case.equal(page.code, 0, page.text)
            screen.check_fits(page, width, words)
    drover("acl", "token", "delete", made["Accessor ID"])
    case.contains(drover("job", "status", code=1, token=made["Secret ID"]), "Permission denied: the token does not exist")
    drover("acl", "role", "delete", role["ID"])
    drover("acl", "policy", "delete", "cli")
    drover("acl", "policy", "delete", "cli-job")


# --- what each request needs ---

# A policy that permits exactly this, by the words of acl_needs.def.
OUTSIDE = {"node:read": 'node { policy = "read" }', "node:write": 'node { policy = "write" }', "agent:read": 'agent { policy = "read" }',
           "agent:write": 'agent { policy = "write" }', "plugin:list": 'plugin { policy = "list" }', "plugin:read": 'plugin { policy = "read" }',
           "operator keyring-read": 'operator { capabilities = ["keyring-read"] }',
           "operator keyring-rotate": 'operator { capabilities = ["keyring-rotate"] }',
           "operator keyring-delete": 'operator { capabilities = ["keyring-delete"] }'}


def needs():
    return {name: words for name, words in re.findall(r'^ACL_NEED(?:_IN)?\((\w+),.*?"([^"]*)"\)', read("supervisor/acl/acl_needs.def"), re.M | re.S)}


def paths():
    """(method, pattern, permission) of each path that the agent answers."""
    rows = re.findall(r'^API_PATH\((\w+), *"(/[^"]*)", *\w+, *ACL_(\w+), *\w+, *(\w+), *(\w+),', read("supervisor/http/api_paths.def"), re.M)
    found = [row[:3] for row in rows if row[3:] != ("api_none", "api_none")]
    assert len(found) > 100, found
    return found


def capabilities(words):
    return re.findall(r"[a-z]+(?:-[a-z]+)+", words.replace("csi-list-volume, ", ""))


def rules_for(need, words):
    if words in OUTSIDE:
        return OUTSIDE[words]
    if words == "any capability":
        return namespace("default", "read-fs")
    rules = namespace("default", *(["alloc-exec", "alloc-node-exec"] if need in ("EXEC", "EXEC_NODE") else capabilities(words)[:1]))
    return rules + (OUTSIDE["plugin:read"] if "plugin:read" in words else "")


def body_for(need, pattern):
    if need in ("SUBMIT_JOB", "PLAN_JOB", "VALIDATE_JOB"):
        return {"Job": {"ID": "other", "Namespace": "default"}}
    if need == "REGISTER_VOLUME":
        return {"Volumes": [{"ID": "none", "Namespace": "default", "PluginID": "p"}]}
    return {"Prefix": "x"} if pattern == "/v1/search" else {}


def objects():
    node.register(api.job("walked", group={"Update": {"MaxParallel": 1, "HealthCheck": "task_states", "MinHealthyTime": 10**8,
                                                      "HealthyDeadline": 10**10, "ProgressDeadline": 2 * 10**10}}))
    alloc = node.wait_running("walked")[0]
    deployments = node.ask("/v1/deployments")
    return {"/v1/evaluation/": alloc["EvalID"], "/v1/deployment/": deployments[0]["ID"],
            "/v1/allocation/": alloc["ID"], "/v1/client/": alloc["ID"], "/v1/node/": alloc["NodeID"], "/v1/namespace/": "default"}


def target(pattern, known):
    at = next((value for prefix, value in known.items() if pattern.startswith(prefix)), "none")
    path = re.sub(r":\w+", urllib.parse.quote(at), pattern)
    if pattern == "/v1/job/:id/action":
        path += "?allocID=%s&task=t" % known["/v1/allocation/"]
    return path + ("?task=t&type=stdout" if "/fs/" in path or path.endswith("/exec") else "?type=csi" if path.endswith(("/v1/volumes", "/plugins")) else "")


def test_every_request_needs_its_permission():
    known, words_of, tried = objects(), needs(), 0
    nothing = secret_with(namespace("elsewhere", "sentinel-override") + 'quota { policy = "read" }', "elsewhere")
    secrets = {need: secret_with(rules_for(need, words), "walk-" + need.lower().replace("_", "-"))
               for need, words in words_of.items() if need not in ("MANAGEMENT", "OPEN", "VALID")}
    for method, pattern, need in paths():
        path, body = target(pattern, known), body_for(need, pattern) if method == "PUT" else None
        what = "%s %s (%s)" % (method, path, need)
        if pattern in ("/v1/acl/bootstrap", "/v1/client/gc", "/v1/system/gc") or pattern.startswith("/v1/acl/"):
            continue  # tests above; or it removes what is tried next
        strangers = [node.status(method, path, body, token=t) for t in ("", nothing, str(uuid.uuid4()))]
        if need == "OPEN":
            case.equal(403 in strangers, False, what)
        elif need == "VALID":
            case.equal(strangers[2], 403, what)
        else:
            case.equal(strangers, [403] * 3, what)
        if method == "GET" and need not in ("MANAGEMENT", "OPEN", "VALID"):
            case.equal(node.status(method, path, body, token=secrets[need]) != 403, True, what + " with its permission")
        tried += 1
    print("    %d requests, each with 3 strangers" % tried)
    for method, pattern, need in paths():
        path, body = target(pattern, known), body_for(need, pattern)
        if method != "GET" and need in secrets and pattern not in ("/v1/node/:id/drain", "/v1/agent/land", "/v1/agent/retire"):
            case.equal(node.status(method, path, body, token=secrets[need]) != 403, True, "%s %s with its permission" % (method, path))
    case.until(lambda: node.request("DELETE", "/v1/job/walked?purge=true").status in (200, 404), 60, "the job to be gone")


def test_the_document_names_the_permission_of_each_path():
    words, rows = needs(), {}
    for method, path, permission in re.findall(r"^\| `(\w+) (/[^`]*)` \| ([^|]*) \|", read("docs/acl.md"), re.M):
        rows[method, path] = permission.strip()
    have = {(method, path): words[need] for method, path, need in paths()}
    case.equal(sorted(set(rows) ^ set(have)), [], "paths in one of the two")
    case.equal({k: (rows[k], v) for k, v in have.items() if rows[k] != v}, {}, "permissions that differ")


# --- namespaces, and what lists show ---

def test_lists_show_what_the_token_may_see():
    node.do("POST", "/v1/namespaces", {"Name": "secret"})
    for ns in ("default", "secret"):
        made = api.job("seen-" + ns)
        made["Job"]["Namespace"] = ns
        node.register(made)
    case.until(lambda: [a["ClientStatus"] for a in node.ask("/v1/allocations", namespace="*")].count("running") == 2, 60, "two allocations to run")
    reads = secret_with('namespace "default" { policy = "read" } node { policy = "read" }', "reads")

    def ask(path, **query):
        answer = node.request("GET", path + "?" + urllib.parse.urlencode(query), token=reads)
        case.equal(answer.status, 200, path + answer.text)
        return answer.json
    case.equal([j["ID"] for j in ask("/v1/jobs", namespace="*")], ["seen-default"])
    for path in ("/v1/allocations", "/v1/evaluations", "/v1/deployments"):
        case.equal({x["Namespace"] for x in ask(path, namespace="*")} - {"default"}, set(), path)
    case.equal({a["Namespace"] for a in ask("/v1/node/%s/allocations" % node.ask("/v1/nodes")[0]["ID"])}, {"default"})
    case.equal([n["Name"] for n in ask("/v1/namespaces")], ["default"])
    found = node.request("POST", "/v1/search?namespace=*", {"Prefix": "", "Context": "all"}, token=reads).json["Matches"]
    case.equal((found["jobs"], "plugins" in found), (["seen-default"], False))
    case.equal(node.status("POST", "/v1/search", {"Prefix": "", "Context": "plugins"}, token=reads), 403)
    hidden = next(a for a in node.ask("/v1/allocations", namespace="secret"))
    for method, path in (("GET", "/v1/jobs?namespace=secret"), ("GET", "/v1/job/seen-secret?namespace=secret"), ("GET", "/v1/namespace/secret"),
                         ("GET", "/v1/allocation/" + hidden["ID"]), ("GET", "/v1/allocation/%s?namespace=default" % hidden["ID"]),
                         ("GET", "/v1/evaluation/%s?namespace=default" % hidden["EvalID"]),
                         ("GET", "/v1/event/stream?topic=Job&namespace=secret"), ("GET", "/v1/event/stream?topic=*")):
        case.equal(node.status(method, path, token=reads), 403, path)
    case.equal(node.status("GET", "/v1/event/stream?topic=Job", token=reads), 200)


def test_the_namespace_in_the_body_counts():
    writes = secret_with('namespace "default" { policy = "write" }', "writes")
    for path in ("/v1/jobs", "/v1/job/x", "/v1/job/x/plan", "/v1/validate/job"):
        for query, ns, status in (("", "default", 200), ("", "secret", 403), ("?namespace=default", "secret", 403), ("?namespace=secret", None, 403),
                                  ("", None, 200)):
            made = api.job("x")
            made["Job"].update({"Namespace": ns} if ns else {})
            case.equal(node.status("POST", path + query, made, token=writes), status, "%s%s %s" % (path, query, ns))
    for ns, status in (("default", 400), ("secret", 403)):
        body = {"Volumes": [{"ID": "v", "Namespace": ns, "PluginID": "p"}]}
        w = secret_with('namespace "default" { policy = "write" } plugin { policy = "read" }', "volumes")
        case.equal(node.status("PUT", "/v1/volume/csi/v", body, token=w), status, ns)
    node.do("DELETE", "/v1/job/x?purge=true")


def test_jobs_with_volumes_and_plugins_need_more():
    writes = secret_with('namespace "default" { policy = "write" }', "writes")
    host = api.job("x", driver="exec", group={"Volumes": {"v": {"Name": "v", "Type": "host", "Source": "data", "ReadOnly": True}}})
    plugin = api.job("x", CSIPluginConfig={"ID": "p", "Type": "node", "MountDir": "/csi"})
    for made in (host, plugin):
        answer = node.request("POST", "/v1/jobs", made, token=writes)
        case.equal((answer.status, "Permission denied" in answer.text or answer.status == 400), (answer.status, True), answer.text)
        case.equal(node.request("GET", "/v1/job/x").status, 404)


def test_containers_with_paths_of_the_machine_need_more():
    """Which host volume a path becomes is known at once, unless it has a variable: then all of them have to be permitted."""
    rules = {"none": "", "reads": 'host_volume "data" { policy = "read" }', "writes": 'host_volume "data" { policy = "write" }', "all": 'host_volume "*" { policy = "write" }'}
    secrets = {name: secret_with('namespace "default" { policy = "write" }\n' + more, "of-" + name) for name, more in rules.items()}
    for config, permitted in (({"volumes": ["/srv/data/x:/x:ro"]}, ("reads", "writes", "all")), ({"volumes": ["local/a:/a", "/srv/data:/x"]}, ("writes", "all")),
                              ({"mount": [{"type": "bind", "source": "/srv/data", "target": "/x"}]}, ("writes", "all")), ({"volumes": ["local/a:/a"]}, tuple(rules)),
                              ({"mounts": {"type": "volume", "source": "other", "target": "/x"}}, ("all",)), ({"volumes": ["${NOMAD_META_x}:/x:ro"]}, ("all",)),
                              ({"mounts": [{"type": "bind", "source": "/srv/${NOMAD_META_x}", "target": "/x", "readonly": True}]}, ("all",))):
        made = api.job("x", driver="docker", count=0)
        made["Job"]["TaskGroups"][0]["Tasks"][0]["Config"] = {"image": "a", **config}
        for name in rules:
            answer = node.request("POST", "/v1/jobs", made, token=secrets[name])
            case.equal((answer.status, "does not permit host volume" in answer.text or "needs a token that permits all host volumes" in answer.text),
                       (200, False) if name in permitted else (403, True), "%s by %s: %s" % (config, name, answer.text))
    node.purge("x")


def test_purge_needs_more_than_stop():
    stops = secret_with(namespace("default", "deregister-job"), "stops")
    node.register(api.job("stopped"))
    case.equal([node.status("DELETE", "/v1/job/stopped" + q, token=stops) for q in ("?purge=true", "?purge=1", "?purge=x", "")], [403, 403, 403, 200])
    node.do("DELETE", "/v1/job/stopped?purge=true")


def test_a_command_in_a_task_without_isolation_needs_more():
    execs = secret_with(namespace("default", "alloc-exec"), "execs")
    alloc = next(a for a in node.ask("/v1/allocations") if a["JobID"] == "seen-default")
    path = "/v1/client/allocation/%s/exec?task=t&command=%%5B%%22true%%22%%5D" % alloc["ID"]
    case.equal(node.status("GET", path, token=execs), 403)
    node.register(api.job("isolated", driver="exec"))
    alloc = node.wait_running("isolated")[0]
    path = "/v1/client/allocation/%s/exec?task=t&command=%%5B%%22true%%22%%5D" % alloc["ID"]
    case.equal(node.status("GET", path, token=execs) != 403, True)
    node.purge("isolated")


def test_a_changed_policy_counts_at_once():
    secret = secret_with(namespace("default", "list-jobs"), "changed")
    case.equal(node.status("GET", "/v1/jobs", token=secret), 200)
    policy("changed", namespace("default", "deny", "list-jobs"))
    case.equal(node.status("GET", "/v1/jobs", token=secret), 403)
    policy("changed", namespace("default", "list-jobs"))
    case.equal(node.status("GET", "/v1/jobs", token=secret, bearer=True), 200)
    node.do("DELETE", "/v1/acl/policy/changed")
    case.equal(node.status("GET", "/v1/jobs", token=secret), 403)


def test_the_anonymous_policy_applies_without_a_token():
    policy("anonymous", namespace("default", "list-jobs"))
    case.equal([node.status("GET", p, token="") for p in ("/v1/jobs", "/v1/allocations", "/v1/acl/policy/anonymous")], [200, 403, 200])
    node.do("DELETE", "/v1/acl/policy/anonymous")


def test_roles_give_their_policies():
    policy("listing", namespace("default", "list-jobs"))
    role = node.do("POST", "/v1/acl/role", {"Name": "listers", "Policies": [{"Name": "listing"}]})
    secret = node.do("POST", "/v1/acl/token", {"Type": "client", "Roles": [{"Name": "listers"}]})["SecretID"]
    case.equal(node.status("GET", "/v1/jobs", token=secret), 200)
    node.do("DELETE", "/v1/acl/role/" + role["ID"])
    case.equal(node.status("GET", "/v1/jobs", token=secret), 403)


# --- tasks ---

def identity_of(alloc):
    return node.logs(alloc).decode().strip()


def test_a_task_may_use_its_identity_until_it_ends():
    made = api.job("worker", "/bin/sh", ["-c", "echo $NOMAD_TOKEN; sleep 1000"], Identity={"Env": True})
    node.register(made)
    alloc = node.wait_running("worker")[0]
    node.wait_said(alloc, b"ey")
    jwt = identity_of(alloc)
    for path, status in (("/v1/jobs", 403), ("/v1/services", 200), ("/v1/services?namespace=secret", 200), ("/v1/service/x", 200),
                         ("/v1/acl/token/self", 404), ("/v1/acl/policies", 200), ("/v1/nodes", 403)):
        case.equal(node.status("GET", path, token=jwt), status, path)
    policy("of-job", namespace("default", "list-jobs"), JobACL={"Namespace": "default", "JobID": "worker"})
    policy("of-task", namespace("default", "read-job"), JobACL={"Namespace": "default", "JobID": "worker", "Group": "g", "Task": "t"})
    policy("of-other", 'node { policy = "read" }', JobACL={"Namespace": "default", "JobID": "worker", "Group": "g", "Task": "u"})
    case.equal([node.status("GET", p, token=jwt) for p in ("/v1/jobs", "/v1/job/worker", "/v1/nodes")], [200, 200, 403])
    case.equal([p["Name"] for p in node.request("GET", "/v1/acl/policy/self", token=jwt).json], ["of-job", "of-task"])
    policy("of-all", 'node { policy = "read" }', JobACL={"Namespace": "default"})
    case.equal(node.status("GET", "/v1/nodes", token=jwt), 200)
    head, claims, signature = jwt.split(".")
    changed = base64.urlsafe_b64encode(base64.urlsafe_b64decode(claims + "==").replace(b"worker", b"walked")).decode().rstrip("=")
    none = base64.urlsafe_b64encode(b'{"alg":"none","kid":"x","typ":"JWT"}').decode().rstrip("=")
    kid = json.loads(base64.urlsafe_b64decode(head + "=="))["kid"]
    other = base64.urlsafe_b64encode(json.dumps({"alg": "RS256", "kid": kid, "typ": "JWT"}).encode()).decode().rstrip("=")
    flipped = signature[:-3] + ("A" if signature[-3] != "A" else "B") + signature[-2:]
    for bad in (".".join((head, changed, signature)), ".".join((none, claims, "")), ".".join((none, claims, signature)), ".".join((other, claims, signature)),
                ".".join((head, claims, flipped)), ".".join((head, claims)), jwt + ".x", jwt + "=", jwt[:-1]):
        case.equal(node.status("GET", "/v1/jobs", token=bad), 403, bad[:60])
    node.do("DELETE", "/v1/job/worker")
    case.until(lambda: node.ask("/v1/allocation/" + alloc["ID"])["ClientStatus"] == "complete", 60, "the task to end")
    answer = node.request("GET", "/v1/jobs", token=jwt)
    case.equal((answer.status, answer.text), (403, "Permission denied: the token's allocation has ended"))
    for name in ("of-job", "of-task", "of-other", "of-all"):
        node.do("DELETE", "/v1/acl/policy/" + name)
    node.purge("worker")


def test_the_other_identities_of_a_task_are_tokens_until_they_expire():
    script = "old=; while :; do new=$(cat $NOMAD_SECRETS_DIR/nomad_a.jwt); [ \"$new\" = \"$old\" ] || echo $new; old=$new; sleep 0.1; done"
    node.register(api.job("renewed", "/bin/sh", ["-c", script], Identities=[{"Name": "a", "File": True, "TTL": 4 * 10**9, "Audience": ["x"]}]))
    alloc = node.wait_running("renewed")[0]
    first = case.until(lambda: node.logs(alloc).decode().split(), 60, "a token")[0]
    head, claims, signature = first.split(".")
    case.equal(json.loads(base64.urlsafe_b64decode(head + "=="))["alg"], "RS256")
    case.equal(node.status("GET", "/v1/services", token=first) in (200, 403), True)
    case.until(lambda: len(node.logs(alloc).decode().split()) > 1, 60, "another token")
    newest = case.until(lambda: next((t for t in [node.logs(alloc).decode().split()[-1]] if node.status("GET", "/v1/services", token=t) == 200), None),
                        60, "a token that is valid")
    bad = newest[:-20] + ("A" if newest[-20] != "A" else "B") + newest[-19:]
    case.equal(node.status("GET", "/v1/services", token=bad), 403)
    case.until(lambda: node.request("GET", "/v1/services", token=first).text == "Permission denied: the token has expired", 60, "the token to expire")
    node.purge("renewed")


# --- variables ---

def test_variables_are_permitted_by_path():
    rules = """namespace "default" {
      variables {
        path "app/*" { capabilities = ["read"] }
        path "app/hidden" { capabilities = ["deny"] }
        path "list" { capabilities = ["list"] }
        path "drop" { capabilities = ["write"] }
        path "own/*" { capabilities = ["read", "write", "destroy", "list"] }
      }
    }"""
    some, stranger = secret_with(rules, "variables"), secret_with('namespace "default" { policy = "write" }', "no-variables")
    paths = ("app/a", "app/hidden", "list", "drop", "own/x", "other", "nomad/jobs/worker2", "nomad/jobs/worker20", "nomad/jobs/worker2/g/t")
    for path in paths:
        node.do("PUT", "/v1/var/" + path, {"Items": {"k": "v of " + path}})

    def statuses(method, body=None, token=some, query=""):
        return [node.status(method, "/v1/var/" + p + query, body, token=token) for p in paths[:6]]
    case.equal(statuses("GET"), [200, 403, 403, 403, 200, 403])
    case.equal(statuses("PUT", {"Items": {"k": "w"}}), [403, 403, 403, 200, 200, 403])
    case.equal(statuses("PUT", {}, query="?lock-acquire"), [403, 403, 403, 200, 200, 403])
    held = {p: node.ask("/v1/var/" + p)["Lock"]["ID"] for p in ("drop", "own/x")}
    case.equal("Lock" in node.request("GET", "/v1/var/own/x", token=some).json, False, "whether locks of others are shown")
    case.equal([[v["Path"], "Lock" in v] for v in node.request("GET", "/v1/vars", token=some).json], [["app/a", False], ["list", False], ["own/x", False]])
    for path, key in held.items():
        case.equal(node.status("PUT", "/v1/var/%s?lock-renew" % path, {"Lock": {"ID": key}}, token=some), 200)
        case.equal(node.status("PUT", "/v1/var/%s?lock-release" % path, {"Lock": {"ID": key}}, token=stranger), 403)
        case.equal(node.status("PUT", "/v1/var/%s?lock-release" % path, {"Lock": {"ID": key}}, token=some), 200)
    # A conflict shows the items only to those who may read them; so does a lock that keeps them.
    for path, shown in (("drop", False), ("own/x", True)):
        answer = node.request("PUT", "/v1/var/%s?cas=0" % path, {"Items": {"k": "w"}}, token=some)
        case.equal((answer.status, "Items" in answer.json), (409, shown), path)
        answer = node.request("PUT", "/v1/var/%s?lock-acquire" % path, {}, token=some)
        case.equal((answer.status, "Items" in answer.json, "Lock" in answer.json), (200, shown, True), path)
        node.do("PUT", "/v1/var/%s?lock-release" % path, {"Lock": {"ID": answer.json["Lock"]["ID"]}})
    found = node.request("POST", "/v1/search", {"Prefix": "", "Context": "vars"}, token=some).json["Matches"]
    case.equal(found, {"vars": ["app/a", "list", "own/x"]})
    case.equal((statuses("GET", token=stranger), node.request("GET", "/v1/vars", token=stranger).json), ([403] * 6, []))
    case.equal((statuses("GET", token=""), node.status("GET", "/v1/vars", token="")), ([403] * 6, 200))
    # A body cannot name another namespace than those of the token.
    node.do("PUT", "/v1/namespace", {"Name": "elsewhere"})
    case.equal(node.status("PUT", "/v1/var/own/x", {"Namespace": "elsewhere", "Items": {"k": "v"}}, token=some), 403)
    # A task reads the variables of its job, group and itself.
    node.register(api.job("worker2", "/bin/sh", ["-c", "echo $NOMAD_TOKEN; sleep 1000"], Identity={"Env": True}))
    alloc = node.wait_running("worker2")[0]
    node.wait_said(alloc, b"ey")
    jwt = identity_of(alloc)
    case.equal([node.status("GET", "/v1/var/" + p, token=jwt) for p in paths], [403] * 6 + [200, 403, 200])
    case.equal([v["Path"] for v in node.request("GET", "/v1/vars", token=jwt).json], ["nomad/jobs/worker2", "nomad/jobs/worker2/g/t"])
    case.equal(node.status("PUT", "/v1/var/nomad/jobs/worker2", {"Items": {"k": "w"}}, token=jwt), 403)
    node.purge("worker2")
    case.equal(node.status("GET", "/v1/var/nomad/jobs/worker2", token=jwt), 403)
    case.equal(statuses("DELETE"), [403, 403, 403, 403, 204, 403])
    for path in paths:
        node.request("DELETE", "/v1/var/" + path)
    node.do("DELETE", "/v1/namespace/elsewhere")


# --- durability and secrecy ---

def test_tokens_outlive_the_agent_and_secrets_are_sealed():
    policy("kept", namespace("default", "list-jobs"))
    kept = token("kept", ExpirationTTL="2h")
    before = [node.ask("/v1/acl/" + what) for what in ("policies", "roles", "tokens")]
    node.replace_supervisor()
    case.equal([node.ask("/v1/acl/" + what) for what in ("policies", "roles", "tokens")], before)
    case.equal(node.status("GET", "/v1/jobs", token=kept["SecretID"]), 200)
    case.equal(node.ask("/v1/acl/token/" + kept["AccessorID"]), kept)
    node.refused(400, "already done", "POST", "/v1/acl/bootstrap")
    secrets = [node.ask("/v1/acl/token/" + t["AccessorID"])["SecretID"] for t in before[2]]
    for name in os.listdir(node.data + "/state"):
        with open(node.data + "/state/" + name, "rb") as f:
            content = f.read()
        case.equal([s for s in secrets if s.encode() in content], [], name)
    case.equal([s for s in secrets if s in node.log()], [], "the log")


def test_without_acl_tokens_count_for_nothing():
    with api.Node() as plain:
        plain.refused(400, "ACL support disabled", "POST", "/v1/acl/bootstrap")
        plain.refused(400, "ACL support disabled", "GET", "/v1/acl/tokens")
        case.equal(plain.ask("/v1/jobs"), [])


node = start()
with node:
    case.run(globals())
