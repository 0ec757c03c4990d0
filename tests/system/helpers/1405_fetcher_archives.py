# SPDX-License-Identifier: Apache-2.0
"""The fetcher alone: archives of all formats, and archives that want to write elsewhere or fill the disk."""
import bz2
import gzip
import io
import lzma
import os
import stat
import subprocess
import tarfile
import zipfile

from lib import case, fetch, web

TREE = {"top.txt": b"top\n", "d": None, "d/in.txt": b"inside\n", "d/run": b"#!/bin/sh\n"}


def tar(*entries):
    """entries: (name, type, contents or target, mode)."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as t:
        for name, kind, what, mode in entries:
            info = tarfile.TarInfo(name)
            info.type, info.mode, info.mtime = kind, mode, 1000000000
            if kind == tarfile.REGTYPE:
                info.size = len(what)
                t.addfile(info, io.BytesIO(what))
            else:
                info.linkname = what
                t.addfile(info)
    return out.getvalue()


def file(name, contents=b"x", mode=0o644):
    return name, tarfile.REGTYPE, contents, mode


def directory(name, mode=0o755):
    return name, tarfile.DIRTYPE, "", mode


def link(name, target):
    return name, tarfile.SYMTYPE, target, 0o777


def hard(name, target):
    return name, tarfile.LNKTYPE, target, 0o644


def zipped(*entries):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as z:
        for name, contents, mode in entries:
            info = zipfile.ZipInfo(name)
            info.external_attr = mode << 16
            z.writestr(info, contents)
    return out.getvalue()


def zstd(data):
    return subprocess.run(["zstd", "-q", "-c"], input=data, stdout=subprocess.PIPE, check=True).stdout


PLAIN = tar(file("./top.txt", b"top\n"), directory("d"), file("d/in.txt", b"inside\n"), file("d/run", b"#!/bin/sh\n", 0o755))
PACKED = {"gz": gzip.compress, "bz2": bz2.compress, "xz": lzma.compress, "zst": zstd}


def get(name, data, **more):
    server.files["/" + name] = data
    return f.get(server.url + "/" + name, **more)


def test_archives_of_all_formats():
    names = {"tar.gz": "gz", "tgz": "gz", "tar.bz2": "bz2", "tbz2": "bz2", "tar.xz": "xz", "txz": "xz", "tar.zst": "zst", "tzst": "zst"}
    case.equal(get("x.tar", PLAIN), TREE, "tar")
    for name, kind in names.items():
        for mode in ("any", "dir"):
            case.equal(get("x." + name, PACKED[kind](PLAIN), mode=mode), TREE, name)
    case.equal(get("x.zip", zipped(("top.txt", b"top\n", 0o644), ("d/", b"", 0o40755), ("d/in.txt", b"inside\n", 0o644), ("d/run", b"#!/bin/sh\n", 0o755))),
               TREE, "zip")


def test_files_that_are_compressed_need_mode_file():
    for kind, pack in PACKED.items():
        case.equal(get("x." + kind, pack(b"text\n"), mode="file"), {"": b"text\n"}, kind)
        case.contains(get("x." + kind, pack(b"text\n")), 'use mode "file", or the option archive = false')


def test_the_option_archive():
    data = gzip.compress(PLAIN)
    case.equal(get("x.tgz", data, options={"archive": "false"}), {"x.tgz": data})
    case.equal(get("x", data, options={"archive": "tar.gz"}), TREE)
    case.equal(get("x.tgz", PLAIN, options={"archive": "tar"}), TREE)
    case.equal(get("x", data, options={"archive": "rar"}), {"x": data})
    case.equal(get("x", data), {"x": data})


def test_a_subdirectory():
    server.files["/x.tgz"] = gzip.compress(PLAIN)
    url = server.url + "/x.tgz//"
    case.equal(f.get(url + "d"), {"in.txt": b"inside\n", "run": b"#!/bin/sh\n"})
    case.equal(sorted(f.get(url + "[cd]?x=1")), ["in.txt", "run"])
    case.equal(f.get(url + "none"), 'the artifact has no subdirectory "none"')
    case.equal(f.get(url + "top.txt"), 'the subdirectory "top.txt" is not a directory')
    case.contains(f.get(url + "d/../../x"), 'the subdirectory of the source contains ".."')
    server.files["/two.tar"] = tar(file("a/x"), file("b/x"))
    case.equal(f.get(server.url + "/two.tar//*"), 'the subdirectory "*" fits several directories')


def test_a_subdirectory_that_is_a_link_is_refused():
    """CVE-2025-8959."""
    server.files["/x.tar"] = tar(directory("real"), file("real/a"), link("sub", "real"), link("out", "/etc"), link("up", ".."))
    for name in ("sub", "out", "up", "out/ssh", "*p"):
        case.contains(f.get(server.url + "/x.tar//" + name), "subdirectory", name)
        case.contains(f.get(server.url + "/x.tar//" + name), "is not a directory" if name != "out/ssh" else "", name)


def test_modes_times_and_names_are_kept_but_no_set_user_id():
    """CVE-2019-14803."""
    server.files["/x.tar"] = tar(file("run", mode=0o4755), file("group", mode=0o2711), file("secret", mode=0o400), directory("d", 0o1777),
                                 file("d/täst ✓"), file("z", mode=0o6777))
    staging = f.send(server.url + "/x.tar")
    case.equal(isinstance(f.wait(), dict), True)
    top = f.path(staging) + "/out/"
    modes = {name: stat.S_IMODE(os.stat(top + name).st_mode) for name in ("run", "group", "secret", "d", "d/täst ✓", "z")}
    case.equal(modes, {"run": 0o755, "group": 0o711, "secret": 0o400, "d": 0o777, "d/täst ✓": 0o644, "z": 0o777})
    case.equal(os.stat(top + "run").st_mtime, 1000000000)


def test_links_that_stay_inside_are_made():
    tree = get("x.tar", tar(file("lib/a", b"a"), link("a", "lib/a"), link("lib/up", "../lib/a"), hard("h", "lib/a"), link("dangling", "none")))
    case.equal(tree, {"a": ("link", "lib/a"), "dangling": ("link", "none"), "h": b"a", "lib": None, "lib/a": b"a", "lib/up": ("link", "../lib/a")})


def test_no_entry_is_made_elsewhere():
    """CVE-2025-8959, CVE-2024-6717, CVE-2022-30324 and their kin."""
    marker = f.places.base + "/marker"
    os.mkdir(marker, 0o777)
    os.chmod(marker, 0o777)
    for name, entries, said in (
            ("dots", [file("../x")], 'a name with ".."'),
            ("inner dots", [file("a/../../x")], 'a name with ".."'),
            ("absolute", [file(marker + "/x")], "an absolute name"),
            ("through a link", [link("l", marker), file("l/x")], "is no directory"),
            ("through two links", [link("l", "m"), link("m", marker), file("l/x")], "is no directory"),
            ("through a link of a directory", [directory("d"), link("d/l", "../../../../.."), file("d/l/x")], "is no directory"),
            ("a directory through a link", [link("l", marker), directory("l/d")], "is no directory"),
            ("a hard link out", [hard("h", "/etc/passwd")], "an absolute name"),
            ("a hard link up", [hard("h", "../../x")], 'a name with ".."'),
            ("a hard link through a link", [link("l", "/etc"), hard("h", "l/passwd")], "is no directory"),
            ("a hard link to a link", [link("l", "/etc/passwd"), hard("h", "l")], "which is no file"),
            ("a hard link to nothing", [hard("h", "none")], "which is no file"),
            ("a fifo", [("p", tarfile.FIFOTYPE, "", 0o644)], "neither a file nor a directory nor a link"),
            ("a device", [("c", tarfile.CHRTYPE, "", 0o666)], "neither a file nor a directory nor a link"),
            ("a disk", [("b", tarfile.BLKTYPE, "", 0o666)], "neither a file nor a directory nor a link")):
        case.contains(get("x.tar", tar(*entries)), said, name)
    case.equal(os.listdir(marker), [], "files elsewhere")
    # An entry that comes twice replaces a link instead of following it.
    case.equal(get("x.tar", tar(link("l", marker + "/x"), file("l", b"new"))), {"l": b"new"})
    case.equal(os.listdir(marker), [], "files elsewhere")
    for name in ("../x", "/etc/x", "a\\..\\x"):
        answer = get("x.zip", zipped((name, b"x", 0o644)))
        case.equal("\\" in name or "the archive has" in answer, True, answer)
    case.contains(get("x.zip", zipped(("l", marker.encode(), 0o120777), ("l/x", b"x", 0o644))), "is no directory")


def test_decompression_bombs_end_with_a_sentence():
    zeros = b"\0" * (8 << 20)
    said = "unpacked, the archive has more than the 1048576 bytes that are allowed"
    for kind, pack in PACKED.items():
        case.equal(get("x." + kind, pack(zeros), mode="file", max_unpacked=1 << 20), said, kind)
        case.equal(get("x.tar." + kind, pack(tar(file("a", zeros))), max_unpacked=1 << 20), said, kind)
    case.equal(get("x.zip", zipped(("a", zeros, 0o644)), max_unpacked=1 << 20), said)
    # Each is small enough, but not all of them.
    case.equal(get("x.tar", tar(*[file(str(i), zeros[:1 << 18]) for i in range(5)]), max_unpacked=1 << 20), said)
    case.equal(get("x.tar", tar(file("a", zeros[:1 << 19]), *[hard(str(i), "a") for i in range(5)]), max_unpacked=1 << 20), said)
    case.equal(len(get("x.tar", tar(file("a", zeros[:1 << 20])), max_unpacked=1 << 20)["a"]), 1 << 20)


def test_an_archive_of_too_many_entries():
    links = tar(link("a", "x"))[:512] * 100000  # the header of each is 512 bytes
    case.equal(get("x.tar", links), "the archive has more than the 4096 entries that are allowed")
    case.equal(get("x.tar", tar(*[directory("d/" * 40 + str(i)) for i in range(10)]), max_files=9), "the archive has more than the 9 entries that are allowed")
    case.equal(len(get("x.tar", tar(*[file(str(i)) for i in range(10)]), max_files=10)), 10)


def test_directories_that_are_only_parts_of_names_count():
    deep = "/".join(["d"] * 100)
    for i in range(2):
        entries = [file("%d/%s/x" % (n, deep)) for n in range(10)]
        case.equal(get("x.tar", tar(*entries), max_files=1010 + i), "the archive has more than the %d entries that are allowed" % (1010 + i))
    case.equal(len(get("x.tar", tar(*entries), max_files=1020)), 1020)
    case.contains(get("x.tar", tar(file("/".join(["d"] * 129)))), "more than 128 levels of directories")
    case.contains(get("x.tar", tar(hard("h", "/".join(["d"] * 100000)))), "more than 128 levels of directories")


def test_a_pattern_takes_no_long_time():
    server.files["/x.tar"] = tar(*[directory("a" * 240 + "%d" % i) for i in range(20)])
    case.contains(f.get(server.url + "/x.tar//" + "*a" * 30 + "b"), "more than 3 stars in one name")
    case.contains(f.get(server.url + "/x.tar//*a*a*b"), "no subdirectory")


def test_archives_that_are_damaged():
    whole = gzip.compress(PLAIN)
    for name, data in (("x.tgz", whole[:-20]), ("x.tgz", whole[:15]), ("x.tgz", b""), ("x.tgz", PLAIN), ("x.tgz", os.urandom(5000)),
                       ("x.tar", os.urandom(5000)), ("x.tar", PLAIN[:700]), ("x.zip", os.urandom(5000)), ("x.zip", b"PK\3\4" + os.urandom(500)),
                       ("x.tar.xz", lzma.compress(PLAIN)[:-30]), ("x.tar.zst", zstd(PLAIN)[:-10]), ("x.tar.bz2", bz2.compress(PLAIN)[:-10])):
        case.contains(get(name, data), "the archive is", name)
    case.contains(get("x.gz", b"no gzip", mode="file"), "the archive is damaged")
    case.equal(get("x.tar", tar()), "the archive is empty")
    for flip in range(0, len(whole), 7):
        get("x.tgz", whole[:flip] + bytes([whole[flip] ^ 0x55]) + whole[flip + 1:])
    case.equal(get("x.tgz", whole), TREE, "an archive after the damaged ones")


def test_mode_file_of_an_archive():
    case.equal(get("x.tar", tar(file("a", b"only")), mode="file"), {"": b"only"})
    case.contains(get("x.tar", PLAIN, mode="file"), 'mode "file": the archive contains')
    case.contains(get("x.tar", tar(file("a"), file("b")), mode="file"), "more than one file")
    case.contains(get("x.tar", tar(link("a", "/etc/passwd")), mode="file"), "something other than a file")


with web.Server({}) as server, fetch.Fetcher() as f:
    case.run(globals())
