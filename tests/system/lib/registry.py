# SPDX-License-Identifier: Apache-2.0
"""Debian's docker-registry on the loopback interface, with or without a password and TLS.

    with registry.Registry(user="u", password="p") as r:
        r.push("team/app", "1", images.Image(...))
        r.name("team/app:1")
"""
import base64
import crypt
import json
import os
import shutil
import socket
import ssl
import subprocess
import urllib.error
import urllib.request

from . import build_dir, case

PACKAGE = os.path.join(build_dir(), "docker-registry")  # unpacked by check-deps: its service does not run on this machine


def program():
    """Returns the path of docker-registry, or None."""
    found = os.path.join(PACKAGE, "usr/bin/docker-registry")
    return found if os.path.exists(found) else shutil.which("docker-registry")


def credentials(user, password):
    return base64.b64encode(("%s:%s" % (user, password)).encode()).decode()


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Registry:
    """host: a name of 127.0.0.1. certificate: (certificate, key, authority), paths of files."""

    def __init__(self, user=None, password=None, host="127.0.0.1", certificate=None):
        self.directory, self.port = case.directory(), free_port()
        self.address = "%s:%d" % (host, self.port)
        self.user, self.password, self.certificate = user, password, certificate
        http = {"addr": "127.0.0.1:%d" % self.port}
        if certificate:
            http["tls"] = {"certificate": certificate[0], "key": certificate[1]}
        said = {"version": 0.1, "log": {"level": "warn"}, "http": http, "storage": {"filesystem": {"rootdirectory": self.directory + "/store"}}}
        if user:
            with open(self.directory + "/users", "w", encoding="ascii") as f:
                f.write("%s:%s\n" % (user, crypt.crypt(password, crypt.mksalt(crypt.METHOD_BLOWFISH, rounds=16)).replace("$2b$", "$2y$")))
            said["auth"] = {"htpasswd": {"realm": "test", "path": self.directory + "/users"}}
        with open(self.directory + "/config.yml", "w", encoding="ascii") as f:
            json.dump(said, f)  # JSON is YAML
        self.log = open(self.directory + "/registry.log", "wb")
        self.process = subprocess.Popen([program(), "serve", self.directory + "/config.yml"], stdout=self.log, stderr=self.log,
                                        env={"PATH": "/usr/bin:/bin", "OTEL_TRACES_EXPORTER": "none"})
        case.until(self._answers, 60, "an answer of docker-registry")

    def _answers(self):
        try:
            return self.request("GET", "/v2/").status == 200
        except urllib.error.HTTPError:
            raise
        except OSError:
            return False

    def request(self, method, url, body=None, kind=None):
        at = url if "://" in url else "%s://127.0.0.1:%d%s" % ("https" if self.certificate else "http", self.port, url)
        headers = {"Content-Type": kind} if kind else {}
        if self.user:
            headers["Authorization"] = "Basic " + credentials(self.user, self.password)
        context = ssl.create_default_context(cafile=self.certificate[2]) if self.certificate else None
        return urllib.request.urlopen(urllib.request.Request(at, data=body, method=method, headers=headers), timeout=60, context=context)

    def push(self, repository, tag, image):
        for blob in [image.config, *image.blobs]:
            begun = self.request("POST", "/v2/%s/blobs/uploads/" % repository, b"")
            place = begun.headers["Location"]
            digest = image.part("", blob)["digest"]
            self.request("PUT", "%s%sdigest=%s" % (place, "&" if "?" in place else "?", digest), blob, "application/octet-stream")
        self.request("PUT", "/v2/%s/manifests/%s" % (repository, tag), image.manifest, image.kind)

    def name(self, reference):
        return self.address + "/" + reference

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()
