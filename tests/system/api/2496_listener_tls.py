#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
# takes: 20
"""health { address } of an agent with TLS and a token, and what a reload does to its clients."""
import http.client
import os
import signal
import ssl
import subprocess
import threading

from lib import agent, api, case
from lib.nomad_server import make_certificates

PORT = 4649
TOKEN = "0123456789abcdef-of-a-test"
CONFIG = """health {
  address    = "127.0.0.1:%d"
  token_file = "%s/token"
  tls {
    cert_file = "%s/server.pem"
    key_file  = "%s/server.key"
  }
}
"""


def write(path, text):
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    os.chmod(path, 0o600)


def ask(ca, path="/v1/agent/health", token=TOKEN):
    """Returns the status, and the serial number of the certificate."""
    c = http.client.HTTPSConnection("localhost", PORT, timeout=case.LEAST_S, context=ssl.create_default_context(cafile=ca))
    try:
        c.connect()
        serial = c.sock.getpeercert()["serialNumber"]
        c.request("GET", path, headers={"Authorization": "Bearer " + token} if token else {})
        return c.getresponse().status, serial
    finally:
        c.close()


class Asker(threading.Thread):
    """Asks again and again. .found: how often each status came; .failed: what went wrong otherwise."""

    def __init__(self, ca):
        super().__init__(daemon=True)
        self.ca, self.found, self.failed, self.ends = ca, {}, [], False

    def run(self):
        while not self.ends:
            try:
                status, _ = ask(self.ca)
                self.found[status] = self.found.get(status, 0) + 1
            except OSError as e:
                self.failed.append(repr(e))
            except http.client.HTTPException as e:
                self.failed.append(repr(e))


def test_a_reload_takes_new_certificates_and_loses_no_connection():
    base = case.directory()
    make_certificates(base, names=("server",))
    write(base + "/token", TOKEN + "\n")
    os.chmod(base + "/server.key", 0o600)
    ca = base + "/ca.pem"
    with api.Node(agent.config_args(CONFIG % (PORT, base, base, base) + api.DISK), disk=True) as n:
        status, serial = ask(ca)
        case.equal(status, 200, "with the token")
        for path in ("/v1/agent/health", "/v1/agent/health?deep=1", "/v1/metrics"):
            case.equal(ask(ca, path, token=None)[0], 401, "without: " + path)
        for name in ("supervisor", "listener"):
            case.equal([link for link in agent.descriptors(n.processes()[name]) if base in link and n.base not in link], [], "files of the configuration in " + name)
        case.equal([TOKEN in line for line in n.log().split("\n") if TOKEN in line], [], "the token in the log")
        askers = [Asker(ca) for _ in range(4)]
        for asker in askers:
            asker.start()
        for _ in range(3):
            old = serial
            renew(base)
            before = n.processes()["listener"]
            os.kill(n.pid, signal.SIGHUP)
            agent.wait_gone([before])
            serial = ask(ca)[1]
            case.equal(serial != old, True, "the certificate after the reload")
        for asker in askers:
            asker.ends = True
            asker.join()
            print("    answers by status:", asker.found)
            case.equal(asker.failed, [], "requests without an answer")
            case.equal(asker.found.get(200, 0) > 0 and set(asker.found) <= {200, 503}, True, str(asker.found))
        # What cannot be used is named, and the other clients of the agent notice nothing.
        write(base + "/token", "short\n")
        os.kill(n.pid, signal.SIGHUP)
        n.wait_log("health.token_file: expected one line of 16 to 256 printable characters without spaces")
        case.equal(n.request("GET", "/v1/jobs").status, 200, "an operator")


def renew(base):
    """Another certificate of the same authority."""
    subprocess.run(["openssl", "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                    "-extfile", "server.ext", "-out", "new.pem"], cwd=base, check=True, stderr=subprocess.PIPE)
    os.rename(base + "/new.pem", base + "/server.pem")


def test_settings_without_their_others_are_named():
    for text, sentence in (('health { address = "127.0.0.1:%d" tls { cert_file = "/a" } }' % PORT, "health.tls.cert_file is set, but health.tls.key_file is not set"),
                           ('health { address = "127.0.0.1:%d" tls { ca_file = "/a" } }' % PORT, "health.tls.ca_file is set, but health.tls.cert_file is not set"),
                           ('health { address = "127.0.0.1:%d" token_file = "token" }' % PORT, "token_file: expected an absolute path"),
                           ('health { address = "127.0.0.1:%d" token_file = "/nowhere/token" }' % PORT, "open /nowhere")):
        with agent.Agent(agent.config_args(text + "\n")) as a:
            case.until(lambda a=a: a.process.poll() is not None, 10, "the end of the agent")
            case.contains(a.log(), sentence)


case.run(globals())
