# SPDX-License-Identifier: Apache-2.0
"""A server of one bucket, "tree". It verifies the signature of each request (AWS Signature Version 4), and lists two objects at a time.

    with s3.Server({"dir/a.txt": b"a"}) as server:
        "s3::" + server.url + "/tree/dir", s3.SIGNED
"""
import hashlib
import hmac
import html
import urllib.parse

from . import web

KEY, SECRET, REGION = "AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", "us-east-1"
SIGNED = {"aws_access_key_id": KEY, "aws_access_key_secret": SECRET}  # options of an artifact


def sign(h, secret, region):
    """Returns the members of the request's signature, and the credential and signature that it must have."""
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


def is_signed(h):
    if "Authorization" not in h.headers:
        return False
    auth, credential, signature = sign(h, SECRET, REGION)
    return auth.get("Signature") == signature and auth.get("Credential") == credential


def listing(keys, more=False, next_token="next", marker=None):
    """Returns an answer to a request for the names of objects."""
    return '<?xml version="1.0" encoding="UTF-8"?>\n<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/"><Name>bucket</Name><Prefix/>%s' \
        '<IsTruncated>%s</IsTruncated>%s%s</ListBucketResult>' % (
            "".join("<Contents><Key>%s</Key><Size>1</Size><Owner><ID>x</ID><DisplayName>y</DisplayName></Owner></Contents>" % html.escape(k) for k in keys),
            "true" if more else "false", "<NextContinuationToken>%s</NextContinuationToken>" % html.escape(next_token) if more else "",
            "" if marker is None else "<Marker>%s</Marker>" % html.escape(marker))


def error(h, status, code):
    h.reply(('<?xml version="1.0"?><Error><Code>%s</Code><Message>m</Message></Error>' % code).encode(), status, [("Content-Type", "application/xml")])


def list_objects(h, objects, query):
    """Answers the second version of the request, whose tokens have characters that must be escaped, and the first."""
    before = "from+/= &"
    if query.get("list-type") == "2":
        start = query.get("continuation-token", before)[len(before):]
        names = [k for k in sorted(objects) if k.startswith(query.get("prefix", "")) and k >= start]
        text = listing(names[:2], more=len(names) > 2, next_token=before + (names + 3 * [""])[2])
    else:
        marker = query.get("marker", "")
        names = [k for k in sorted(objects) if k.startswith(query.get("prefix", "")) and k > marker]
        text = listing(names[:2], more=len(names) > 2, marker=marker)
    h.reply(text.encode(), 200, [("Content-Type", "application/xml")])


def answer(h, objects):
    """Answers for the bucket with these objects, whose path is /tree."""
    path, _, query = h.path.partition("?")
    query = dict(urllib.parse.parse_qsl(query))
    key = urllib.parse.unquote(path)[len("/tree/"):]
    if not is_signed(h):
        error(h, 403, "AccessDenied")
    elif not key:
        list_objects(h, objects, query)
    elif key in objects:
        h.reply(objects[key], 200, [("Last-Modified", "Sat, 01 Jan 2022 00:00:00 GMT"), ("ETag", '"%s"' % hashlib.md5(objects[key]).hexdigest())])
    else:
        error(h, 404, "NoSuchKey")


class Server(web.Server):
    def __init__(self, objects):
        class Handler(web.Handler):
            def do_GET(self):  # pylint: disable=invalid-name
                self.server.requests.append((self.path, dict(self.headers)))
                answer(self, objects)
        super().__init__({})
        self.http.RequestHandlerClass = Handler
