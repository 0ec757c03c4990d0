# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: objects of buckets. The server here verifies the signature of each request (AWS Signature Version 4)."""
import os
import urllib.parse

from lib import case, fetch, s3, web
from lib.s3 import KEY, SECRET, SIGNED, listing, sign

TOKEN = "a/session+token=="
BODY = b"an object\n"


def private(region="us-east-1", token=None):
    def answer(h):
        if "Authorization" not in h.headers:
            h.reply(b"<Error>AccessDenied</Error>", 403)
            return
        auth, credential, signature = sign(h, SECRET, region)
        good = auth["AWS4-HMAC-SHA256 Credential" if "AWS4-HMAC-SHA256 Credential" in auth else "Credential"] == credential
        good = good and auth["Signature"] == signature and h.headers.get("X-Amz-Security-Token") == token
        h.reply(BODY if good else b"<Error>SignatureDoesNotMatch</Error>", 200 if good else 403)
    return answer


TREE = {"dir/a.txt": b"a", "dir/sub/b c+d.txt": b"b", "dir/sub/\u00fc&<'\">.txt": b"u", "dir/sub/deep/er/x": b"x", "dir/sub/": b"", "dirt": b"beside",
        "dir.txt/x": b"beside", "one": b"of both", "one/two": b"of both", "dir/x.tar.gz": b"no archive"}


class Bucket(web.Handler):
    def do_GET(self):  # pylint: disable=invalid-name
        if self.path.startswith("/tree/"):
            self.server.requests.append((self.path, dict(self.headers)))
            s3.answer(self, TREE)
        else:
            super().do_GET()


FILES = {"/bucket/open.txt": BODY, "/bucket/a/b.txt": private(), "/bucket/eu.txt": private("eu-west-1"), "/bucket/token.txt": private(token=TOKEN),
         "/bucket/version.txt": private()}


def quoted(**values):
    return "&".join("%s=%s" % (k, urllib.parse.quote(v, safe="")) for k, v in values.items())


def test_without_credentials():
    case.equal(f.get("s3::" + server.url + "/bucket/open.txt"), {"open.txt": BODY})
    case.equal("Authorization" in server.requests[-1][1], False)
    case.equal(f.get("s3::" + server.url + "/bucket/a/b.txt"), "the server answered with status 403")


def test_signed_requests():
    keys = quoted(aws_access_key_id=KEY, aws_access_key_secret=SECRET)
    url = "s3::" + server.url + "/bucket/"
    case.equal(f.get(url + "a/b.txt?" + keys), {"b.txt": BODY})
    case.equal(server.requests[-1][0], "/bucket/a/b.txt", "the request, without secrets")
    case.equal(f.get(url + "a/b.txt", options={"aws_access_key_id": KEY, "aws_access_key_secret": SECRET}), {"b.txt": BODY})
    case.equal(f.get(url + "eu.txt?region=eu-west-1&" + keys), {"eu.txt": BODY})
    case.equal(f.get(url + "eu.txt?" + keys), "the server answered with status 403")
    case.equal(f.get(url + "token.txt?" + keys + "&" + quoted(aws_access_token=TOKEN)), {"token.txt": BODY})
    case.equal(f.get(url + "version.txt?version=abc&" + keys), {"version.txt": BODY})
    case.equal(server.requests[-1][0], "/bucket/version.txt?versionId=abc")
    answer = f.get(url + "a/b.txt?" + keys.replace("wJalr", "WRONG"))
    case.equal(answer, "the server answered with status 403")
    case.equal("WRONG" in f.helper.log() or SECRET in f.helper.log(), False, "secrets in the log")


def test_credentials_of_the_environment():
    env = {"AWS_ACCESS_KEY_ID": KEY, "AWS_SECRET_ACCESS_KEY": SECRET, "AWS_SESSION_TOKEN": TOKEN}
    with fetch.Fetcher(env=env) as other:
        case.equal(other.get("s3::" + server.url + "/bucket/token.txt"), {"token.txt": BODY})


def below(prefix):
    """Returns the tree that a directory of TREE becomes."""
    found = {}
    for key in TREE:
        if key.startswith(prefix) and not key.endswith("/"):
            parts = key[len(prefix):].split("/")
            found.update({"/".join(parts[:i]): None for i in range(1, len(parts))})
            found[key[len(prefix):]] = TREE[key]
    return found


def test_directories():
    url = "s3::" + server.url + "/tree/"
    for name, prefix in (("dir", "dir/"), ("dir/", "dir/"), ("dir/sub", "dir/sub/"), ("dir.txt", "dir.txt/")):
        for mode in ("any", "dir"):
            case.equal(f.get(url + name, options=SIGNED, mode=mode), below(prefix), name)
    case.equal(f.get(url + "one", options=SIGNED), {"one": b"of both"})
    case.equal(f.get(url + "one", options=SIGNED, mode="dir"), {"two": b"of both"})
    case.equal(f.get(url + "dir//sub/deep", options=SIGNED), {"er": None, "er/x": b"x"})
    case.contains(f.get(url, options=SIGNED), 'make the file "out/one/two"')
    for name, more, said in (("none", {}, "the server answered with status 404"), ("none", {"mode": "dir"}, 'the bucket has no object below "none/"'),
                             ("none/", {}, 'no object below "none/"'), ("dir", {"mode": "file"}, "status 404"), ("dir", {"max_bytes": 5}, "objects have more than the 5 bytes"),
                             ("dir", {"options": {}}, "status 403"), ("dir//none", {}, "no subdirectory"),
                             ("dir/", {"mode": "file"}, "names no object, but a directory"), ("", {"mode": "file"}, "names no object"), ("dir//sub", {"mode": "file"}, "has a subdirectory"),
                             ("dir", {"options": {**SIGNED, "checksum": "md5:" + "0" * 32}, "mode": "dir"}, "has no checksum")):
        case.contains(f.get(url + name, **{"options": SIGNED, **more}), said, "%s %s" % (name, more))


def test_names_are_encoded_as_signatures_need():
    url = "s3::" + server.url + "/tree/dir/sub/"
    for name in ("b c+d.txt", "b%20c+d.txt", "b%20c%2Bd.txt", "%62%20c%2bd.txt"):
        if " " not in name:
            case.equal(f.get(url + name, options=SIGNED), {"b c+d.txt": b"b"}, name)


def test_lists_of_a_hostile_server():
    answers = []

    def answer(h):
        body = answers[0]() if callable(answers[0]) else answers[0]
        h.reply(body if isinstance(body, bytes) else body.encode(), 200)
    server.files.update({"/evil/": answer, **{"/evil/d/" + name: b"x" for name in ("a", "a/b")}})
    page = [0]

    def endless():
        page[0] += 1
        return listing(["d/%d/" % page[0] if page[0] % 2 else "d/%d" % (page[0] * 1000 + i) for i in range(1000)], more=True)
    for body, said in (
            (listing(["e/x"]), "an object that was not asked for"), (listing(["d"]), "not asked for"), (listing(["/d/x"]), "not asked for"),
            (listing(["d/../x"]), "cannot be that of a file"), (listing(["d/a/../../../x"]), "cannot be that of a file"), (listing(["d//x"]), "cannot be that of a file"),
            (listing(["d/./x"]), "cannot be that of a file"), (listing(["d/" + "x" * 256]), "cannot be that of a file"),
            (listing(["d/" + "x/" * 101 + "x"]), "cannot be that of a file"), (listing(["d/" + "x/" * 600 + "x"]), "cannot be that of a file"),
            (listing(["d/a", "d/a/b"]), "make the file"), (listing(["d/a", "d/a"]), "File exists"), (listing([], more=True), "has no objects"),
            (listing(["d/x"], more=True).replace("NextContinuationToken", "Other"), "does not say how it goes on"),
            (endless, "more than the 100000 objects that are allowed"),
            (b"x" * (9 << 20), "the list of the bucket's objects: the server sends more than the 8388608 bytes"),
            ("", "is damaged"), ("<ListBucketResult>", "is damaged"), ("<a></b>", "is damaged"), ("<!DOCTYPE x>" + listing([]), "is damaged"),
            ("<?xml?><Error><Code>x</Code></Error>", "is damaged"), ("<a>" * 9, "is damaged"), (listing(["d/x"]).replace("d/x", "d/&bomb;"), "is damaged"),
            (listing(["d/x"]).replace("d/x", "d/&#0;"), "is damaged"), (os.urandom(5000), "is damaged"), ("</a>", "is damaged"), ("<>", "is damaged")):
        answers[:] = [body]
        case.contains(f.get("s3::" + server.url + "/evil/d/"), said, str(body)[:100])


def test_sources_that_are_refused():
    for source, said in (("s3::s3://bucket/x", "must be http:// or https://"), ("s3::" + server.url + "/bucket/x?aws_profile=me", "names no file with credentials"),
                         ("s3::" + server.url + "/bucket", "must be a host, a bucket and the name of an object"), ("s3::" + server.url, "must be a host"),
                         ("s3::https://s3.amazonaws.com/bucket", "must be a host"),
                         ("s3::" + server.url + "/bucket/x?region=a%0ab", "a parameter of the source has a control character")):
        case.contains(f.get(source), said)


CREDENTIALS = """# a comment
[default]
aws_access_key_id = AKIDDEFAULT
aws_secret_access_key = x

[ me ]
aws_access_key_id=%s
 aws_secret_access_key   =   %s
region = eu-west-1
; aws_secret_access_key = no
[incomplete]
aws_access_key_id = AKIDOTHER
""" % (KEY, SECRET)


def test_profiles_of_a_file():
    """The configuration names the file, twice: its variable, and the path that the fetcher may read."""
    path = f.places.base + "/credentials"
    case.write(path, CREDENTIALS)
    os.chmod(path, 0o644)
    allowed = 'client { artifact { filesystem_isolation_extra_paths = ["f:r:%s"] } }' % path
    url = "s3::" + server.url + "/bucket/"
    seen = lambda: server.requests[-1][1].get("Authorization", "none")  # noqa: E731
    with fetch.Fetcher(config=allowed, env={"AWS_SHARED_CREDENTIALS_FILE": path}) as other:
        for options in ({"aws_profile": "me"}, {"aws_profile": "me", "aws_access_key_id": "other", "aws_access_key_secret": "other"}):
            case.equal(other.get(url + "a/b.txt", options=options), {"b.txt": BODY})
        case.equal(other.get(url + "a/b.txt"), "the server answered with status 403")
        case.contains(seen(), "Credential=AKIDDEFAULT/")
        case.contains(other.get(url + "open.txt", options={"aws_profile": "incomplete"})["open.txt"], BODY)
        case.equal(seen(), "none", "a profile without a secret")
        case.contains(other.get(url + "a/b.txt", options={"aws_profile": "none"}), 'the agent\'s credentials have no profile "none"')
    with fetch.Fetcher(config=allowed, env={"AWS_SHARED_CREDENTIALS_FILE": path, "AWS_ACCESS_KEY_ID": "AKIDENV", "AWS_SECRET_ACCESS_KEY": "x"}) as other:
        case.equal(other.get(url + "a/b.txt"), "the server answered with status 403")
        case.contains(seen(), "Credential=AKIDENV/")
        case.equal(other.get(url + "a/b.txt", options={"aws_profile": "me"}), {"b.txt": BODY})
    with fetch.Fetcher(env={"AWS_SHARED_CREDENTIALS_FILE": path}) as other:
        case.contains(other.get(url + "a/b.txt", options={"aws_profile": "me"}), "read the file that the agent's variable AWS_SHARED_CREDENTIALS_FILE names: Permission denied")


def test_a_proxy_of_the_environment():
    """Names of Amazon's hosts, as the proxy sees them; also for http."""
    keys = quoted(aws_access_key_id=KEY, aws_access_key_secret=SECRET)
    seen = []

    def answer(h):
        seen.append((h.path, h.headers["Authorization"].split("/")[2]))
        h.reply(BODY)
    server.http.RequestHandlerClass = type("Proxy", (web.Handler,), {"do_GET": answer})
    with fetch.Fetcher(env={"HTTP_PROXY": server.url}) as other:
        for host, region in (("s3.amazonaws.com", "us-east-1"), ("s3-eu-west-1.amazonaws.com", "eu-west-1"), ("s3.eu-north-1.amazonaws.com", "eu-north-1"),
                             ("bucket.s3.amazonaws.com", "us-east-1"), ("bucket.s3.eu-west-2.amazonaws.com", "eu-west-2"),
                             ("bucket.s3-eu-west-3.amazonaws.com", "eu-west-3"), ("my.bucket.s3.dualstack.eu-west-3.amazonaws.com", "eu-west-3"),
                             ("bucket.s3.cn-north-1.amazonaws.com.cn", "cn-north-1")):
            path = "/b/x" if host.startswith("s3") else "/x"
            case.equal(other.get("s3::http://%s%s?%s" % (host, path, keys)), {"x": BODY})
            case.equal(seen[-1], ("http://%s%s" % (host, path), region))
            # The bucket is in the path or in the host's name.
            other.get("s3::http://%s%s/?%s" % (host, path, keys))
            case.equal(seen[-1][0], "http://%s%s?list-type=2&prefix=x%%2F" % (host, path[:-1]))


with web.Server(FILES) as server, fetch.Fetcher() as f:
    server.http.RequestHandlerClass = Bucket
    case.run(globals())
