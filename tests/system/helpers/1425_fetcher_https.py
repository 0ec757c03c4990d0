# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: whose certificates it accepts, by http and by git, and what a redirect between http and https carries on."""
import contextlib
import os
import shutil
import subprocess

from lib import case, fetch, web
from lib.helper import mount, umount

BODY = b"hello\n"
UNKNOWN = "unable to get local issuer certificate"
KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes")


def openssl(*words):
    subprocess.run(["openssl", *words], cwd=base, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def authority(name):
    openssl("req", "-x509", *KEY, "-days", "2", "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".pem",
            *(() if name != "self" else ("-addext", "subjectAltName=IP:127.0.0.1")))
    return "%s/%s.pem" % (base, name), "%s/%s.key" % (base, name)


def signed(name, names="IP:127.0.0.1", days=2, signer="ca"):
    """Makes a certificate with these names. Returns its file and that of its key."""
    case.write("%s/%s.ext" % (base, name), "subjectAltName=%s\n" % names)
    openssl("req", *KEY, "-subj", "/CN=127.0.0.1", "-keyout", name + ".key", "-out", name + ".csr")
    openssl("x509", "-req", "-in", name + ".csr", "-CA", signer + ".pem", "-CAkey", signer + ".key", "-CAcreateserial", "-days", str(days),
            "-extfile", name + ".ext", "-out", name + ".pem")
    return "%s/%s.pem" % (base, name), "%s/%s.key" % (base, name)


def redirect(to):
    return lambda h: h.reply(b"", 302, [("Location", to)])


def record(h):
    seen.append((h.headers.get("Authorization"), h.headers.get("X-Token")))
    h.reply(BODY)


@contextlib.contextmanager
def machine_knows(path):
    """The authority in this file is the only one of the machine, in the mount namespace of this test."""
    os.makedirs(base + "/certs", exist_ok=True)
    with open(path, encoding="ascii") as file:
        case.write(base + "/certs/ca-certificates.crt", file.read())
    mount(base + "/certs", "/etc/ssl/certs", "", 4096)
    try:
        yield
    finally:
        umount("/etc/ssl/certs", 2)


@contextlib.contextmanager
def named(path):
    """A fetcher that has the file's name from the agent's environment, and may read it."""
    with fetch.Fetcher(config='client {\n  artifact {\n    filesystem_isolation_extra_paths = ["f:r:%s"]\n  }\n}\n' % path,
                       env={"SSL_CERT_FILE": path}) as f:
        yield f


def test_certificates_that_are_accepted_and_refused():
    """The error says why. Nothing is sent to a server that is refused, unless the artifact is insecure."""
    wrong = (("name", signed("name", "IP:127.0.0.2,DNS:localhost"), "no alternative certificate subject name matches target host name '127.0.0.1'"),
             ("expired", signed("expired", days=-1), "certificate has expired"), ("self", authority("self"), "self-signed certificate"),
             ("other", signed("other", signer="far"), UNKNOWN))
    with named(ca) as f:
        case.equal(f.get(good.url + "/a.txt"), {"a.txt": BODY})
        case.equal(f.get(good.url.replace("//", "//me:secret@") + "/a.txt", headers={"X-Token": "abc"}), {"a.txt": BODY})
        case.equal(good.requests[-1][1]["X-Token"], "abc")
        for name, cert, said in wrong:
            with web.Server({"/a.txt": BODY}, cert=cert) as server:
                url = server.url.replace("//", "//me:secret@") + "/a.txt"
                answer = f.get(url, headers={"X-Token": "abc"})
                case.contains(answer, said, name)
                case.equal(("secret" in answer, server.requests), (False, []), "what a refused server learns")
                case.equal(f.get(url, insecure=True), {"a.txt": BODY}, name)
                case.contains(f.get(url), said, name + ", after it was accepted once")


def test_authorities_of_the_machine():
    with machine_knows(ca):
        with fetch.Fetcher() as f:
            case.equal(f.get(good.url + "/a.txt"), {"a.txt": BODY})
            case.equal(f.get("git::" + good.url + "/repo", keep=True)["a.txt"], b"cloned")
    with machine_knows(far):
        with fetch.Fetcher() as f:
            case.contains(f.get(good.url + "/a.txt"), UNKNOWN)
        with named(ca) as f:
            case.equal(f.get(good.url + "/a.txt"), {"a.txt": BODY})


def test_a_file_of_authorities_that_cannot_be_read():
    """Without filesystem_isolation_extra_paths, or because it is none, nothing is trusted in its stead."""
    empty = case.write(base + "/empty.pem", "")
    with fetch.Fetcher(env={"SSL_CERT_FILE": ca}) as f:
        case.contains(f.get(good.url + "/a.txt"), "error setting certificate")
    with named(empty) as f:
        case.contains(f.get(good.url + "/a.txt"), "error setting certificate")


def test_a_directory_of_authorities():
    """Its files are named as `openssl rehash` does it."""
    path = base + "/rehashed"
    os.mkdir(path)
    shutil.copy(ca, path)
    with machine_knows(far), fetch.Fetcher(config='client {\n  artifact {\n    filesystem_isolation_extra_paths = ["d:r:%s"]\n  }\n}\n' % path,
                                           env={"SSL_CERT_DIR": path}) as f:
        case.contains(f.get(good.url + "/a.txt"), UNKNOWN)
        openssl("rehash", path)
        case.equal(f.get(good.url + "/a.txt"), {"a.txt": BODY})
        case.equal(f.get("git::" + good.url + "/repo")["a.txt"], b"cloned")


def test_repositories():
    with named(ca) as f:
        case.equal(f.get("git::" + good.url + "/repo")["a.txt"], b"cloned")
    with fetch.Fetcher() as f:
        case.contains(f.get("git::" + good.url + "/repo"), "certificate verification failed")
        case.equal(f.get("git::" + good.url + "/repo", insecure=True)["a.txt"], b"cloned")


def test_redirects_between_http_and_https():
    """Secrets of an http server go on to https of the same host where both have their usual ports, and never from https to http."""
    secrets = ("Basic bWU6c2VjcmV0", "abc")
    with web.Server({"/record": record}, port=80) as plain, web.Server({"/record": record}, cert=cert, port=443) as secure, \
            web.Server({"/record": record}) as other, named(ca) as f:
        hops = {"/up": (plain, "https://127.0.0.1/record", secrets), "/same": (secure, "https://127.0.0.1:443/record", secrets),
                "/down": (secure, "http://127.0.0.1/record", (None, None)), "/elsewhere": (plain, good.url + "/record", (None, None)),
                "/from_a_port": (other, "https://127.0.0.1/record", (None, None))}
        for path, (server, to, wanted) in hops.items():
            server.files[path] = redirect(to)
            url = server.url.replace("//", "//me:secret@")
            case.equal(f.get(url + path, headers={"X-Token": "abc"}), {path[1:]: BODY}, path)
            case.equal(seen, [wanted], path)
            seen.clear()
        with web.Server({"/record": record}, cert=signed("late", days=-1)) as late:
            plain.files["/to_late"] = redirect(late.url + "/record")
            case.contains(f.get(plain.url + "/to_late"), "certificate has expired")
            case.equal(seen, [])


base, seen = case.directory(), []
os.chmod(base, 0o755)
ca, far = authority("ca")[0], authority("far")[0]
cert = signed("good")
with web.Server({"/a.txt": BODY, "/record": record, **{"/repo" + path: body for path, body in web.repository("cloned").items()}}, cert=cert) as good:
    case.run(globals())
