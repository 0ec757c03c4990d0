# SPDX-License-Identifier: Apache-2.0
# takes: 70
"""Registries that lie, break and hang, and layers that try to get out: a sentence each, and nothing stays in the store."""
import hashlib
import json
import os
import random
import shutil

from lib import api, case, images, web

OUTSIDE = "/var/tmp/outside-of-all-images"
good = images.Image([images.tar([images.file("a", b"x" * 100000)])])


def end_of(name):
    def ended():
        found = [x for x in node.ask("/v1/agent/images") if x["Name"] == name]
        return found and found[-1]["Status"] in ("ready", "failed") and found[-1]
    return case.until(ended, 30, "the end of the pull of " + name)


asked = []  # the requests of the last pull


def pull(files, reference="a:1"):
    """Returns the error of the pull, or "" if it succeeded."""
    asked.clear()
    with web.Server(files) as server:
        server.requests = server.http.requests = asked
        name = images.name(server, reference)
        node.do("PUT", "/v1/agent/images", {"Name": name})
        image = end_of(name)
        if image["Status"] == "ready":
            node.do("DELETE", "/v1/agent/images?name=" + name)
        else:
            case.equal(image["Error"].startswith("pull image %s: " % name), True, image["Error"])
        return image.get("Error", "")[len("pull image %s: " % name):]


def store_is_empty():
    def left():
        return [x for part in ("layers", "blobs") for x in os.listdir("%s/images/%s" % (node.data, part))]
    case.until(lambda: left() == [], 20, "the store to be empty")


def fails(part, files, **more):
    error = pull(files, **more)
    print("        " + error)
    case.contains(error, part, "the error")
    case.equal((len(error) < 500, "\n" in error), (True, False), "one sentence: %r" % error)
    store_is_empty()


def layer_fails(part, entries):
    """An image with a layer of these entries, or of these bytes."""
    data = entries if isinstance(entries, bytes) else images.tar(entries)
    fails(part, images.registry({"a": {"1": images.Image([images.tar([images.directory("lower")]), data])}}))
    case.equal(os.path.lexists(OUTSIDE), False, "something outside of the store")


def changed(change, **more):
    return images.registry({"a": {"1": images.Image(good.tars, change=change, **more)}})


# --- registries ---

def test_a_registry_that_has_no_such_image():
    fails("reading manifest 1 in ", {"/v2/": b"{}"})


def test_manifests_that_are_wrong():
    kind = images.OCI + "manifest.v1+json"
    path = "/v2/a/manifests/1"
    for body in (b"", b"{", b"[]", b"\xff\xfe\x00", b'{"schemaVersion": 2}', json.dumps({"a": "x" * 5000000}).encode(), b"[" * 100000):
        fails("", {"/v2/": b"{}", path: images.document(body, kind)})


def test_manifests_that_do_not_fit_their_images():
    def no_size(m):
        m["layers"][0]["size"] = -5

    def other_digest(m):
        m["layers"][0]["digest"] = "md5:d41d8cd98f00b204e9800998ecf8427e"

    def twice(m):
        m["layers"] *= 2

    def huge(m):
        m["layers"][0]["size"] = 1 << 50
    fails("", changed(no_size))
    fails("", changed(other_digest))
    fails("its manifest has 2 layers, its configuration names 1", changed(twice))
    fails("more than the 68719476736 that are allowed", changed(huge))
    tars = [images.tar([images.file("f%d" % i)]) for i in range(129)]
    fails("it has 129 layers, more than the 128 that are allowed", images.registry({"a": {"1": images.Image(tars)}}))
    case.equal(pull(images.registry({"a": {"1": images.Image(tars[:128])}})), "", "128 layers")
    store_is_empty()


def test_digests_that_are_none():
    """CVE-2024-3727: a digest is part of urls and of names of files."""
    for digest in ("sha256:../../../../../etc/shadow", "sha256:" + "A" * 64, "", "sha512:" + "a" * 128):
        def layer(m, digest=digest):
            m["layers"][0]["digest"] = digest

        def config(m, digest=digest):
            m["config"]["digest"] = digest
        for change in (layer, config):
            fails("without a SHA-256 digest" if change is config else "no SHA-256 digest", changed(change))
            case.equal({path for path, _ in asked} - {"/v2/", "/v2/a/manifests/1", "/v2/a/blobs/" + images.digest(good.config)}, set(), "requests")
    other = images.Image(good.tars, config={})
    files = images.registry({"a": {"1": good}})
    files["/v2/a/blobs/" + images.digest(good.config)] = other.config.replace(b"linux", b"Linux")
    fails("", files)


def test_manifests_that_are_two_things():
    """CVE-2021-41190: a list of manifests that is a manifest, too, is neither."""
    other = images.Image([images.tar([images.file("other")])])
    index = images.Index([other])
    both = json.dumps({**json.loads(index.manifest), **json.loads(good.manifest), "mediaType": None}).encode()
    for kind in (index.kind, good.kind, "application/json"):
        files = images.registry({"a": {"1": good, "2": other}})
        files["/v2/a/manifests/1"] = images.document(both, kind)
        fails("", files)


def test_layers_that_are_said_to_be_elsewhere():
    """CVE-2020-15157: the urls of a layer could get the password of its registry."""
    with web.Server({"/layer": good.blobs[0]}) as elsewhere:
        def away(m):
            m["layers"][0].update(urls=["http://127.0.0.1:%d/layer" % elsewhere.port], mediaType=kind)
        for kind in (images.OCI + "layer.v1.tar+gzip", images.OCI + "layer.nondistributable.v1.tar+gzip"):
            print("        " + pull(changed(away)))
            store_is_empty()
        case.equal(elsewhere.requests, [], "requests")


def blob_files(answer):
    """The registry of `good`, whose layer answer(handler) sends."""
    files = images.registry({"a": {"1": good}})
    files["/v2/a/blobs/" + images.digest(good.blobs[0])] = answer
    return files


def test_blobs_that_are_not_what_was_promised():
    blob = good.blobs[0]
    other = bytes([blob[0] ^ 1]) + blob[1:]
    fails(images.digest(blob), blob_files(lambda h: h.reply(other)))
    fails("", blob_files(lambda h: h.reply(blob[:-1])))
    fails("", blob_files(lambda h: h.reply(blob + b"x")))
    fails("", blob_files(lambda h: h.reply(b"")))
    fails("", blob_files(lambda h: h.reply(b"no", status=500)))
    fails("", blob_files(lambda h: h.reply(b"", status=302, headers=[("Location", h.path)])))


def test_a_registry_that_dies_in_the_middle():
    def half(h):
        h.send_response(200)
        h.send_header("Content-Length", str(len(good.blobs[0])))
        h.end_headers()
        h.wfile.write(good.blobs[0][:50])
        h.close_connection = True
    fails("", blob_files(half))


def test_secrets_of_a_redirect_are_not_shown():
    def away(h):
        h.reply(b"", status=307, headers=[("Location", "http://127.0.0.1:1/x?Signature=SECRET")])
    error = pull(blob_files(away))
    case.contains(error, "http://127.0.0.1:1/x?", "the error")
    case.equal("SECRET" in error, False, error)
    store_is_empty()


# --- layers ---

def test_layers_that_try_to_get_out():
    """Links of a layer lead to its own files, whatever they look like."""
    ways = [("by a link", [images.link("way", "/"), images.file("way" + OUTSIDE, b"x")]),
            ("by a relative link", [images.link("way", "../../../../../../.."), images.file("way" + OUTSIDE, b"x")]),
            ("by links in a row", [images.link("a", "b"), images.link("b", "/.."), images.file("a" + OUTSIDE, b"x")]),
            ("by an absolute name", [images.file(OUTSIDE, b"x")]),
            ("by a name with ..", [images.directory("d"), images.file("d/../../../../../.." + OUTSIDE, b"x")]),
            ("by a link in place of a directory", [images.directory("d"), images.link("d", "/"), images.file("d" + OUTSIDE, b"x")])]
    for what, entries in ways:
        error = pull(images.registry({"a": {"1": images.Image([images.tar(entries)])}}))
        case.equal((error, os.path.lexists(OUTSIDE)), ("", False), what)
        store_is_empty()
    case.equal(sorted(os.listdir(node.data + "/images")), ["blobs", "layers"], "the store")
    layer_fails("leads out of the image", [images.file("d/..", b"x")])
    layer_fails("which must be in the same layer", [images.hardlink("shadow", "../../../../../../../../etc/shadow")])
    layer_fails("which must be in the same layer", [images.link("etc", "/etc"), images.hardlink("shadow", "etc/shadow")])
    layer_fails("has no name", [images.whiteout("a/..")])
    layer_fails("has no name", [images.whiteout("")])


def test_layers_that_are_wrong():
    layer_fails("containers have the ids 0 to 65535", [images.file("a", uid=65536)])
    layer_fails("containers have the ids 0 to 65535", [images.file("a", gid=4294967295)])
    layer_fails("is too long", [images.file("n" * 300)])
    layer_fails("is too long", [images.file("d/" * 3000 + "f")])
    layer_fails("damaged", b"this is no tar" * 1000)
    layer_fails("damaged", images.tar([images.file("a", b"x" * 10000)])[:5000])
    layer_fails("", [images.file("a"), images.file("a/b")])
    good_tar = images.tar([images.file("a")])

    def lie(m):
        m["layers"][0] = images.Image.part(images.OCI + "layer.v1.tar+gzip", other.blobs[0])
    other = images.Image([images.tar([images.file("b")])])
    files = images.registry({"a": {"1": images.Image([good_tar], change=lie)}})
    files["/v2/a/blobs/" + images.digest(other.blobs[0])] = other.blobs[0]
    fails("its configuration promises the layer " + images.digest(good_tar), files)


def test_damaged_layers():
    """Bytes are changed at random: the layer is refused, and the unpacker lives."""
    draw = random.Random(7)
    data = images.tar([images.directory("d"), images.file("d/a", b"x" * 3000, uid=3), images.link("l", "d"), images.hardlink("h", "d/a"), images.whiteout("w"),
                       images.file("p", b"y", pax_headers={"SCHILY.xattr.user.a": "b", "comment": "c" * 500})])
    pid = node.processes().get("image-unpacker")
    for _ in range(30):
        changed_data = bytearray(data)
        for _ in range(draw.randrange(1, 20)):
            changed_data[draw.randrange(len(changed_data))] = draw.randrange(256)
        pull(images.registry({"a": {"1": images.Image([bytes(changed_data)], pack=draw.choice(("", "gzip")))}}))
    store_is_empty()
    case.equal(node.processes().get("image-unpacker"), pid, "the process id of image-unpacker")
    case.equal([x for x in node.log().splitlines() if "was killed" in x or "died" in x], [], "ends of processes")


def test_many_files():
    entries = [images.directory("d%d" % i) for i in range(200)] + [images.file("d%d/f%d" % (i % 200, i), b"x") for i in range(5000)]
    case.equal(pull(images.registry({"a": {"1": images.Image([images.tar(entries)])}})), "", "5,200 files")
    store_is_empty()


def test_an_image_of_the_same_layers_after_a_failure():
    """What a failed pull has left is no obstacle."""
    blob = good.blobs[0]
    fails("", blob_files(lambda h: h.reply(blob[:-1])))
    case.equal(pull(images.registry({"a": {"1": good}})), "", "the same image")
    case.equal(hashlib.sha256(good.tars[0]).hexdigest() in images.layers(node), False, "its layer, removed")


if not shutil.which("skopeo"):
    case.skip("no skopeo")
with api.Node() as node:
    case.run(globals())
