# SPDX-License-Identifier: Apache-2.0
"""Container images, made here, and the files of a registry that has them.

    base = images.Image([images.tar([images.directory("etc"), images.file("etc/a", b"x", uid=5)])], {"Cmd": ["/bin/sh"]})
    with web.Server(images.registry({"team/base": {"1": base}})) as server:
        images.name(server, "team/base:1")

The registry is as the distribution specification has it, for clients that only read.
"""
import gzip
import hashlib
import io
import json
import os
import platform
import re
import subprocess
import tarfile
import tempfile

# proto/container_ids.h: of layers, of files that containers write, and of the first container
ID_FIRST = 0x71000000
ID_FILES = ID_FIRST + 65536
ID_OWN = ID_FIRST + 2 * 65536
OCI = "application/vnd.oci.image."
DOCKER = "application/vnd.docker.distribution.manifest."
HERE = {"x86_64": "amd64", "aarch64": "arm64", "riscv64": "riscv64"}.get(platform.machine(), platform.machine())


def file(path, body=b"", mode=0o644, **more):
    return path, body, {"mode": mode, **more}


def directory(path, mode=0o755, **more):
    return path, None, {"type": tarfile.DIRTYPE, "mode": mode, **more}


def link(path, target, **more):
    return path, None, {"type": tarfile.SYMTYPE, "linkname": target, "mode": 0o777, **more}


def hardlink(path, target):
    return path, None, {"type": tarfile.LNKTYPE, "linkname": target}


def whiteout(path):
    at, _, name = path.rpartition("/")
    return file("%s%s.wh.%s" % (at, "/" if at else "", name))


def opaque(path):
    return file(path + "/.wh..wh..opq")


def busybox(*commands):
    """Returns the entries of a layer with busybox, which is static, under these names in /bin."""
    with open("/bin/busybox", "rb") as f:
        entries = [directory("bin"), file("bin/busybox", f.read(), mode=0o755), directory("tmp", mode=0o1777)]
    return entries + [link("bin/" + name, "busybox") for name in commands]


def program(path, name):
    """Returns the entries of a layer with a program of this machine under this name, and its shared libraries in /lib (LD_LIBRARY_PATH)."""
    found = subprocess.run(["ldd", path], check=True, stdout=subprocess.PIPE).stdout.decode()
    entries = [directory(d) for d in (os.path.dirname(name), "lib", "lib64")]
    with open(path, "rb") as f:
        entries.append(file(name, f.read(), mode=0o755))
    for library in sorted(set(re.findall(r"(/\S+) \(0x", found))):
        with open(library, "rb") as f:
            at = library[1:] if "/ld-" in library else "lib/" + os.path.basename(library)
            entries.append(file(at, f.read(), mode=0o755))
    return entries


def tar(entries):
    """Returns the bytes of a tar. An entry is (path, bytes or None, attributes of the TarInfo)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for path, body, attributes in entries:
            info = tarfile.TarInfo(path)
            for key, value in attributes.items():
                setattr(info, key, value)
            if body is not None:
                info.size = len(body)
            t.addfile(info, io.BytesIO(body) if body is not None else None)
    return out.getvalue()


def digest(data):
    return "sha256:" + hashlib.sha256(data).hexdigest()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


PACKERS = {"gzip": (lambda data: gzip.compress(data, mtime=0), "+gzip"), "zstd": (zstd, "+zstd"), "": (lambda data: data, "")}


class Image:
    """An image of these layers: the bytes of their tars, from the lowest. pack: a name of PACKERS. docker: with Docker's media types. config and
    manifest: a function that changes the one or the other."""

    def __init__(self, layers, config=None, pack="gzip", docker=False, architecture=HERE, change=None):
        packer, suffix = PACKERS[pack]
        self.tars, self.blobs = layers, [packer(x) for x in layers]
        described = {"architecture": architecture, "os": "linux", "config": config or {}, "rootfs": {"type": "layers", "diff_ids": [digest(x) for x in layers]}}
        kinds = [OCI + "manifest.v1+json", OCI + "config.v1+json", OCI + "layer.v1.tar" + suffix]
        if docker:
            kinds = [DOCKER + "v2+json", "application/vnd.docker.container.image.v1+json", "application/vnd.docker.image.rootfs.diff.tar.gzip"]
        self.config = json.dumps(described).encode()
        self.described = {"schemaVersion": 2, "mediaType": kinds[0], "config": self.part(kinds[1], self.config), "layers": [self.part(kinds[2], x) for x in self.blobs]}
        if change:
            change(self.described)
        self.manifest, self.kind = json.dumps(self.described).encode(), kinds[0]
        self.digest = digest(self.manifest)
        self.architecture = architecture

    @staticmethod
    def part(kind, data):
        return {"mediaType": kind, "digest": digest(data), "size": len(data)}

    def files(self, repository, tag):
        at = "/v2/%s/" % repository
        found = {at + "blobs/" + digest(x): x for x in [self.config, *self.blobs]}
        for reference in (tag, self.digest):
            found["%smanifests/%s" % (at, reference)] = document(self.manifest, self.kind)
        return found


class Index:
    """An image of several platforms."""

    def __init__(self, parts):
        self.parts = parts
        listed = [{**Image.part(x.kind, x.manifest), "platform": {"architecture": x.architecture, "os": "linux"}} for x in parts]
        self.kind = OCI + "index.v1+json"
        self.manifest = json.dumps({"schemaVersion": 2, "mediaType": self.kind, "manifests": listed}).encode()
        self.digest = digest(self.manifest)

    def files(self, repository, tag):
        found = {}
        for part in self.parts:
            found.update(part.files(repository, part.architecture))
        found["/v2/%s/manifests/%s" % (repository, tag)] = document(self.manifest, self.kind)
        return found


def document(body, kind):
    return lambda h: h.reply(body, headers=[("Content-Type", kind), ("Docker-Content-Digest", digest(body))])


def registry(repositories):
    """Returns the files of web.Server: {repository: {tag: Image or Index}}."""
    found = {"/v2/": b"{}"}
    for repository, tags in repositories.items():
        for tag, image in tags.items():
            found.update(image.files(repository, tag))
    return found


def name(server, reference):
    return "127.0.0.1:%d/%s" % (server.port, reference)


def layers(node):
    """Returns the names of all that is in the store's directory of layers."""
    return sorted(os.listdir(node.data + "/images/layers"))


def layer_path(node, data, path=""):
    return "%s/images/layers/%s/%s" % (node.data, hashlib.sha256(data).hexdigest(), path)


def layout(parts):
    """Returns the entries of an OCI layout: {name: Image or Index}; "": it has no name."""
    blobs, listed = {}, []
    for name, part in parts.items():
        for one in [part, *getattr(part, "parts", [])]:
            blobs.update((digest(x), x) for x in [one.manifest, *([one.config, *one.blobs] if isinstance(one, Image) else [])])
        listed.append({**Image.part(part.kind, part.manifest), **({"annotations": {"org.opencontainers.image.ref.name": name}} if name else {})})
    return [directory("blobs"), directory("blobs/sha256"), file("oci-layout", b'{"imageLayoutVersion": "1.0.0"}'),
            file("index.json", json.dumps({"schemaVersion": 2, "manifests": listed}).encode()), *(file("blobs/sha256/" + d[7:], x) for d, x in blobs.items())]


def docker_archive(name, image):
    """Returns what skopeo makes of the image, as `docker save` does."""
    with tempfile.TemporaryDirectory() as at:
        with tarfile.open(fileobj=io.BytesIO(tar(layout({"x": image})))) as t:
            t.extractall(at + "/layout")
        subprocess.run(["skopeo", "--override-arch=" + HERE, "copy", "-q", "oci:%s/layout:x" % at, "docker-archive:%s/a.tar:%s" % (at, name)], check=True)
        with open(at + "/a.tar", "rb") as f:
            return f.read()


def docker_entries(parts, manifest=None):
    """Returns the entries of an archive of Docker, by hand: {name: Image}. manifest: changes its manifest."""
    entries, listed = [], []
    for name, image in parts.items():
        config = digest(image.config)[7:] + ".json"
        entries += [file(config, image.config)] + [file(digest(x)[7:] + "/layer.tar", x) for x in image.tars]
        listed.append({"Config": config, "RepoTags": [name], "Layers": [digest(x)[7:] + "/layer.tar" for x in image.tars]})
    if manifest:
        manifest(listed)
    return [*entries, file("manifest.json", json.dumps(listed).encode())]
