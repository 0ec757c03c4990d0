# SPDX-License-Identifier: Apache-2.0
"""Container images: what is fetched, what the layers look like on disk, what is kept and what is removed."""
import os
import shutil
import signal
import stat
import tempfile
import threading
import time

from lib import api, case, exposition, helper, images, web

BASE = images.tar([images.directory("./", mode=0o755), images.directory("bin"), images.file("bin/sh", b"#!/bin/sh\n", mode=0o755), images.directory("etc"),
                   images.file("etc/removed", b"x"), images.directory("etc/hidden"), images.file("etc/hidden/a", b"a")])
NEXT = images.tar([images.file("etc/user", b"of user 5", mode=0o640, uid=5, gid=6, mtime=1000000000),
                   images.file("bin/su", b"setuid", mode=0o4755), images.directory("tmp", mode=0o1777), images.link("bin/ash", "sh", uid=7),
                   images.link("absolute", "/etc/passwd"), images.hardlink("bin/su2", "bin/su"), images.whiteout("etc/removed"), images.opaque("etc/hidden"),
                   images.file("etc/hidden/b", b"b"), images.file("usr/lib/deep/file", b"made without its directories"), images.file("na\u00efve/\u6587", b"utf-8"),
                   images.file("etc/marked", b"xattr", pax_headers={"SCHILY.xattr.user.note": "kept", "SCHILY.xattr.user.overlay.redirect": "/etc",
                                                                    "SCHILY.xattr.trusted.overlay.opaque": "y"}),
                   ("dev/null", None, {"type": b"3", "devmajor": 1, "devminor": 3, "mode": 0o666}), ("run/pipe", None, {"type": b"6", "mode": 0o600})])
first = images.Image([BASE], {"Cmd": ["/bin/sh"]})
second = images.Image([BASE, NEXT], {"Entrypoint": ["/bin/sh"], "User": "5"})


def shown(name):
    """The image, or its pull, which comes after an image that it replaces."""
    return next((x for x in reversed(node.ask("/v1/agent/images")) if x["Name"] == name), None)


def pull(reference, **more):
    """Returns the image, or the error of its pull."""
    name = node.do("PUT", "/v1/agent/images", {"Name": reference, **more})["Name"]
    case.until(lambda: (shown(name) or {}).get("Status") in ("ready", "failed"), 30, "the end of the pull of " + name)
    return shown(name)


def served(repositories):
    return web.Server(images.registry(repositories))


def remove_all():
    for image in node.ask("/v1/agent/images"):
        if image["Status"] == "ready":
            node.do("DELETE", "/v1/agent/images?name=" + image["Name"])
    case.until(lambda: images.layers(node) == [], 20, "all layers to be removed")


def test_an_image_is_fetched_and_its_layers_are_as_overlayfs_needs_them():
    with served({"team/app": {"1": second}}) as server:
        image = pull(images.name(server, "team/app:1"))
        case.equal((image["Status"], image["Digest"], image["Layers"]), ("ready", second.digest, 2), "the image: %s" % image)
    case.equal(images.layers(node), sorted(images.digest(x)[7:] for x in (BASE, NEXT)), "layers")
    case.equal(os.listdir(node.data + "/images/blobs"), [], "blobs that are kept")
    at = lambda path: images.layer_path(node, NEXT, path)  # noqa: E731
    user, program = os.stat(at("etc/user")), os.stat(at("bin/su"))
    case.equal((user.st_uid, user.st_gid, stat.S_IMODE(user.st_mode), user.st_mtime), (images.ID_FIRST + 5, images.ID_FIRST + 6, 0o640, 1e9), "etc/user")
    case.equal((program.st_uid, stat.S_IMODE(program.st_mode), program.st_nlink), (images.ID_FIRST, 0o4755, 2), "a set-user-id file belongs to nobody")
    case.equal((os.readlink(at("bin/ash")), os.lstat(at("bin/ash")).st_uid), ("sh", images.ID_FIRST + 7), "a link")
    case.equal(os.readlink(at("absolute")), "/etc/passwd", "a link that leads out is kept as it is")
    case.equal(stat.S_IMODE(os.stat(at("tmp")).st_mode), 0o1777, "mode of tmp")
    gone = os.stat(at("etc/removed"))
    case.equal((stat.S_ISCHR(gone.st_mode), gone.st_rdev), (True, 0), "a whiteout")
    case.equal(os.getxattr(at("etc/hidden"), "user.overlay.opaque"), b"y", "an opaque directory")
    case.equal(os.listdir(at("etc/hidden")), ["b"], "its own files")
    case.equal(os.listxattr(at("etc/marked")), ["user.note"], "attributes that are kept")
    case.equal(os.path.exists(at("dev/null")), False, "a device node is left out")
    case.equal(stat.S_ISFIFO(os.stat(at("run/pipe")).st_mode), True, "a pipe")
    case.equal(open(at("na\u00efve/\u6587"), "rb").read(), b"utf-8", "a name in UTF-8")
    case.equal(open(at("usr/lib/deep/file"), "rb").read(), b"made without its directories", "a file whose directories the layer does not have")
    for path in ("images/layers", "images/blobs"):
        mode = stat.S_IMODE(os.stat(node.data + "/" + path).st_mode)
        case.equal(mode & 0o007, 0, "%s is closed to others: 0%o" % (path, mode))


def test_overlayfs_takes_the_layers():
    """The files that a container will see, by a mount with the option for layers without privileges."""
    base = tempfile.mkdtemp()
    lower = ":".join(images.layer_path(node, x).rstrip("/") for x in (NEXT, BASE))
    helper.mount("overlay", base, "overlay", 0, "userxattr,lowerdir=" + lower)
    try:
        case.equal(sorted(os.listdir(base + "/etc")), ["hidden", "marked", "user"], "etc of the image")
        case.equal(os.listdir(base + "/etc/hidden"), ["b"], "the opaque directory")
        case.equal(sorted(os.listdir(base + "/bin")), ["ash", "sh", "su", "su2"], "bin of the image")
    finally:
        helper.umount(base)
        os.rmdir(base)


def test_what_is_here_is_not_fetched_again():
    remove_all()
    with served({"a": {"1": first}, "b": {"1": second}}) as server:
        pull(images.name(server, "a:1"))
        pull(images.name(server, "b:1"))
        blob = "/v2/%s/blobs/" + images.digest(second.blobs[0])
        case.equal((server.count(blob % "a"), server.count(blob % "b")), (1, 0), "fetches of the layer that both have")
        asked = len(server.requests)
        node.replace_supervisor()
        case.equal(pull(images.name(server, "a:1"))["Status"], "ready", "the image after a restart")
        case.equal(len(server.requests), asked, "requests for an image that is here")
        case.equal(pull(images.name(server, "a:1"), Force=True)["Status"], "ready", "the image, asked for again")
        case.equal(server.count(blob % "a"), 1, "fetches of its layer")


def test_removed_images_lose_the_layers_that_no_other_has():
    names = [x["Name"] for x in node.ask("/v1/agent/images")]
    for name, left in ((next(x for x in names if x.endswith("/b:1")), [images.digest(BASE)[7:]]), (next(x for x in names if x.endswith("/a:1")), [])):
        node.do("DELETE", "/v1/agent/images?name=" + name)
        case.until(lambda left=left: images.layers(node) == left, 20, "only %s to be left" % left)
    node.refused(404, "image %s is not on this node" % names[0], "DELETE", "/v1/agent/images?name=" + names[0])


def metrics():
    found = exposition.parse(node.request("GET", "/v1/metrics?format=prometheus").text)
    return {name: found["drover_images_" + name].one() for name in ("on_node", "layers", "size_bytes", "pulls_total", "failed_pulls_total", "pulled_bytes_total")}


def test_the_metrics_of_images():
    remove_all()
    with served({"a": {"1": first}, "b": {"1": second}}) as server:
        before = metrics()
        case.equal([before[x] for x in ("on_node", "layers", "size_bytes")], [0, 0, 0])
        for reference, more, status in (("a:1", {}, "ready"), ("b:1", {}, "ready"), ("a:1", {"Force": True}, "ready"), ("a:1", {}, "ready"), ("a:2", {}, "failed")):
            case.equal(pull(images.name(server, reference), **more)["Status"], status, "the pull of " + reference)
        after, size = metrics(), len(second.blobs[0]) + len(second.blobs[1])
        case.equal([after[x] for x in ("on_node", "layers", "size_bytes")], [2, 2, size])
        case.equal([after[x] - before[x] for x in ("pulls_total", "failed_pulls_total", "pulled_bytes_total")], [5, 1, size])
    remove_all()


def test_one_pull_serves_all_that_want_the_same():
    with served({"a": {"1": second}}) as server:
        for _ in range(5):
            node.do("PUT", "/v1/agent/images", {"Name": images.name(server, "a:1")})
        pull(images.name(server, "a:1"))
        case.equal(server.count("/v2/a/manifests/1"), 1, "requests for the manifest")
    remove_all()


def test_a_killed_image_fetcher():
    """It is stopped, so that questions about the progress wait behind the pull, and then killed: the pull goes on by itself."""
    begun, go = threading.Event(), threading.Event()
    blob = second.blobs[1]

    def slow(h):
        begun.set()
        h.send_response(200)
        h.send_header("Content-Length", str(len(blob)))
        h.end_headers()
        h.wfile.write(blob[:10])
        h.wfile.flush()
        go.wait(30)
        h.wfile.write(blob[10:])
    files = images.registry({"a": {"1": second}})
    files["/v2/a/blobs/" + images.digest(blob)] = slow
    with web.Server(files) as server:
        name = images.name(server, "a:1")
        node.do("PUT", "/v1/agent/images", {"Name": name})
        case.equal(begun.wait(30), True, "whether the layer is being fetched")
        pid = node.processes()["image-fetcher"]
        os.kill(pid, signal.SIGSTOP)
        time.sleep(1.2)  # two questions about the progress
        os.kill(pid, signal.SIGKILL)
        go.set()
        case.until(lambda: (shown(name) or {}).get("Status") == "ready", 30, "the image")
    remove_all()


def test_kinds_of_images():
    """Compression, media types, digests and platforms."""
    other = images.Image([images.tar([images.file("wrong", b"platform")])], architecture="s390x")
    here = images.Image([images.tar([images.file("right", b"platform")])])
    kinds = {"zstd": images.Image([BASE, NEXT], pack="zstd"), "plain": images.Image([BASE, NEXT], pack=""), "docker": images.Image([BASE, NEXT], docker=True),
             "index": images.Index([other, here]), "empty": images.Image([images.tar([]), b""], pack=""), "none": images.Image([])}
    with served({"kinds": kinds}) as server:
        for tag in kinds:
            image = pull(images.name(server, "kinds:" + tag))
            case.equal(image["Status"], "ready", "%s: %s" % (tag, image.get("Error")))
        case.equal(os.listdir(images.layer_path(node, here.tars[0])), ["right"], "the image of this machine's platform")
        case.equal(os.path.exists(images.layer_path(node, other.tars[0])), False, "that of another platform")
        by_digest = pull(images.name(server, "kinds@" + kinds["zstd"].digest))
        case.equal((by_digest["Status"], by_digest["Name"]), ("ready", images.name(server, "kinds@" + kinds["zstd"].digest)), "an image by digest")
    remove_all()


def test_a_layer_that_no_image_has_is_a_leak():
    """What the records do not explain is printed, and removed after the next start, as other leaks; an image's layers are neither."""
    with served({"a": {"1": first}}) as server:
        pull(images.name(server, "a:1"))
        case.equal(node.ask("/v1/agent/leaks"), [], "leaks")
        unknown = "%s/images/layers/%s" % (node.data, "ab" * 32)
        os.makedirs(unknown + "/etc")
        for at in (unknown, unknown + "/etc"):
            os.chown(at, images.ID_FIRST, images.ID_FIRST)
        case.equal([(x["Kind"], x["Name"]) for x in node.ask("/v1/agent/leaks")], [("layer", "ab" * 32)], "leaks")
        case.contains(node.drover("leaks", code=1).out, "ab" * 32)
        node.replace_supervisor()
        case.until(lambda: not os.path.exists(unknown), 30, "the layer to be removed")
        case.equal((node.ask("/v1/agent/leaks"), images.layers(node)), ([], [images.digest(BASE)[7:]]), "leaks, and what is left")
    remove_all()


def test_a_store_that_cannot_be_listed():
    """The pull fails with the reason, and the next one asks again."""
    node.replace_supervisor()  # the new one does not know the layers
    layers = node.data + "/images/layers"
    os.rename(layers, layers + "-away")
    with served({"a": {"1": first}}) as server:
        name = images.name(server, "a:1")
        image = pull(name)
        case.equal(image["Status"], "failed", "without the directory")
        case.contains(image["Error"], "pull image %s: list the layers of images: " % name)
        os.rename(layers + "-away", layers)
        case.equal(pull(name)["Status"], "ready", "with it")
    remove_all()


def test_the_command():
    with served({"a": {"1": first}}) as server:
        name = images.name(server, "a:1")
        case.equal(node.drover("image", "list").out, "No images\n", "an empty list")
        case.equal(node.drover("image", "pull", name).out.splitlines()[-1], "==> %s is here: 1 layers, %s" % (name, first.digest), "a pull")
        case.contains(node.drover("image", "list").out, name, "the list")
        node.drover("image", "remove", name)
        absent = images.name(server, "a:2")
        case.contains(node.drover("image", "pull", absent, code=1).err, "drover: pull image %s: reading manifest 2 in %s: " % (absent, absent[:-2]), "the reason")
        case.contains(node.drover("image", "pull", "Redis", code=1).err, "is not the name of a repository", "a wrong name")


if not shutil.which("skopeo"):
    case.skip("no skopeo")
with api.Node() as node:
    case.run(globals())
