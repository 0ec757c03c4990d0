# SPDX-License-Identifier: Apache-2.0
"""image-unpacker alone: layers whose entries contradict each other, lead out, or need too much. It is root here, outside of a user namespace."""
import gzip
import hashlib
import os
import stat
import tarfile

from lib import case, helper, images, ipc

OTHER = "ab" * 32  # a layer that is there already


class Unpacker(helper.Helper):
    def __init__(self, places):
        super().__init__("image-unpacker", places)
        self.store = places.data + "/images"
        os.makedirs("%s/layers/%s" % (self.store, OTHER), exist_ok=True)
        case.write("%s/layers/%s/kept" % (self.store, OTHER), "kept\n")

    def unpack(self, tar, max_bytes=1 << 26, max_files=1000, pack=gzip.compress):
        """Returns the directory of the layer; RequestError if there is none."""
        blob = pack(tar)
        digest, layer = hashlib.sha256(blob).hexdigest(), hashlib.sha256(tar).hexdigest()
        path = self.store + "/blobs/" + digest
        with open(path, "wb") as f:
            f.write(blob)
        try:
            self.ipc.call("UNP_LAYER_UNPACK_REQ", {"max_bytes": max_bytes, "max_files": max_files, "timeout_ms": 60000, "blob": digest, "layer": layer})
        finally:
            os.unlink(path)
        return "%s/layers/%s" % (self.store, layer)

    def fails(self, part, entries, **more):
        data = entries if isinstance(entries, bytes) else images.tar(entries)
        why = str(case.raises(ipc.RequestError, self.unpack, data, **more))
        case.contains(why, part)
        self.check_store()
        return why

    def check_store(self):
        case.equal(os.listdir(self.store + "/blobs"), [], "blobs")
        case.equal(os.listdir("%s/layers/%s" % (self.store, OTHER)), ["kept"], "another layer")
        at = os.stat("%s/layers/%s/kept" % (self.store, OTHER))
        case.equal((at.st_uid, stat.S_IMODE(at.st_mode), at.st_nlink, at.st_size), (0, 0o644, 1, 5), "its file")


def block(name, kind=b"0", size=0, link="", **more):
    """One header as it stands, whatever it means."""
    info = tarfile.TarInfo(name)
    info.type, info.size, info.linkname = kind, size, link
    for key, value in more.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.USTAR_FORMAT)


def padded(data):
    return data + bytes(-len(data) % 512)


END = bytes(1024)


def pax(name="x", body=b"", **records):
    """An entry with these records in its extended header, also if they contradict the header."""
    text = b""
    for key, value in records.items():
        line = b" " + key.replace("__", ".").encode() + b"=" + (value if isinstance(value, bytes) else value.encode()) + b"\n"
        n = len(line)
        while n != len(line) + len(str(n)):
            n = len(line) + len(str(n))
        text += str(n).encode() + line
    return block("pax", b"x", len(text)) + padded(text) + block(name, size=len(body)) + padded(body)


def test_links_and_roots():
    """CVE-2021-29136: the root itself as a link; CVE-2021-32760: modes through links; hard links to another layer."""
    outside = case.directory()
    case.write(outside + "/kept", "kept\n")
    os.chmod(outside + "/kept", 0o600)
    with helper.Places() as places, Unpacker(places) as u:
        for root in (".", "./", "/", "//", "..", "../.", "a/.."):
            for kind in (b"2", b"1", b"5", b"0"):
                try:
                    at = u.unpack(block(root, kind, link=outside, mode=0o777) + block("kept") + block("made/by") + END)
                    case.equal((stat.S_ISDIR(os.lstat(at).st_mode), os.path.lexists(at + "/made/by")), (True, True), "%r of type %s" % (root, kind))
                except ipc.RequestError as e:
                    case.equal(str(e).count("leads out of the image") + str(e).count("must be in the same layer"), 1, str(e))
        u.unpack(block("kept", b"2", link=outside + "/kept", mode=0o4777, uid=7) + block("hard", b"1", link="kept", mode=0o4777, uid=7) + block("kept", mode=0o4777, uid=7) + END)
        for target in ("../%s/kept" % OTHER, "/layers/%s/kept" % OTHER, outside + "/kept", "way/kept"):
            u.fails("which must be in the same layer", [images.link("way", "../" + OTHER), images.link("layers", "/.."), images.hardlink("hard", target)])
        u.fails("which must be in the same layer", [images.hardlink("own", "own")])
        u.check_store()
    at = os.stat(outside + "/kept")
    case.equal((os.listdir(outside), stat.S_IMODE(at.st_mode), at.st_uid, at.st_nlink), (["kept"], 0o600, 0, 1), "the machine")


def test_kinds_of_entries():
    """Devices are passed over, and with them what refers to them; whiteouts have odd names."""
    with helper.Places() as places, Unpacker(places) as u:
        at = u.unpack(block("b", b"4", devmajor=8) + block("c", b"3", devmajor=1, devminor=1) + block("white", b"3") + block("f", b"6") + block("d/.wh.x", b"5") +
                      block("d/.wh..wh.plnk", b"5") + block("d/.WH.upper") + block(".wh.dir/in") + block("d/.wh.white", b"3") + block("d/.wh.link", b"2", link="/") + END)
        case.equal(sorted(os.listdir(at)), [".wh.dir", "d", "f"], "the layer")
        case.equal(sorted(os.listdir(at + "/d")), [".WH.upper", "link", "white", "x"], "a directory of whiteouts")
        case.equal([os.lstat(at + "/d/" + x).st_rdev for x in ("x", "white", "link")], [0, 0, 0], "devices")
        u.fails("which must be in the same layer", block("c", b"3", devmajor=1, devminor=1) + block("hard", b"1", link="c") + END)
        u.fails("has no name", block("a/.wh...") + END)


def test_headers_that_contradict():
    with helper.Places() as places, Unpacker(places) as u:
        for records, name in (({"path": "../../../../../out"}, "out"), ({"path": "/etc/out"}, "etc/out"), ({"path": "a\0b"}, "a"), ({"linkpath": "/etc/shadow"}, "x"),
                              ({"GNU__sparse__name": "../sparse"}, "sparse"), ({"SCHILY__filetype": "link"}, "x")):
            at = u.unpack(pax(body=b"1234", **records) + END)
            found = [os.path.relpath(os.path.join(top, f), at) for top, _, files in os.walk(at) for f in files]
            case.equal(found in ([name], ["x"]), True, "%s made %s" % (records, found))
        for records in ({"uid": "-1"}, {"uid": "4294967296"}, {"gid": "65536"}, {"uid": "99999999999999999999"}):
            u.fails("containers have the ids 0 to 65535", pax(**records) + END)
        for records in ({"size": "-1"}, {"size": "99999999999999999999"}, {"size": "1000000"}, {"mtime": "-99999999999999999999"}, {"GNU__sparse__map": "0,1,x"},
                        {"GNU__sparse__major": "1", "GNU__sparse__minor": "0", "GNU__sparse__realsize": "4611686018427387904"}):
            try:
                at = u.unpack(pax(body=b"1\n0\n512\n", **records) + END)
                case.equal(os.statvfs(at).f_bsize > 0 and sum(os.lstat(at + "/" + x).st_blocks for x in os.listdir(at)) < 100, True, "blocks of %s" % records)
            except ipc.RequestError as e:
                case.equal(str(e).count("damaged") + str(e).count("write \"") + str(e).count("set the time"), 1, str(e))
            u.check_store()
        long = b"n" * 5000 + b"\0"
        u.fails("is too long", block("././@LongLink", b"L", len(long)) + padded(long) + block("x") + END)
        u.fails("damaged", block("././@LongLink", b"L", 1 << 30) + padded(long) + END)


def test_attributes():
    """What overlayfs would obey is left out, whatever the header calls it; what is too large for the file system ends with a sentence."""
    with helper.Places() as places, Unpacker(places) as u:
        names = ("user.overlay.redirect", "user.overlay.metacopy", "user.overlay.opaque", "user.overlay.whiteout", "user.overlay.overlay.opaque", "trusted.overlay.redirect",
                 "security.selinux", "security.ima", "system.posix_acl_access", "user.kept")
        at = u.unpack(pax(**{"SCHILY__xattr__" + x: "y" for x in names}) + pax("z", **{"LIBARCHIVE__xattr__" + x: "eQ==" for x in names}) + END)
        case.equal((os.listxattr(at + "/x"), os.listxattr(at + "/z")), (["user.kept"], ["user.kept"]), "attributes")
        u.fails("set the attribute user.a of \"x\"", pax(SCHILY__xattr__user__a=b"x" * 100000) + END)
        u.fails("", pax(SCHILY__xattr__security__capability="none") + END)
        u.fails("", pax(SCHILY__xattr__user__a=b"x" * (80 << 20)) + END, max_bytes=1 << 30)
        u.fails("", pax(**{"SCHILY__xattr__user__%d" % n: b"y" * 100 for n in range(5000)}) + END)


def test_a_blob_that_is_a_pipe():
    """Earlier, a worker waited for its writer until the timeout."""
    with helper.Places() as places, Unpacker(places) as u:
        path = u.store + "/blobs/" + "0" * 64
        os.mkfifo(path)
        why = case.raises(ipc.RequestError, u.ipc.call, "UNP_LAYER_UNPACK_REQ", {"max_bytes": 1, "max_files": 1, "timeout_ms": 60000, "blob": "0" * 64, "layer": "1" * 64})
        case.contains(str(why), "the blob sha256:%s is damaged" % ("0" * 64))
        os.unlink(path)


def test_limits():
    with helper.Places() as places, Unpacker(places) as u:
        zeros = block("f", size=1 << 30)[:512]
        u.fails("more than the %d bytes that are allowed" % (1 << 20), zeros + bytes(4 << 20), max_bytes=1 << 20)
        u.fails("more than the 10 files that are allowed", [images.file("f%d" % n) for n in range(11)], max_files=10)
        at = u.unpack(images.tar([images.file("f%d" % n) for n in range(10)]), max_files=10)
        case.equal(len(os.listdir(at)), 10, "files")


def test_directories_that_are_only_parts_of_names_count():
    """Earlier, a layer of few entries could make 512 times as many directories as are allowed."""
    with helper.Places() as places, Unpacker(places) as u:
        names = ["%s/f" % "/".join("%d-%d" % (n, d) for d in range(100)) for n in range(30)]
        u.fails("more than the 1000 files that are allowed", [images.file(x) for x in names])
        at = u.unpack(images.tar([images.file(x) for x in names[:9]]))
        case.equal(sum(len(dirs) + len(files) for _, dirs, files in os.walk(at)), 9 * 101, "files and directories")


def test_entries_that_need_long():
    """GHSA-rp3h-jf77-q9p4: each entry takes as long as its path is, however many there are."""
    with helper.Places() as places, Unpacker(places) as u:
        entries = []
        for n in range(3000):
            entries += [images.file("d/f%d" % n), images.opaque("d"), images.whiteout("d/g%d" % n), images.directory("d")]
        at = u.unpack(images.tar(entries), max_files=100000)
        case.equal((len(os.listdir(at + "/d")), os.getxattr(at + "/d", "user.overlay.opaque")), (6000, b"y"), "the directory")


case.run(globals())
