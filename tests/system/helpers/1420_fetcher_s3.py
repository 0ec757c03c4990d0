# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: objects of buckets. The server here verifies the signature of each request (AWS Signature Version 4)."""
import hashlib
import hmac
import urllib.parse

from lib import case, fetch, web

KEY, SECRET, TOKEN = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "a/session+token=="
BODY = b"an object\n"


def sign(h, secret, region):
    """Returns the signature that the request must have."""
    auth = dict(part.strip().split("=", 1) for part in h.headers["Authorization"].split(" ", 1)[1].split(","))
    date = h.headers["X-Amz-Date"]
    path, _, query = h.path.partition("?")
    pairs = sorted(urllib.parse.parse_qsl(query, keep_blank_values=True))
    canonical = "\n".join([
        h.command, path, "&".join("%s=%s" % (urllib.parse.quote(k, safe="-_.~"), urllib.parse.quote(v, safe="-_.~")) for k, v in pairs),
        "".join("%s:%s\n" % (name, h.headers[name].strip()) for name in auth["SignedHeaders"].split(";")), auth["SignedHeaders"],
        h.headers.get("X-Amz-Content-Sha256", hashlib.sha256(b"").hexdigest())])
    scope = "%s/%s/s3/aws4_request" % (date[:8], region)
    text = "\n".join(["AWS4-HMAC-SHA256", date, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    key = ("AWS4" + secret).encode()
    for part in scope.split("/"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return auth, "%s/%s" % (KEY, scope), hmac.new(key, text.encode(), "sha256").hexdigest()


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


def test_sources_that_are_refused():
    for source, said in (("s3::s3://bucket/x", "must be http:// or https://"), ("s3::" + server.url + "/bucket/x?aws_profile=me", "aws_profile is not supported"),
                         ("s3::" + server.url + "/bucket/", "the source is a directory")):
        case.contains(f.get(source), said)


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
                             ("bucket.s3-eu-west-3.amazonaws.com", "eu-west-3")):
            case.equal(other.get("s3::http://%s/x?%s" % (host, keys)), {"x": BODY})
            case.equal(seen[-1], ("http://%s/x" % host, region))


with web.Server(FILES) as server, fetch.Fetcher() as f:
    case.run(globals())
