# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: sources, names, modes and checksums, by http."""
import hashlib
import os
import stat

from lib import case, fetch, web

BODY = b"hello\n" * 1000


def redirect(to):
    return lambda h: h.reply(b"", 302, [("Location", to)])


def sums(kind="sha256", style="%s  %s\n", name="a.txt"):
    return style % (hashlib.new(kind, BODY).hexdigest(), name)


def flaky(h):
    """Answers the third request."""
    if h.server.requests.count((h.path, dict(h.headers))) < 3:
        h.reply(b"", 503)
    else:
        h.reply(BODY)


def cut(h):
    """Sends a part of what it promises."""
    h.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 500000)
    h.close_connection = True


FILES = {
    "/a.txt": BODY, "/dir/a.txt": BODY, "/b c.txt": BODY, "/b%20c.txt": BODY, "/empty": b"", "/flaky": flaky,
    "/moved": redirect("/a.txt"), "/gone": redirect("/nothing"), "/query.txt": lambda h: h.reply(h.path.encode()),
    "/headers": lambda h: h.reply(repr(sorted((k, v) for k, v in h.headers.items() if k.startswith("X-") or k == "Authorization")).encode()),
    "/to_file": redirect("file:///etc/passwd"), "/to_ftp": redirect("ftp://127.0.0.1/x"), "/cut": cut,
}


def test_a_file_gets_the_name_in_its_url():
    case.equal(f.get(server.url + "/a.txt"), {"a.txt": BODY})
    case.equal(f.get(server.url + "/dir/a.txt?x=1"), {"a.txt": BODY})
    case.equal(f.get(server.url + "/b%20c.txt"), {"b c.txt": BODY})
    case.equal(f.get(server.url + "/empty"), {"empty": b""})
    case.equal(f.get(server.url + "/a.txt?filename=other"), {"other": BODY})
    case.equal(f.get(server.url + "/a.txt", options={"filename": "other"}), {"other": BODY})


def test_modes_do_not_depend_on_the_umask():
    for mask in (0o077, 0o000, 0o777):
        old = os.umask(mask)
        try:
            other = fetch.Fetcher()
        finally:
            os.umask(old)
        with other:
            staging = other.send(server.url + "/a.txt")
            case.equal(isinstance(other.wait(), dict), True)
            modes = [oct(stat.S_IMODE(os.stat(other.path(staging) + name).st_mode)) for name in ("", "/out", "/out/a.txt")]
        case.equal(modes, ["0o700", "0o755", "0o644"], "modes with umask %03o" % mask)


def test_an_interrupted_transfer_leaves_no_file():
    for mode, left in (("file", []), ("any", ["out"])):
        staging = f.send(server.url + "/cut", mode=mode)
        case.equal(isinstance(f.wait(), str), True, "whether it is an error")
        found = [os.path.join(at, name) for at, dirs, names in os.walk(f.path(staging)) for name in dirs + names]
        case.equal([path[len(f.path(staging)) + 1:] for path in found], left, "what is left")


def test_mode_file_makes_the_artifact_that_file():
    case.equal(f.get(server.url + "/a.txt", mode="file"), {"": BODY})


def test_options_are_parameters_of_the_url():
    case.equal(f.get(server.url + "/query.txt?b=1", options={"b": "2 &", "c": "x"}), {"query.txt": b"/query.txt?b=2%20%26&c=x"})


def test_headers_and_a_password_are_sent():
    url = server.url.replace("//", "//me:secret@")
    case.equal(f.get(url + "/headers", headers={"X-Token": "abc", "X-Empty": ""}),
               {"headers": b"[('Authorization', 'Basic bWU6c2VjcmV0'), ('X-Empty', ''), ('X-Token', 'abc')]"})


def test_redirects_are_followed_to_http_only():
    case.equal(f.get(server.url + "/moved"), {"moved": BODY})
    case.equal(f.get(server.url + "/gone"), "the server answered with status 404")
    for path in ("/to_file", "/to_ftp"):
        case.contains(f.get(server.url + path), "redirects to something other than http")


def test_a_proxy_of_the_environment():
    """For http it gets the whole url; for https a tunnel to the host is asked for. no_proxy has an effect."""
    seen = []

    class Proxy(web.Handler):
        def do_GET(self):  # pylint: disable=invalid-name
            seen.append((self.command, self.path, self.headers.get("Proxy-Authorization")))
            self.reply(BODY, 200 if self.command == "GET" else 502)
        do_CONNECT = do_GET  # pylint: disable=invalid-name
    with web.Server({}) as proxy:
        proxy.http.RequestHandlerClass = Proxy
        url = proxy.url.replace("//", "//me:word@")
        with fetch.Fetcher(env={"HTTP_PROXY": url, "HTTPS_PROXY": url, "NO_PROXY": "127.0.0.1"}) as other:
            case.equal(other.get("http://far.example/x/a.txt?b=c"), {"a.txt": BODY})
            case.contains(other.get("https://far.example/a.txt"), "502")
            case.equal(set(seen), {("GET", "http://far.example/x/a.txt?b=c", "Basic bWU6d29yZA=="), ("CONNECT", "far.example:443", "Basic bWU6d29yZA==")})
            seen.clear()
            case.equal(other.get(server.url + "/moved"), {"moved": BODY})
            case.equal((seen, "word" in other.helper.log()), ([], False))


def test_a_redirect_to_another_server_has_no_secrets():
    seen = []

    def record(h):
        seen.append((h.headers.get("Authorization"), h.headers.get("X-Token"), h.headers.get("X-Amz-Security-Token")))
        h.reply(BODY)
    keys = {"aws_access_key_id": "AKIDEXAMPLE", "aws_access_key_secret": "secret", "aws_access_token": "token"}
    with web.Server({"/b": record}) as other:
        server.files.update({"/to_other": redirect(other.url + "/b"), "/to_self": redirect(server.url + "/moved_on"), "/moved_on": redirect("/record"),
                             "/record": record, "/and_back": redirect(other.url + "/back"), "/bucket/x": redirect(other.url + "/b")})
        other.files["/back"] = redirect(server.url + "/record")
        url = server.url.replace("//", "//me:secret@")
        for path, wanted in (("/to_self", ("Basic bWU6c2VjcmV0", "abc", None)), ("/to_other", (None, None, None)), ("/and_back", (None, None, None))):
            case.equal(f.get(url + path, headers={"X-Token": "abc"}), {path[1:]: BODY}, path)
            case.equal(seen.pop(), wanted, path)
        case.equal(f.get("s3::" + server.url + "/bucket/x", options=keys), "the server answered with status 302")
        case.equal(seen, [])


def test_a_list_of_checksums_elsewhere_is_fetched_without_headers():
    seen = []

    def list_of(h):
        seen.append(h.headers.get("X-Token"))
        h.reply(sums().encode())
    with web.Server({"/sums": list_of}) as other:
        server.files["/sums"] = list_of
        for at, token in ((server, "abc"), (other, None)):
            case.equal(f.get(server.url + "/a.txt", options={"checksum": "file:" + at.url + "/sums"}, headers={"X-Token": "abc"}), {"a.txt": BODY})
            case.equal(seen.pop(), token)


def test_the_body_of_a_redirect_does_not_matter():
    server.files["/long"] = lambda h: h.reply(b"x" * 100000, 302, [("Location", "/a.txt")])
    server.files["/endless"] = lambda h: h.reply(b"x" * (2 << 20), 302, [("Location", "/a.txt")])
    case.equal(f.get(server.url + "/long"), {"long": BODY})
    case.equal(f.get(server.url + "/endless"), "the server sends more than 1048576 bytes of headers")


def test_a_server_that_is_busy_is_asked_again():
    case.equal(f.get(server.url + "/flaky"), {"flaky": BODY})


def test_sources_that_are_refused():
    for source, text in (
            (server.url + "/", "the source is a directory: only files and archives can be fetched by http"),
            (server.url + "/a.txt//sub", "the source has a subdirectory (//), but is neither an archive nor a repository"),
            ("file:///etc/passwd", "files of this machine cannot be artifacts: use a host volume"),
            ("file::/etc/passwd", "files of this machine cannot be artifacts: use a host volume"),
            ("/etc/passwd", "files of this machine cannot be artifacts"),
            ("./relative", "neither a repository nor a bucket nor an absolute path"),
            ("hg::http://127.0.0.1/x", "hg is not supported"),
            ("gcs::https://www.googleapis.com/storage/v1/b/o", "gcs is not supported"),
            ("ftp://127.0.0.1/x", 'scheme "ftp" is not supported'),
            ("http::file:///etc/passwd", 'the url of http:: has scheme "file"'),
            ("http://", "the source is not a valid url"),
            ("http://127.0.0.1:99999/x", "the source is not a valid url"),
            ("http://a b/x", "the source has a space or control character"),
            (server.url + "/a.txt?filename=../x", "the artifact's file name is not valid"),
            (server.url + "/a.txt?filename=a%2fb", "the artifact's file name is not valid"),
            (server.url + "/nothing", "the server answered with status 404")):
        case.contains(f.get(source), text, source)
    case.contains(f.get(server.url + "/a.txt", mode="dir"), 'mode "dir": the source is not an archive')
    for more in ({"headers": {"X": "a\r\nY: b"}}, {"headers": {"X\n": "a"}}, {"options": {"x": "\n"}}):
        case.contains(f.get(server.url + "/a.txt", **more), "an option or header has a control character")


def test_checksums_in_all_forms():
    for kind in ("md5", "sha1", "sha256", "sha512"):
        value = hashlib.new(kind, BODY).hexdigest()
        for text in (value, value.upper(), kind + ":" + value, kind.upper() + ":" + value):
            case.equal(f.get(server.url + "/a.txt", options={"checksum": text}), {"a.txt": BODY}, text)
        wrong = hashlib.new(kind, b"x").hexdigest()
        case.equal(f.get(server.url + "/a.txt?checksum=" + wrong), "its %s is %s, but must be %s" % (kind, value, wrong))
    for text in ("x", "sha256:abc", "sha3:" + "0" * 64, "md5:" + "0" * 40, "0" * 63, "g" * 32):
        case.contains(f.get(server.url + "/a.txt", options={"checksum": text}), "is not valid")


def test_checksums_of_a_file():
    other = "0" * 64 + "  other.txt\n"
    good = {
        "gnu": other + sums(), "binary": other + sums(style="%s *%s\n"), "dotted": sums(name="./a.txt"), "alone": sums(style="%s\n%s"),
        "bsd": "SHA256 (other.txt) = " + "0" * 64 + "\nSHA256 (a.txt) = %s\n" % hashlib.sha256(BODY).hexdigest(),
        "crlf": other.replace("\n", "\r\n") + sums().replace("\n", "\r\n"), "sha512": sums("sha512"), "last": sums().rstrip("\n"),
        "comment": "# a comment of several words here\n\n" + sums(),
    }
    for name, text in good.items():
        server.files["/" + name] = text.encode()
        case.equal(f.get(server.url + "/a.txt?checksum=file:" + server.url + "/" + name), {"a.txt": BODY}, name)
    for form in ("file:gnu", "file:./gnu"):
        case.equal(f.get(server.url + "/a.txt?checksum=" + form), {"a.txt": BODY}, form)
    for name, text, said in (("none", other, 'the file with checksums has none for "a.txt"'), ("blank", "", "has none"),
                             ("wrong", sums().replace(sums()[:4], "ffff"), "but must be ffff"), ("huge", "x" * (1 << 21), "more than the 1048576 bytes")):
        server.files["/" + name] = text.encode()
        case.contains(f.get(server.url + "/a.txt?checksum=file:" + server.url + "/" + name), said, name)
    case.contains(f.get(server.url + "/a.txt?checksum=file:/etc/passwd"), "the file with checksums: the server answered with status 404")
    case.contains(f.get(server.url + "/a.txt?checksum=file:file:///etc/passwd"), "must come from http:// or https://")


with web.Server(FILES) as server, fetch.Fetcher() as f:
    case.run(globals())
