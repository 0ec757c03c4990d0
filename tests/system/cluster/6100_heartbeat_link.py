# SPDX-License-Identifier: Apache-2.0
# takes: 85
"""heartbeat alone, with correct servers and servers that misbehave: calls, beats, the lease, failover."""
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
        case.equal(h.call("Status.Ping", GLOBAL), {}, "answer of the next call")
        case.equal(h.servers[-1], {"server": servers.address, "known": [servers.address], "why": "", "gives_up": False}, "reported server")
        case.equal(len(servers.connections()), 1, "connections")


def test_many_calls_at_once_use_one_connection():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        serials = [h.start("Status.Ping", {**GLOBAL, "Prefix": "x" * (i * 100)}) for i in range(300)]
        for serial in serials:
            case.equal(h.finish(serial), b"\x80", "ping")
        case.equal(sum(servers.accepted()), 1, "number of connections made so far")


def test_large_bodies_go_both_ways():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        for size in (50000, 56000, 60000, 300 * 1024, 3 << 20):
            servers.fault("pad", "Status.Ping", bytes=size, times=1)
            case.equal(len(h.call("Status.Ping", GLOBAL)["Zpadding"]), size, "answer")
            case.equal(h.call("Status.Ping", {**GLOBAL, "Prefix": "x" * size}), {}, "request")
        # Large bodies both ways at the same time, and small calls between.
        servers.fault("pad", "Status.Ping", bytes=2 << 20, times=3)
        big = [h.start("Status.Ping", {**GLOBAL, "Prefix": "y" * (2 << 20)}) for _ in range(3)]
        for _ in range(20):
            h.call("Status.Leader", GLOBAL)
        for serial in big:
            h.finish(serial)


def test_an_answer_that_is_too_large_is_an_error():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        servers.fault("pad", "Status.Ping", bytes=65 << 20, times=1)
        e = refused(h, "Status.Ping", GLOBAL, deadline_s=case.LEAST_S)
        case.equal(e.code, -errno.EMSGSIZE, e.text)
        case.equal(h.call("Status.Ping", GLOBAL), {}, "answer of the next call")


def test_a_deadline_is_kept_and_a_blocking_query_delays_no_other_call():
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
        # A cancelled call has no result although the server answers; its answer arrives before that of the next call.
        servers.clear(silent)
        servers.fault("delay", "Status.Leader", seconds=4, times=1)
        known = servers.last_call()
        cancelled = h.start("Status.Leader", GLOBAL)
        h.call("Status.Ping", GLOBAL)  # so that the first call has been sent
        early = cancelled in h.answers
        h.cancel(cancelled)
        servers.wait_call("Status.Leader", known)
        case.equal(h.call("Status.Leader", GLOBAL), servers.address, "answer of the next call")
        case.equal(cancelled in h.answers, early, "whether a cancelled call has a result")
        case.equal(sum(servers.accepted()), 1, "number of connections made so far")


def test_invalid_answers_are_errors():
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
            case.equal(h.call("Status.Ping", GLOBAL, repeat=True), {}, kind + ", with a repeated call")
        servers.fault("drip", "Status.Ping", bytes=1, seconds=0.001, times=1)
        case.equal(h.call("Status.Ping", GLOBAL), {}, "byte by byte")


def test_invalid_yamux_frames_close_the_connection():
    frames = {
        "version": "010000000000000100000000", "type": "000900000000000000000000",
        "a stream of ours": "000100010000000500000000", "no stream": "000100010000000000000000",
        "window": "0001000000000001ffffffff",
    }
    with nomad_server.Servers(forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        for what, raw in frames.items():
            h.call("Status.Ping", GLOBAL)
            before = sum(servers.accepted())
            # The call waits until the frame has arrived. If the call reaches the server only after that, it is merely late.
            slow = servers.fault("delay", "Status.Leader", seconds=20, times=1)
            waiting = h.start("Status.Leader", GLOBAL, repeat=True)
            h.wait(lambda: servers.connections(), 5, "the connection")
            servers.session_fault("frame", hex=bytes.fromhex(raw))
            case.equal(gopack.natural(gopack.unpack(h.finish(waiting))), servers.address, what)
            servers.clear(slow)
            if what != "window":  # of a stream that may have been closed
                case.equal(sum(servers.accepted()), before + 1, "connections after " + what)


# --- beats ---

def test_a_beat_renews_the_lease_to_the_time_of_the_request_to_the_supervisor():
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
        case.equal({d["code"] for d in h.done}, {0}, "results of the beats")
        case.equal(servers.wait_node()["ID"], h.id, "a ready node")
        last = h.lease()
        case.equal(began < last < boottime(), True, "the lease")
        # A supervisor that does not answer: no beat and no renewal. An earlier request may still renew the lease.
        since = boottime()
        time.sleep(3)
        case.equal(last <= h.lease() <= since, True, "the lease without answers of the supervisor")


def test_a_node_that_the_servers_no_longer_know():
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


def test_addresses_of_other_servers_are_learned():
    with nomad_server.Servers(3) as servers, Link(PLACES, servers.addresses[:1]) as h:
        h.register()
        h.wait(lambda: sorted(h.servers[-1]["known"]) == sorted(servers.addresses), 5, "three servers")


# --- failover ---

def failover(h, servers, break_it, repair):
    """Breaks the current server while a call waits for it: another server answers before the deadline."""
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
    case.equal(h.server != servers.addresses[number], True, "whether it uses another server")
    repair(number)
    print("        answered by another server after %.2f s" % took)


def test_failover_from_a_server_that_ends():
    with nomad_server.Servers(3) as servers, Link(PLACES, servers.addresses) as h:
        for _ in range(3):
            failover(h, servers, servers.stop_server, servers.start_server)


def test_failover_from_a_server_that_does_not_answer():
    with nomad_server.Servers(3, forgive=True) as servers, Link(PLACES, servers.addresses) as h:
        for _ in range(2):
            failover(h, servers, servers.half_open, lambda n: servers.half_open(n, False))


def test_failover_from_a_server_without_a_leader():
    with nomad_server.Servers(3) as servers, Link(PLACES, servers.addresses) as h:
        h.call("Status.Ping", GLOBAL)
        number = servers.addresses.index(h.server)
        servers.fault("error", "Status.Leader", server=number, text="No cluster leader")
        case.equal(bool(h.call("Status.Leader", GLOBAL)), True, "whether another server answers")
        case.equal(h.server != servers.addresses[number], True, "whether it uses another server")
        servers.fault("error", "Status.Leader", text="No cluster leader")
        e = refused(h, "Status.Leader", GLOBAL, deadline_s=1)
        case.contains(e.text, "No cluster leader") if e.code is None else case.equal(e.code, -errno.ETIMEDOUT, e.text)


def test_a_leader_that_ends_during_a_forwarded_call():
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        servers.fault("error", "Status.Leader", text="rpc error: EOF", times=2)
        case.equal(refused(h, "Status.Leader", GLOBAL).text, "rpc error: EOF", "a call that may not be repeated")
        case.equal(h.call("Status.Leader", GLOBAL, repeat=True), servers.address, "a call that may be repeated")


def test_a_server_that_sends_go_away():
    """Waiting calls get their answers; new calls use another connection."""
    with nomad_server.Servers() as servers, Link(PLACES, servers.addresses) as h:
        h.call("Status.Ping", GLOBAL)
        known = servers.last_call()
        slow = servers.fault("delay", "Status.Leader", seconds=600)
        waiting = h.start("Status.Leader", GLOBAL, deadline_s=case.LEAST_S)
        case.equal(h.call("Status.Ping", GLOBAL), {}, "answer of a call after it")
        servers.session_fault("go_away")
        h.wait(lambda: sum(servers.accepted()) == 2, 60, "another connection")
        case.equal(h.call("Status.Ping", GLOBAL), {}, "answer of a new call")
        servers.clear(slow)
        case.equal(gopack.natural(gopack.unpack(h.finish(waiting))), servers.address, "answer of the call that waited")
        h.wait(lambda: len(servers.connections()) == 1, 60, "the old connection to be closed")
        case.equal(len(servers.calls("Status.Leader", known)), 1, "how often the waiting call was sent")


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
        case.equal(h.finish(waiting), b"\x80", "answer of a call that waited for a server")


def test_a_stopped_supervisor_does_not_close_the_connection():
    with nomad_server.Servers(args=["--keepalive", "1", "--ping-timeout", "8"]) as servers:
        with Link(PLACES, servers.addresses) as h:
            h.register()
            for _ in range(30):
                h.start("Status.Leader", GLOBAL)
            time.sleep(11)  # the test is the supervisor, and does not read
            case.equal(sum(servers.accepted()), 1, "number of connections made so far")
            case.equal(h.call("Status.Ping", GLOBAL), {}, "answer of the next call")


try:
    case.run(globals())
finally:
    PLACES.remove()
