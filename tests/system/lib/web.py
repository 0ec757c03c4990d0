# SPDX-License-Identifier: Apache-2.0
"""A web server on the loopback interface.

    with web.Server({"/a.txt": b"text"}) as server:
        server.url + "/a.txt"; server.requests

A path's value is its body, or a function of the handler, which answers. cert: (certificate, key) of a server that speaks TLS.
"""
import http.server
import os
import ssl
import subprocess
import threading

from . import case


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self):  # pylint: disable=invalid-name
        path = self.path.split("?")[0]
        self.server.requests.append((self.path, dict(self.headers)))
        found = self.server.files.get(path)
        if found is None:
            self.send_error(404)
        elif callable(found):
            found(self)
        else:
            self.reply(found)

    def reply(self, body, status=200, headers=()):
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        for name, value in headers:
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format, *args):  # pylint: disable=redefined-builtin
        pass


class Listener(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 64
    context = None

    def get_request(self):
        connection, address = super().get_request()
        if self.context:  # the handler's first read makes the handshake, in its own thread
            connection = self.context.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
        return connection, address

    def handle_error(self, request, client_address):
        """The fetcher may close the connection at any time."""


class Server:
    def __init__(self, files, cert=None, port=0):
        self.http = Listener(("127.0.0.1", port), Handler)
        if cert:
            self.http.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            self.http.context.load_cert_chain(*cert)
        self.http.files, self.http.requests = files, []
        self.files, self.requests = files, self.http.requests
        self.port = self.http.server_address[1]
        self.url = "%s://127.0.0.1:%d" % ("https" if cert else "http", self.port)
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def count(self, path):
        return sum(p == path for p, _ in self.requests)


def repository(text, files=None, submodule=None):
    """Returns the files of a repository whose a.txt has this text, or that has these files, for a client that needs no more than a web server:
    {path: contents}. submodule: (directory, url, commit)."""
    base, found = case.directory(), {}
    env = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": base}
    for name, content in (files or {"a.txt": text.encode()}).items():
        os.makedirs(os.path.dirname(base + "/" + name), exist_ok=True)
        with open(base + "/" + name, "wb") as f:
            f.write(content)
    link = []
    if submodule:
        case.write(base + "/.gitmodules", '[submodule "m"]\n\tpath = %s\n\turl = %s\n' % submodule[:2])
        link = [["update-index", "--add", "--cacheinfo", "160000,%s,%s" % (submodule[2], submodule[0])]]
    for words in (["init", "-q", "-b", "main", "."], ["add", "."], *link, ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"],
                  ["update-server-info"]):
        subprocess.run(["git", *words], cwd=base, env=env, check=True)
    for at, _, names in os.walk(base + "/.git"):
        for name in names:
            with open(os.path.join(at, name), "rb") as f:
                found[os.path.join(at, name)[len(base + "/.git"):]] = f.read()
    return found
