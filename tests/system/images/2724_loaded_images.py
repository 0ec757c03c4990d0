# SPDX-License-Identifier: Apache-2.0
# takes: 60
"""Images from archives, files in directories of tasks: `load` of docker, and the transports docker-archive and oci-archive of podman."""
import gzip
import hashlib
import lzma
import os
import shutil
import tempfile

from lib import agent, api, case, helper, images, ipc, web
from lib.websocket import Exec, Refused

TOOLS = images.tar(images.busybox("sh", "cat", "echo", "sleep", "cp", "mv"))
NO_MORE = {"RestartPolicy": {"Attempts": 0, "Mode": "fail"}, "ReschedulePolicy": {"Attempts": 0, "Unlimited": False}}


def image(mark, more=(), **config):
    return images.Image([TOOLS, *more, images.tar([images.file("mark", mark.encode())])], {"Env": ["PATH=/bin", "MARK=" + mark], **config})


ONE, TWO, MANY, STAYS = [image(x) for x in ("one", "two", "many", "stays")]
FOREIGN = images.Image([images.tar([images.file("foreign")])], architecture="s390x")


def container(name, file, script, image="app:1", driver="docker", task=None, group=None, **config):
    """A job whose artifact is an archive of the server."""
    made = api.job(name, driver=driver, group=group)
    config = {"image": image, "command": "/bin/sh", "args": ["-c", script], "network_mode": "host", **({"load": file} if driver == "docker" else {}), **config}
    artifacts = [{"GetterSource": "http://127.0.0.1:%d/%s" % (server.port, file), "GetterOptions": {"archive": "false"}, "RelativeDest": "local/"}] if file else []
    made["Job"]["TaskGroups"][0]["Tasks"][0].update(Config=config, Artifacts=artifacts, KillTimeout=10**8, **(task or {}))
    return made


def start(made):
    node.register(made)
    return node.wait_running(made["Job"]["ID"], seconds=60)[0]


def said(made, end=b"end\n"):
    alloc = start(made)
    node.wait_said(alloc, end)
    text = node.logs(alloc).decode()
    node.purge(made["Job"]["ID"])
    return text


SAY = "cat /mark; echo; echo $MARK end; exec sleep 1000"


def events(alloc):
    return "\n".join("%s: %s" % (e["Type"], e["DisplayMessage"]) for e in node.ask("/v1/allocation/" + alloc["ID"])["TaskStates"]["t"]["Events"])


def failed(made):
    """Returns the events of a job whose task fails."""
    made["Job"]["Type"] = "batch"
    made["Job"]["TaskGroups"][0].update(NO_MORE)
    node.register(made)
    alloc = node.wait_allocs(made["Job"]["ID"], [(0, "run", "failed")], seconds=60)[0]
    text = events(alloc)
    node.purge(made["Job"]["ID"])
    return text


def session(alloc, script):
    """Returns what the script says in a session; None: there can be none yet."""
    try:
        return Exec(node, alloc["ID"], ["/bin/sh", "-c", script]).end()[0].decode().strip()
    except (Refused, ConnectionError):
        return None


def digest_of(file):
    return hashlib.sha256(server.files["/" + file]).hexdigest()


def name_of(name, file):
    """Returns the name of a loaded image on the node."""
    return "%s%s#sha256:%s" % ("" if "/" in name else "docker.io/library/", name, digest_of(file))


def in_use(names):
    """Waits until the node has these images and tasks use them; images that no task uses are removed."""
    case.until(lambda: sorted((x["Name"], x["InUse"]) for x in node.ask("/v1/agent/images")) == sorted((x, True) for x in names), 30, "only these images: %s" % names)


def store_is_empty():
    def left():
        return [x for part in ("layers", "blobs") for x in os.listdir("%s/images/%s" % (node.data, part))]
    case.until(lambda: left() == [], 30, "the store to be empty")


def serve(name, data):
    server.files["/" + name] = data
    return name


def test_archives_of_docker_and_of_oci_compressed_and_not():
    docker = images.docker_archive("app:1", ONE)
    oci = images.tar(images.layout({"app:1": ONE}))
    for name, data in (("d.tar", docker), ("o.tar", oci), ("d.tar.gz", gzip.compress(docker)), ("d.tar.zst", images.zstd(docker)), ("d.tar.xz", lzma.compress(docker)),
                       ("o.tar.gz", gzip.compress(oci)), ("h.tar", images.tar(images.docker_entries({"app:1": ONE, "app:2": TWO}))),
                       ("z.tar", images.tar(images.layout({"docker.io/library/app:1": images.Image(ONE.tars, {"Env": ["PATH=/bin", "MARK=one"]}, pack="zstd")}))),
                       ("i.tar", images.tar(images.layout({"library/app:1": images.Index([FOREIGN, ONE]), "app:2": TWO})))):
        case.equal(said(container("load", serve(name, data), SAY), b"one end\n"), "one\none end\n", name)
    store_is_empty()


def test_one_load_for_many_tasks():
    made = container("many", serve("many.tar", images.docker_archive("app:1", MANY)), SAY)
    group = made["Job"]["TaskGroups"][0]
    group["Count"] = 3
    group["Tasks"].append({**group["Tasks"][0], "Name": "u"})
    node.register(made)
    for alloc in node.wait_running("many", count=3, seconds=60):
        for task in ("t", "u"):
            node.wait_said(alloc, b"many end\n", name=task)
    case.equal(len([x for x in node.log().splitlines() if " is here: " in x and digest_of("many.tar") in x]), 1, "loads")
    in_use([name_of("app:1", "many.tar")])
    node.purge("many")
    store_is_empty()


def test_the_same_name_in_two_archives_and_in_a_registry():
    name = images.name(server, "a:1")
    server.files.update(images.registry({"a": {"1": image("registry")}}))
    serve("1.tar", images.docker_archive(name, ONE))
    serve("2.tar", images.tar(images.layout({name: TWO})))
    scripts = {"first": "1.tar", "second": "2.tar", "third": None}
    allocs = {x: start(container(x, file, SAY, image=name, **({} if file else {"load": ""}))) for x, file in scripts.items()}
    for job, mark in (("first", b"one"), ("second", b"two"), ("third", b"registry")):
        node.wait_said(allocs[job], mark + b"\n" + mark + b" end\n")
    in_use([name_of(name, "1.tar"), name_of(name, "2.tar"), name])
    for job in allocs:
        node.purge(job)
    store_is_empty()


def test_a_restart_of_the_task_and_of_the_agent():
    made = container("stays", serve("stays.tar", images.docker_archive("app:1", STAYS)), "echo $MARK end; exec sleep 1000")
    alloc = start(made)
    node.kill_launcher()
    node.start()
    node.wait_ready()
    # Its image, which is known by the layers of the running container, brings the environment of a session.
    case.until(lambda: session(alloc, "echo $MARK; cat /mark") == "stays\nstays", 60, "a session after the restart")
    in_use([name_of("app:1", "stays.tar")])
    lines = node.drover("image", "list").out.splitlines()[1:]
    case.equal([line.split()[:2] for line in lines], [[name_of("app:1", "stays.tar"), "ready"]])
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    case.until(lambda: node.logs(alloc) == b"stays end\n" * 2, 60, "the second run")
    node.purge("stays")
    store_is_empty()
    # An operator removes it by the name that the list has; it is loaded again for the next task.
    alloc = start(made)
    node.drover("image", "remove", "-force", name_of("app:1", "stays.tar"))
    case.equal(node.ask("/v1/agent/images"), [])
    node.do("PUT", "/v1/client/allocation/%s/restart" % alloc["ID"], {})
    case.until(lambda: node.logs(alloc) == b"stays end\n" * 2, 60, "the second run")
    node.purge("stays")
    store_is_empty()


def test_the_transports_of_podman():
    serve("p.tar", images.docker_archive("localhost/app:1", ONE))
    serve("p.oci", images.tar(images.layout({"": ONE})))
    for file, name in (("p.tar", "docker-archive:p.tar"), ("p.tar", "docker-archive:/local/p.tar:localhost/app:1"), ("p.oci", "oci-archive:../local/p.oci")):
        case.equal(said(container("podman", file, SAY, image=name, driver="podman"), b"one end\n"), "one\none end\n", name)
    store_is_empty()


def test_an_archive_that_another_task_has_made():
    """A file of the group's shared directory."""
    made = container("made", "m.tar", SAY, load="../../alloc/data/m.tar")
    made["Job"]["TaskGroups"][0]["Tasks"].append(api.task("before", "/bin/sh", ["-c", "mv $NOMAD_TASK_DIR/m.tar $NOMAD_ALLOC_DIR/data/"], Lifecycle={"Hook": "prestart"},
                                                          Artifacts=made["Job"]["TaskGroups"][0]["Tasks"][0].pop("Artifacts")))
    serve("m.tar", images.docker_archive("app:1", ONE))
    case.equal(said(made, b"one end\n"), "one\none end\n")


def fails(part, data, name="app:1", driver="docker", **more):
    """The task fails, and is not tried again, because the same job would fail again."""
    text = failed(container("bad", serve("bad.tar", data), SAY, image=name, driver=driver, **more))
    last = text.splitlines()[-2 if "Not Restarting" in text else -1]
    print("        " + last)
    case.contains(text, part, "the events")
    case.contains(text, "Failed to load image", "the events")
    store_is_empty()


def test_what_is_no_archive_and_what_it_does_not_have():
    good = images.docker_archive("app:1", ONE)
    fails("the archive has no image docker.io/library/other:1", good, "other:1")
    fails("the archive has no image docker.io/library/other:1", images.tar(images.layout({"app:1": ONE})), "other:1")
    fails("an image in an archive is named by its tag", good, "app@" + ONE.digest)
    fails("neither manifest.json", images.tar([images.file("a", b"x")]))
    fails("neither manifest.json", b"")
    fails("the archive is damaged", b"no archive " * 1000)
    fails("the archive is damaged", gzip.compress(good)[:5000])
    fails("", good[:len(good) // 2])
    fails("", images.tar(images.layout({"app:1": ONE, "app:2": TWO})), "oci-archive:bad.tar", driver="podman")
    fails("", images.tar(images.layout({"app:1": images.Index([FOREIGN])})))
    fails("there is no such file; an artifact is unpacked unless it has options", good, load="absent.tar")
    fails("neither in the task's local/ nor in the shared directory", good, load="../../../x.tar")
    fails("neither in the task's local/ nor in the shared directory", good, load="../secrets/x.tar")
    fails("neither in the task's local/ nor in the shared directory", good, "docker-archive:/etc/passwd", driver="podman")
    fails("directory", good, load=".")


def test_hostile_archives():
    def changed(change):
        return images.tar(images.docker_entries({"app:1": ONE}, lambda listed: change(listed[0])))

    def without(entries, part):
        return images.tar([x for x in entries if part not in x[0]])
    layers = len(ONE.tars)
    fails("", changed(lambda m: m.update(Config="../../../../../../../../etc/passwd")))
    fails("", changed(lambda m: m.update(Config="/etc/passwd")))
    fails("", changed(lambda m: m.update(Layers=["../" * 9 + "etc/passwd"] * layers)))
    fails("", changed(lambda m: m.update(Layers=[])))
    fails("", changed(lambda m: m.update(Layers=list(reversed(m["Layers"])))))
    fails("", without(images.docker_entries({"app:1": ONE}), "layer.tar"))
    many = images.Image([images.tar([images.file("f%d" % i)]) for i in range(1000)])
    fails("it has 1000 layers, more than the 128 that are allowed", images.tar(images.docker_entries({"app:1": many})))
    fails("the archive has more than 20000 entries", images.tar([images.file("f%d" % i) for i in range(20001)]))
    # Links of an archive of Docker stay in it; those of a layout are passed over.
    entries = images.docker_entries({"app:1": ONE})
    layer = next(i for i, x in enumerate(entries) if x[0].endswith("/layer.tar"))
    fails("", images.tar([*entries[:layer], images.link(entries[layer][0], "/etc/passwd"), *entries[layer + 1:]]))
    layout = images.layout({"app:1": ONE})
    blob = "blobs/sha256/" + images.digest(ONE.blobs[0])[7:]
    fails("", without(layout, blob))
    fails("", images.tar([(path, b"other" if path == blob else body, more) for path, body, more in layout]))
    fails("", images.tar([images.link(path, "/etc/passwd") if path == blob else (path, body, more) for path, body, more in layout]))
    outside = "/var/tmp/outside-of-all-archives"
    ways = [images.link("way", "/var/tmp"), images.file("way/outside-of-all-archives", b"x"), images.file(outside, b"x"), images.file("../" * 9 + outside[1:], b"x"),
            images.link("blobs/sha256/" + "0" * 64, "/var/tmp"), images.hardlink("index.json", "/etc/passwd"), images.directory("closed", mode=0)]
    case.equal(said(container("ways", serve("ways.tar", images.tar([*ways, *layout, images.file("blobs/sha256/x", b"x")])), SAY), b"one end\n"), "one\none end\n")
    case.equal(os.path.lexists(outside), False, "something outside of the store")
    store_is_empty()


def test_an_archive_that_changes_while_it_is_read():
    """Only a copy is read, and only if it is the archive whose digest is in the name of the image."""
    good, other = images.docker_archive("app:1", ONE), images.docker_archive("app:1", TWO)
    with helper.Places() as places, tempfile.TemporaryFile() as f:
        f.write(other)
        f.flush()
        with helper.Helper("image-fetcher", places) as h:
            request = {"pull": b"p" * 16, "max_bytes": 1 << 30, "timeout_ms": 60000, "digest": hashlib.sha256(good).hexdigest(), "architecture": images.HERE,
                       "reference": "docker.io/library/app:1"}
            for cut in (len(other), len(other) // 2):
                f.truncate(cut)
                e = case.raises(ipc.RequestError, h.ipc.answer, h.ipc.send("IMG_ARCHIVE_LOAD_REQ", request, [f.fileno()]))
                case.contains(str(e), "the archive was changed while it was read")
            f.truncate(0)
            os.pwrite(f.fileno(), good, 0)
            e = case.raises(ipc.RequestError, h.ipc.answer, h.ipc.send("IMG_ARCHIVE_LOAD_REQ", {**request, "max_bytes": 100000}, [f.fileno()]))
            case.contains(str(e), "the archive has more than the 100000 bytes that are allowed")
        case.equal(os.listdir(places.data + "/images/blobs"), [], "what is left")


if not shutil.which("skopeo") or not os.path.exists("/bin/busybox"):
    case.skip("no skopeo, or no busybox-static")
with web.Server({}) as server, api.Node(agent.config_args('plugin "docker" { config { gc { image_delay = "0s" } } }')) as node:
    case.run(globals())
