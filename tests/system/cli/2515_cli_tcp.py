#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 30
"""The command over TCP: DROVER_ADDR=https://host:port, with certificates and tokens."""
import os
import subprocess
import time

from lib import agent, api, binary, case
from lib.fake_api import run_command
from lib.nomad_server import make_certificates

PORT = 4646
BASE = case.directory()
CERTS = make_certificates(BASE, names=("server", "client", "stranger"))
for _, key in CERTS.values():
    os.chmod(key, 0o600)
CA, (CERT, KEY) = CERTS["ca"][0], CERTS["server"]
TLS = 'tls {\n  http = true\n  ca_file = "%s"\n  cert_file = "%s"\n  key_file = "%s"\n  verify_https_client = %%s\n}\n' % (CA, CERT, KEY)
HTTP = 'ports {\n  http = %d\n}\naddresses {\n  http = "127.0.0.1"\n}\n' % PORT
ACL = "acl {\n  enabled = true\n}\n"
ADDRESS = "https://localhost:%d" % PORT


def environment(client=None, **more):
    names = {"DROVER_CLIENT_CERT": CERTS[client][0], "DROVER_CLIENT_KEY": CERTS[client][1]} if client else {}
    return {"DROVER_ADDR": ADDRESS, "DROVER_CACERT": CA, **names, **more}


def drover(*words, env=None, code=0, stdin=None):
    r = run_command(words, env=env or environment("client"), stdin=stdin)
    case.equal(r.code, code, "drover %s: %s%s" % (" ".join(words), r.out, r.err))
    return r


def test_commands_streams_and_sessions():
    with api.Node(agent.config_args(HTTP + TLS % "true" + api.DISK), disk=True) as n:
        n.register(api.job("web", "/bin/sh", ["-c", "echo hello; sleep 1000"]))
        n.wait_running("web")
        alloc = n.allocs("web")[0]["ID"]
        here = n.drover("job", "status").out
        case.equal(drover("job", "status").out, here, "the same as at the socket")
        case.equal(drover("job", "status", "-address", ADDRESS + "/", "-ca-cert", CA, "-client-cert", CERTS["client"][0], "-client-key", CERTS["client"][1],
                          env={"DROVER_ADDR": "unix:///nowhere"}).out, here, "by flags")
        case.equal(drover("job", "status", "-tls-server-name", "server.global.nomad", env=environment("client", DROVER_ADDR="https://127.0.0.1:%d" % PORT)).out, here, "a name")
        case.equal(drover("job", "status", env={"DROVER_ADDR": ADDRESS, "NOMAD_CACERT": CA, "NOMAD_CLIENT_CERT": CERTS["client"][0], "NOMAD_CLIENT_KEY": CERTS["client"][1]}).out, here, "Nomad's variables")
        case.contains(drover("alloc", "logs", alloc, "t").out, "hello\n")
        case.equal(drover("alloc", "exec", "-task", "t", alloc, "cat", stdin=b"x" * 300000).out, "x" * 300000, "a command with input")
        case.equal(drover("alloc", "exec", "-task", "t", alloc, "sh", "-c", "exit 7", code=7).out, "", "its exit code")
        # Streams that are ended by their reader: no process is left (the runner checks that, too).
        for words in (("alloc", "logs", "-f", alloc, "t"), ("monitor",), ("job", "logs", "-f", "web")):
            p = subprocess.Popen([binary("drover"), *words], env=dict(environment("client"), PATH=os.environ["PATH"]), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            if words[0] != "monitor":
                case.contains(p.stdout.readline().decode(), "hello")
            else:
                time.sleep(0.2)
            p.terminate()
            p.communicate()
        case.equal(drover("job", "stop", "-purge", "-detach", "web").err, "", "a change")
        case.until(lambda: n.ask("/v1/jobs") == [], 20, "the job to be gone")


def test_what_is_wrong_gets_a_sentence():
    with api.Node(agent.config_args(HTTP + TLS % "true" + api.DISK), disk=True):
        for env, sentence in ((environment(), "certificate"), (environment("stranger"), "certificate"), (environment("client", DROVER_CACERT=CERTS["stranger"][0]), "the server's certificate is refused: "),
                              (environment("client", DROVER_CACERT=BASE + "/none"), "open %s/none, the certificate of -ca-cert: No such file or directory" % BASE),
                              (environment("client", DROVER_CLIENT_KEY=CERTS["server"][1]), "client.key_file does not belong to the certificate"),
                              (environment("client", DROVER_TLS_SERVER_NAME="other"), "the server's certificate is refused: "),
                              (environment("client", DROVER_ADDR="https://localhost:1"), "no agent answers at https://localhost:1"),
                              (environment("client", DROVER_ADDR="https://localhost:x"), 'the address "https://localhost:x" is not of the form'),
                              (environment("client", DROVER_ADDR="https://"), "is not of the form"),
                              (environment("client", DROVER_ADDR="ftp://localhost"), "is not of the form unix:///path/of/the/socket or https://host:port"),
                              ({"DROVER_ADDR": "http://localhost:%d" % PORT}, "this address needs TLS: https instead of http")):
            r = drover("job", "status", env=env, code=1)
            case.contains(r.err, sentence)


def test_tokens_with_and_without_tls():
    for config, address in ((HTTP + TLS % "false" + ACL, ADDRESS), (HTTP + ACL, "http://127.0.0.1:%d" % PORT)):
        with api.Node(agent.config_args(config + api.DISK), disk=True) as n:
            n.token = n.do("POST", "/v1/acl/bootstrap")["SecretID"]
            case.contains(drover("job", "status", env=environment(DROVER_ADDR=address), code=1).err, "a request over TCP needs a valid ACL token")
            case.contains(drover("job", "status", env=environment(DROVER_ADDR=address, DROVER_TOKEN="wrong"), code=1).err, "a request over TCP needs a valid ACL token")
            drover("job", "status", env=environment(DROVER_ADDR=address, DROVER_TOKEN=n.token))
            drover("job", "status", "-token", n.token, env=environment(DROVER_ADDR=address))


case.run(globals())
