# SPDX-License-Identifier: Apache-2.0
"""A web server on the loopback interface.

    with web.Server({"/a.txt": b"text"}) as server:
        server.url + "/a.txt"; server.requests

A path's value is its body, or a function of the handler, which answers.
"""
import http.server
import os
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

    def handle_error(self, request, client_address):
        """The fetcher may close the connection at any time."""


class Server:
    def __init__(self, files):
        self.http = Listener(("127.0.0.1", 0), Handler)
        self.http.files, self.http.requests = files, []
        self.files, self.requests = files, self.http.requests
        self.port = self.http.server_address[1]
        self.url = "http://127.0.0.1:%d" % self.port
        self.thread = threading.Thread(target=self.http.serve_forever, daemon=True)

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.http.shutdown()
        self.http.server_close()

    def count(self, path):
        return sum(p == path for p, _ in self.requests)


def repository(text):
    """Returns the files of a repository whose a.txt has this text, for a client that needs no more than a web server: {path: contents}."""
    base, found = case.directory(), {}
    env = {"PATH": "/usr/bin:/bin", "GIT_CONFIG_NOSYSTEM": "1", "HOME": base}
    case.write(base + "/a.txt", text)
    for words in (["init", "-q", "-b", "main", "."], ["add", "a.txt"], ["-c", "user.name=a", "-c", "user.email=a@b", "commit", "-q", "-m", "x"],
                  ["update-server-info"]):
        subprocess.run(["git", *words], cwd=base, env=env, check=True)
    for at, _, names in os.walk(base + "/.git"):
        for name in names:
            with open(os.path.join(at, name), "rb") as f:
                found[os.path.join(at, name)[len(base + "/.git"):]] = f.read()
    return found
