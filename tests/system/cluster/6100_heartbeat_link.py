# SPDX-License-Identifier: Apache-2.0
# takes: 85
"""heartbeat alone, with servers that behave and servers that do not: calls, beats and the lease, failover."""
import errno
import time

from lib import case, helper, nomad_server
from lib.hb_link import CallError, Link
import gopack

PLACES = helper.Places()
GLOBAL = {"Region": "global", "AuthToken": ""}


def boottime():
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def refused(h, *args, **kwargs):
    return case.raises(CallError, h.call, *args, **kwargs)


# --- calls ---

def test_calls_and_their_errors():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        case.equal(h.call("Status.Ping", GLOBAL), {}, "ping")
        case.equal(h.call("Status.Leader", GLOBAL), servers.address, "leader")
        e = refused(h, "Status.Nope", GLOBAL)
        case.equal((e.code, e.text), (None, "rpc: can't find method Status.Nope"), "unknown method")
        e = refused(h, "Nope.Nope", GLOBAL)
        case.contains(e.text, "rpc: can't find service Nope.Nope")
        case.equal(h.call("Status.Ping", GLOBAL), {}, "afterwards")
        case.equal(h.servers[-1], {"server": servers.address, "known": [servers.address], "why": ""}, "news of the server")
        case.equal(len(servers.connections()), 1, "connections")


def test_many_calls_at_once_use_one_connection():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        serials = [h.start("Status.Ping", {**GLOBAL, "Prefix": "x" * (i * 100)}) for i in range(300)]
        for serial in serials:
            case.equal(h.finish(serial), b"\x80", "ping")
        case.equal(sum(servers.accepted()), 1, "connections that were ever made")


def test_large_bodies_go_both_ways():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        for size in (50000, 56000, 60000, 300 * 1024, 3 << 20):
            servers.fault("pad", "Status.Ping", bytes=size, times=1)
            case.equal(len(h.call("Status.Ping", GLOBAL)["Zpadding"]), size, "answer")
            case.equal(h.call("Status.Ping", {**GLOBAL, "Prefix": "x" * size}), {}, "request")
        # Both at the same time, and small ones between.
        servers.fault("pad", "Status.Ping", bytes=2 << 20, times=3)
        big = [h.start("Status.Ping", {**GLOBAL, "Prefix": "y" * (2 << 20)}) for _ in range(3)]
        for _ in range(20):
            h.call("Status.Leader", GLOBAL)
        for serial in big:
            h.finish(serial)


def test_an_answer_larger_than_is_taken():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        servers.fault("pad", "Status.Ping", bytes=65 << 20, times=1)
        e = refused(h, "Status.Ping", GLOBAL, deadline_s=case.LEAST_S)
        case.equal(e.code, -errno.EMSGSIZE, e.text)
        case.equal(h.call("Status.Ping", GLOBAL), {}, "afterwards")


def test_a_deadline_is_kept_and_a_blocking_query_delays_nothing():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.call("Status.Ping", GLOBAL)
        silent = servers.fault("silent", "Status.Leader")
        slow = h.start("Status.Leader", GLOBAL, deadline_s=1.0)
        began = time.monotonic()
        for _ in range(50):
            h.call("Status.Ping", GLOBAL)
        e = case.raises(CallError, h.finish, slow)
        case.equal(e.code, -errno.ETIMEDOUT, e.text)
        took = time.monotonic() - began
        if took < 0.95:
            raise AssertionError("a deadline of 1 s ended after %.3f s" % took)
        # A cancelled call says nothing more, though it is answered; that answer is on the way before the next.
        servers.clear(silent)
        servers.fault("delay", "Status.Leader", seconds=4, times=1)
        known = servers.last_call()
        cancelled = h.start("Status.Leader", GLOBAL)
        h.call("Status.Ping", GLOBAL)  # it has been sent before this
        early = cancelled in h.answers
        h.cancel(cancelled)
        servers.wait_call("Status.Leader", known)
        case.equal(h.call("Status.Leader", GLOBAL), servers.address, "afterwards")
        case.equal(cancelled in h.answers, early, "an answer to a cancelled call")
        case.equal(sum(servers.accepted()), 1, "connections that were ever made")


def test_answers_that_are_none():
    with nomad_server.Servers(forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        for shape in ("random", "reserved", "array", "not_a_map", "deep", "huge_map", "huge_array", "huge_string", "ext"):
            servers.fault("garbage", "Status.Ping", shape=shape, times=1)
            try:
                h.call("Status.Ping", GLOBAL, deadline_s=2)
            except CallError as e:
                print("        %-12s %s" % (shape, e))
            case.equal(h.call("Status.Leader", GLOBAL), servers.address, "after " + shape)
        for kind, params in (("cut", {"after": 5}), ("reset", {"after": 5}), ("vanish", {"after": 5})):
            servers.fault(kind, "Status.Ping", times=1, **params)
            case.equal(refused(h, "Status.Ping", GLOBAL).code, -errno.ECONNRESET, kind)
            servers.fault(kind, "Status.Ping", times=1, **params)
            case.equal(h.call("Status.Ping", GLOBAL, repeat=True), {}, kind + ", and again")
        servers.fault("drip", "Status.Ping", bytes=1, seconds=0.001, times=1)
        case.equal(h.call("Status.Ping", GLOBAL), {}, "byte by byte")


def test_frames_that_break_yamux_cost_the_connection():
    frames = {
        "version": "010000000000000100000000", "type": "000900000000000000000000",
        "a stream of ours": "000100010000000500000000", "no stream": "000100010000000000000000",
        "window": "0001000000000001ffffffff",
    }
    with nomad_server.Servers(forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        for what, raw in frames.items():
            h.call("Status.Ping", GLOBAL)
            before = sum(servers.accepted())
            # The call waits until the frame has come. Should it reach the server only after that, it is late and no more.
            slow = servers.fault("delay", "Status.Leader", seconds=20, times=1)
            waiting = h.start("Status.Leader", GLOBAL, repeat=True)
            h.wait(lambda: servers.connections(), 5, "the connection")
            servers.session_fault("frame", hex=bytes.fromhex(raw))
            case.equal(gopack.natural(gopack.unpack(h.finish(waiting))), servers.address, what)
            servers.clear(slow)
            if what != "window":  # of a stream that may be gone
                case.equal(sum(servers.accepted()), before + 1, "connections after " + what)


# --- beats ---

def test_a_beat_moves_the_lease_to_when_the_supervisor_was_asked():
    with nomad_server.Servers(args=["--ttl", "1", "--ttl-jitter", "0"]) as servers, Link(PLACES, servers.addresses) as h:
        before = h.lease()
        h.wait_server()
        h.wait(lambda: sum(servers.accepted()), 5, "a connection")
        time.sleep(1.5)
        case.equal(h.lease(), before, "the lease without a node")
        began = boottime()
        h.register()
        case.equal(began < h.lease() < boottime(), True, "the lease after the registration")
        h.wait(lambda: len(h.done) >= 3, 8, "three beats")
        case.equal({d["code"] for d in h.done}, {0}, "what became of them")
        case.equal(servers.wait_node()["ID"], h.id, "a ready node")
        last = h.lease()
        case.equal(began < last < boottime(), True, "the lease")
        # A supervisor that does not answer: no beat, and no lease. What it was asked before may still move it.
        since = boottime()
        time.sleep(3)
        case.equal(last <= h.lease() <= since, True, "the lease without answers of the supervisor")


def test_a_node_that_is_not_known_any_more():
    for version, text in (("1.6.10", "node not found"), ("2.0.5", "Permission denied")):
        with nomad_server.Servers(version=version, args=["--ttl", "1", "--ttl-jitter", "0"]) as servers:
            with Link(PLACES, servers.addresses) as h:
                h.register()
                h.wait(lambda: h.done, 5, "a beat")
                servers.purge_node(h.id)
                h.wait(lambda: h.done[-1]["code"], 5, "a refused beat")
                case.contains(h.done[-1]["error"], text)
                count, lease = len(h.done), h.lease()
                end = time.monotonic() + 2.5
                h.wait(lambda: time.monotonic() > end, 5, "time")
                case.equal((len(h.done), h.lease()), (count, lease), "beats of a node that is not known")
                h.token = ""
                h.register()
                h.wait(lambda: len(h.done) > count, 5, "a beat after the registration")
                case.equal(h.done[-1]["code"], 0, h.done[-1]["error"])


def test_servers_of_the_cluster_are_learned():
    with nomad_server.Servers(3) as servers, Link(PLACES, servers.addresses[:1]) as h:
        h.register()
        h.wait(lambda: sorted(h.servers[-1]["known"]) == sorted(servers.addresses), 5, "three servers")


# --- failover ---

def failover(h, servers, break_it, repair):
    """The current server breaks while a call waits for it, which another answers before its deadline."""
    h.call("Status.Ping", GLOBAL)
    number = servers.addresses.index(h.server)
    waiting = servers.fault("silent", "Status.Leader", server=number)
    blocked = h.start("Status.Leader", GLOBAL, deadline_s=60, repeat=True)
    h.wait(lambda: h.call("Status.Ping", GLOBAL) == {}, 5, "ping")
    servers.set_leader((number + 1) % len(servers.addresses))
    began = time.monotonic()
    break_it(number)
    h.finish(blocked)
    took = time.monotonic() - began
    servers.clear(waiting)
    case.equal(h.server != servers.addresses[number], True, "another server")
    repair(number)
    print("        answered by another server after %.2f s" % took)


def test_a_server_that_ends():
    with nomad_server.Servers(3) as servers, Link(PLACES, servers.addresses) as h:
        for _ in range(3):
            failover(h, servers, servers.stop_server, servers.start_server)


def test_a_server_that_is_cut_off():
    with nomad_server.Servers(3, forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        for _ in range(2):
            failover(h, servers, servers.half_open, lambda n: servers.half_open(n, False))


def test_a_server_without_a_leader():
    with nomad_server.Servers(3) as servers, Link(PLACES, servers.addresses) as h:
        h.call("Status.Ping", GLOBAL)
        number = servers.addresses.index(h.server)
        servers.fault("error", "Status.Leader", server=number, text="No cluster leader")
        case.equal(bool(h.call("Status.Leader", GLOBAL)), True, "an answer of another")
        case.equal(h.server != servers.addresses[number], True, "another server")
        servers.fault("error", "Status.Leader", text="No cluster leader")
        e = refused(h, "Status.Leader", GLOBAL, deadline_s=1)
        case.contains(e.text, "No cluster leader") if e.code is None else case.equal(e.code, -errno.ETIMEDOUT, e.text)


def test_a_leader_that_ends_behind_the_server():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        servers.fault("error", "Status.Leader", text="rpc error: EOF", times=2)
        case.equal(refused(h, "Status.Leader", GLOBAL).text, "rpc error: EOF", "a call that may not be repeated")
        case.equal(h.call("Status.Leader", GLOBAL, repeat=True), servers.address, "one that may")


def test_a_server_that_takes_no_more_requests():
    """What waits for an answer gets it; what is new goes by another connection."""
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.call("Status.Ping", GLOBAL)
        known = servers.last_call()
        slow = servers.fault("delay", "Status.Leader", seconds=600)
        waiting = h.start("Status.Leader", GLOBAL, deadline_s=case.LEAST_S)
        case.equal(h.call("Status.Ping", GLOBAL), {}, "a call behind it")
        servers.session_fault("go_away")
        h.wait(lambda: sum(servers.accepted()) == 2, 60, "another connection")
        case.equal(h.call("Status.Ping", GLOBAL), {}, "a new call")
        servers.clear(slow)
        case.equal(gopack.natural(gopack.unpack(h.finish(waiting))), servers.address, "the call that waited")
        h.wait(lambda: len(servers.connections()) == 1, 60, "the old connection to be closed")
        case.equal(len(servers.calls("Status.Leader", known)), 1, "calls that were made of one")


def test_no_server_at_all():
    with nomad_server.Servers(2) as servers, Link(PLACES, servers.addresses) as h:
        h.call("Status.Ping", GLOBAL)
        servers.stop_server(0)
        servers.stop_server(1)
        h.wait(lambda: h.server == "", 10, "news that there is none")
        case.contains(h.servers[-1]["why"], "Connection refused")
        e = refused(h, "Status.Ping", GLOBAL, deadline_s=1)
        case.equal(e.code, -errno.ENETUNREACH, e.text)
        for address in servers.addresses:
            case.contains(e.text, address)
        waiting = h.start("Status.Ping", GLOBAL, deadline_s=case.LEAST_S)
        servers.start_server(1)
        case.equal(h.finish(waiting), b"\x80", "a call that waited for a server")


def test_a_stopped_supervisor_does_not_cost_the_link():
    with nomad_server.Servers(args=["--keepalive", "1", "--ping-timeout", "8"]) as servers:
        with Link(PLACES, servers.addresses) as h:
            h.register()
            for _ in range(30):
                h.start("Status.Leader", GLOBAL)
            time.sleep(11)  # the test is the supervisor, and reads nothing
            case.equal(sum(servers.accepted()), 1, "connections that were ever made")
            case.equal(h.call("Status.Ping", GLOBAL), {}, "afterwards")


try:
    case.run(globals())
finally:
    PLACES.remove()
