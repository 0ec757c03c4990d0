# SPDX-License-Identifier: Apache-2.0
# takes: 25
"""tests/peers/nomad-server, the simulated servers: their link must be as strict as that of real ones, and their faults must work."""
import socket
import ssl
import struct
import threading
import time

from lib import case, nomad_client, nomad_server
import gopack
import netrpc
import yamux

ACK_1 = bytes.fromhex("000100020000000100000000")
PING_REQUEST = bytes.fromhex("82a353657101ad536572766963654d6574686f64ab5374617475732e50696e6780")
PING_ANSWER = bytes.fromhex("83a54572726f72a0a353657101ad536572766963654d6574686f64ab5374617475732e50696e6780")
FOR_GOOD = {"AllowStale": True, "Region": "global"}


def connect(address):
    host, port = address.split(":")
    s = socket.create_connection((host, int(port)), timeout=case.LEAST_S)
    return s


def exactly(s, n):
    data = b""
    while len(data) < n:
        part = s.recv(n - len(data))
        if not part:
            raise EOFError(data.hex())
        data += part
    return data


def ended(s):
    """Returns whether the other side has closed the connection, with FIN or RST."""
    try:
        return s.recv(1) == b""
    except ConnectionResetError:
        return True


def ping(c, channel=None):
    return c.call("Status.Ping", {}, channel=channel)


def broken(servers, text):
    """Waits until a violation with this text is recorded, and removes it."""
    case.until(lambda: any(text in v for v in servers.violations()), 5, "the violation %r" % text)
    servers.violations(True)


# --- the first bytes ---

def test_a_session_equals_the_recorded_one():
    with nomad_server.Servers() as servers, connect(servers.address) as s:
        s.sendall(b"\6" + bytes.fromhex("000100010000000100000000"))
        case.equal(exactly(s, 12), ACK_1, "acknowledgement")
        s.sendall(yamux.frame(yamux.DATA, 0, 1, 1, b"\1") + yamux.frame(yamux.DATA, 0, 1, len(PING_REQUEST), PING_REQUEST))
        case.equal(exactly(s, 12), yamux.frame(yamux.DATA, 0, 1, len(PING_ANSWER)), "head of the answer")
        case.equal(exactly(s, len(PING_ANSWER)), PING_ANSWER, "answer")
        s.sendall(bytes.fromhex("000200010000000000000007"))
        case.equal(exactly(s, 12).hex(), "000200020000000000000007", "answer to a ping")
        s.sendall(bytes.fromhex("000100040000000100000000"))
        case.equal(exactly(s, 12).hex(), "000100040000000100000000", "FIN for FIN")


def test_a_session_sent_in_single_bytes():
    with nomad_server.Servers() as servers, connect(servers.address) as s:
        s.sendall(b"\6" + yamux.frame(yamux.DATA, yamux.SYN, 1, 1, b"\1"))
        for byte in PING_REQUEST:
            s.sendall(yamux.frame(yamux.DATA, 0, 1, 1, bytes([byte])))
        case.equal(exactly(s, 12), ACK_1, "acknowledgement")
        case.equal(exactly(s, 12 + len(PING_ANSWER))[12:], PING_ANSWER, "answer")


def test_each_way_to_connect():
    with nomad_server.Servers() as servers:
        for mode in ("plain", "yamux1", "yamux2"):
            with nomad_client.Client(servers.address, mode) as c:
                case.equal(ping(c), {}, mode)
        for byte in (b"\0", b"\7", b"\x80"):
            with connect(servers.address) as s:
                s.sendall(byte)
                case.equal(ended(s), True, "the end after 0x%02x" % byte[0])
            broken(servers, "the first byte is")
        with connect(servers.address) as s:
            s.sendall(b"\4")  # without TLS
            case.equal(ended(s), True, "the end of the connection after a TLS byte")


def test_a_stream_with_a_wrong_first_byte_closes_the_connection():
    with nomad_server.Servers(forgive=True) as servers:
        with nomad_client.Client(servers.address) as c:
            good = c.channel()
            ping(c, good)
            c.session.open().write(b"\x09")
            case.until(lambda: c.session.closed, 5, "the end of the connection")
        broken(servers, "begins with")
        with nomad_client.Client(servers.address) as c:
            c.session.open().close()
            case.until(lambda: c.session.closed, 5, "the end of the connection after a stream without a first byte")
        broken(servers, "begins with b''")


def test_a_stream_without_its_first_byte_blocks_later_streams():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        ping(c)
        silent = c.session.open()
        c.timeout = 0.3
        case.raises(TimeoutError, ping, c)
        silent.write(netrpc.RPC)
        c.timeout = case.LEAST_S
        ping(c)


# --- yamux ---

def test_yamux_windows():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        servers.fault("pad", "Status.Ping", bytes=300 * 1024)
        for _ in range(3):
            case.equal(len(ping(c)["Zpadding"]), 300 * 1024, "an answer larger than a window")
        # A client that does not read gets only as much as the window allows; other streams are not affected.
        stream = c.session.open()
        stream.write(netrpc.RPC + netrpc.request("Status.Ping", 1, b"\x80"))
        case.until(lambda: stream.held == yamux.INITIAL_WINDOW, 5, "a full window")
        case.equal(len(ping(c)["Zpadding"]), 300 * 1024, "answer in another stream")
        case.equal(stream.held, yamux.INITIAL_WINDOW, "bytes in the full window")
        found = b""
        while len(found) < 300 * 1024:
            found += stream.read()
        stream.close()


def test_a_large_request():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        case.equal(c.call("Status.Ping", {"Prefix": "x" * (1 << 20)}), {}, "answer to a request of 1 MiB")


def test_fatal_protocol_errors():
    big = b"x" * (yamux.INITIAL_WINDOW + 1)
    syn = yamux.frame(yamux.WINDOW, yamux.SYN, 1, 0)
    fin = yamux.frame(yamux.WINDOW, yamux.FIN, 1, 0)
    with nomad_server.Servers(forgive=True) as servers:
        for data, text in (
                (b"\1" + bytes(11), "version 1"), (b"\0\7" + bytes(10), "type 7"), (syn + syn, "second SYN"),
                (yamux.frame(yamux.DATA, yamux.SYN, 1, 1, netrpc.RPC) + fin + fin, ""),
                (yamux.frame(yamux.DATA, yamux.SYN, 1, len(big), big), "window of stream 1 exceeded"),
                (yamux.frame(yamux.GO_AWAY, 0, 0, 1), "went away with code 1")):
            with connect(servers.address) as s:
                s.sendall(b"\6" + data)
                if text:
                    s.settimeout(case.LEAST_S)
                    try:
                        while s.recv(65536):
                            pass
                    except ConnectionResetError:
                        pass
                    broken(servers, text)


def test_harmless_protocol_errors():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        for data in (yamux.frame(yamux.WINDOW, 0, 99, 5), yamux.frame(yamux.WINDOW, yamux.FIN, 99, 0),
                     yamux.frame(yamux.DATA, 0, 99, 3, b"abc"), yamux.frame(yamux.GO_AWAY, 0, 0, 0)):
            c.session.send(data)
        ping(c)


def test_the_backlog_of_streams_is_limited():
    with nomad_server.Servers(forgive=True) as servers, connect(servers.address) as s:
        s.sendall(b"\6" + yamux.frame(yamux.WINDOW, yamux.SYN, 1, 0))
        case.equal(exactly(s, 12), ACK_1, "the first stream, which is accepted and waits for its byte")
        s.sendall(b"".join(yamux.frame(yamux.WINDOW, yamux.SYN, n, 0) for n in range(3, 600, 2)))
        resets = 0
        s.settimeout(case.LEAST_S)
        try:
            while True:
                kind, flags = struct.unpack(">xBH", exactly(s, 12)[:4])
                resets += kind == yamux.WINDOW and flags == yamux.RST
                if resets == 43:
                    s.settimeout(1)  # no more resets are expected
        except TimeoutError:
            pass
        case.equal(resets, 43, "resets of 300 streams")


def test_connections_are_pinged():
    args = ["--keepalive", "0.1", "--ping-timeout", "5"]
    with nomad_server.Servers(args=args) as servers, nomad_client.Client(servers.address) as c:
        case.until(lambda: c.session.pings_seen >= 3, 5, "three pings")
        c.session.ping(case.LEAST_S)
        case.equal(len(servers.session_fault("ping")), 1, "connections that answered")
        c.session.ignores_pings = True
        case.until(lambda: c.session.closed, 5, "the end of a connection that does not answer pings")


# --- net/rpc ---

def test_errors_that_end_a_stream_and_errors_that_do_not():
    with nomad_server.Servers(forgive=True) as servers, nomad_client.Client(servers.address) as c:
        channel = c.channel()
        for method, args, text in (
                ("Node.GetNode", {"NodeID": "x"}, "missing region for target RPC"),
                ("Node.GetNode", {"NodeID": "x", "Region": "mars"}, "No path to region"),
                ("Node.GetNode", {"NodeID": "x", "Region": "global"}, "UUID must be 36 characters")):
            case.contains(str(case.raises(nomad_client.RpcError, c.call, method, args, channel=channel)), text)
        ping(c, channel)  # the stream can be used after errors of a handler
        for method, args, text in (
                ("Status.Nope", {}, "rpc: can't find method Status.Nope"), ("Foo.Bar", {}, "rpc: can't find service Foo.Bar"),
                ("x", {}, "rpc: service/method request ill-formed: x"),
                ("Status.Leader", {"MinQueryIndex": 1.0}, "msgpack decode error"),
                ("Status.Leader", {"AllowStale": "x"}, "msgpack decode error"),
                ("Node.Register", {"Node": {"Drivers": {"x": {"UpdateTime": "x"}}}}, "msgpack decode error")):
            channel = c.channel()
            case.contains(str(case.raises(nomad_client.RpcError, c.call, method, args, channel=channel)), text)
            case.raises(EOFError, c.call, "Status.Ping", {}, channel=channel)
        channel = c.channel()
        channel.write(b"\xc1")
        case.raises(EOFError, channel.receive)
        ping(c)
        e = case.raises(nomad_client.RpcError, netrpc.StreamingCall, c.session.open(), "FileSystem.Nope", b"\x80")
        case.contains(str(e), 'Unknown rpc method: "FileSystem.Nope"')


def test_violations_of_a_node_are_reported():
    with nomad_server.Servers(forgive=True) as servers, nomad_client.Client(servers.address) as c:
        node = c.node()
        for bad, text in (({"Drivers": {"exec": None}}, "Drivers[exec]: nil where a struct"),
                          ({"Nonsense": 1}, "no server knows the key 'Nonsense'"),
                          ({"StatusUpdatedAt": gopack.U((1 << 64) - 1)}, "wraps to a negative")):
            c.call("Node.Register", c.write(Node={**simple(node), **bad}))
            broken(servers, text)
        c.call("Node.Register", c.write(Node={**simple(node), "ID": "%s" % node["SecretID"], "SecretID": "no uuid"}))
        broken(servers, "SecretID is no UUID")
        e = case.raises(AssertionError, servers_end_with_a_violation)
        case.contains(str(e), "the client broke rules")


def simple(node):
    """Returns the node without the fields that need their types to be packed."""
    return {k: v for k, v in node.items() if k not in ("Drivers", "NodeResources", "ReservedResources")}


def servers_end_with_a_violation():
    with nomad_server.Servers() as servers, connect(servers.address) as s:
        s.sendall(b"\x7f")
        case.equal(ended(s), True, "the end")
        case.until(servers.violations, 5, "the violation")


# --- TLS ---

def test_tls():
    directory = case.directory()
    made = nomad_server.make_certificates(directory, names=("server", "client", "stranger", "nobody"))
    ca = made["ca"][0]

    def client(who, **more):
        return nomad_client.Client(servers.address, certificate=(ca,) + (made[who] if who else (None, None)), **more)

    def refused(name, **more):
        """With TLS 1.3 a client notices the refusal only after the handshake."""
        try:
            with client(name, timeout=5, **more) as c:
                ping(c)
        except (OSError, EOFError, yamux.Reset, yamux.Closed):
            return True
        return False

    with nomad_server.Servers(certificates=made) as servers:
        for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
            with client("client", name="server.global.nomad", tls_version=version) as c:
                case.equal(ping(c), {}, "TLS")
            with client("client", tls_version=version) as c:  # other streams during a large answer
                servers.fault("pad", "Status.Ping", bytes=300 * 1024)
                threads = [threading.Thread(target=ping, args=(c,)) for _ in range(4)]
                for t in threads:
                    t.start()
                for t in threads:
                    t.join()
                servers.clear()
            for name in (None, "stranger", "nobody"):
                case.equal(refused(name, tls_version=version), True, "certificate of %s" % name)
        case.raises(ssl.SSLCertVerificationError, client, "client", name="server.mars.nomad")
        with connect(servers.address) as s:
            s.sendall(b"\6")
            case.equal(ended(s), True, "the end of a plain connection")
        for kind in ("tls_close", "tls_alert", "tls_plain"):
            servers.connection_fault(0, kind)
            case.equal(refused("client"), True, kind)
        servers.connection_fault(0, None)
        with client("client") as c:
            ping(c)
    with nomad_server.Servers(certificates=made, args=["--tls-upgrade"]) as servers:
        with client("client") as c, nomad_client.Client(servers.address) as plain:
            ping(c)
            ping(plain)


# --- faults ---

def test_slow_silent_and_wrong_answers():
    with nomad_server.Servers(forgive=True) as servers, nomad_client.Client(servers.address) as c:
        servers.fault("delay", "Status.*", seconds=0.4, times=1)
        began = time.monotonic()
        ping(c)
        case.equal(time.monotonic() - began >= 0.4, True, "the delay")
        servers.fault("silent", "Status.Ping", times=1)
        c.timeout = 0.3
        case.raises(TimeoutError, ping, c)
        c.timeout = case.LEAST_S
        servers.clear()
        servers.fault("drip", "Status.Ping", bytes=1, seconds=0.001, times=1)
        ping(c)
        servers.fault("wrong_seq", "Status.Ping", times=1)
        case.raises(gopack.Malformed, ping, c)
        servers.fault("reply", "Status.Members", reply={"ServerName": "other"}, skip=1, times=1)
        found = [c.call("Status.Members", FOR_GOOD)["ServerName"] for _ in range(3)]
        case.equal(found, ["server-0", "other", "server-0"], "answers, of which one is replaced")
        for shape in ("random", "reserved", "array", "not_a_map", "deep", "ext"):
            servers.fault("garbage", "Status.Ping", shape=shape, times=1)
            c.timeout = 1
            e = case.raises(Exception, ping, c)
            case.equal(isinstance(e, (gopack.Malformed, EOFError, TimeoutError, ValueError, TypeError, AttributeError,
                                      nomad_client.RpcError)) or type(e).__name__ == "Refused", True, "%s: %r" % (shape, e))
        servers.fault("garbage", "Status.Ping", hex=PING_ANSWER.hex(), times=1)
        c.timeout = case.LEAST_S
        case.raises(gopack.Malformed, ping, c)  # correct except for its sequence number


def test_errors_as_faults():
    with nomad_server.Servers() as servers, nomad_client.Client(servers.address) as c:
        c.register()
        for text in ("node not found", "Permission denied", "No path to region", "No cluster leader"):
            servers.fault("error", "Node.UpdateStatus", text=text, times=1)
            case.equal(str(case.raises(nomad_client.RpcError, c.heartbeat)), text)
        case.equal(servers.node(c.id)["Status"], "initializing", "status after refused heartbeats")
        servers.fault("error_after", "Node.UpdateStatus", text="EOF", times=1)
        case.raises(nomad_client.RpcError, c.heartbeat)
        case.equal(servers.node(c.id)["Status"], "ready", "status after a heartbeat with an error that was processed nevertheless")
        servers.set_leader(None)
        case.equal(str(case.raises(nomad_client.RpcError, c.heartbeat)), "No cluster leader")
        case.equal(c.call("Status.Leader", FOR_GOOD), "", "leader")
        servers.set_leader(0)
        c.heartbeat()


def test_answers_that_are_interrupted():
    with nomad_server.Servers() as servers:
        for after in (0, 1, 20):
            with nomad_client.Client(servers.address) as c:
                servers.fault("cut", "Status.Ping", after=after, times=1)
                case.raises(EOFError, ping, c)
                servers.fault("reset", "Status.Ping", after=after, times=1)
                case.raises(yamux.Reset, ping, c)
                ping(c)
                servers.fault("vanish", "Status.Ping", after=after, times=1)
                case.raises(yamux.Reset, ping, c)
                case.until(lambda: c.session.closed, 5, "the end of the connection")
        with nomad_client.Client(servers.address) as c:
            servers.fault("vanish_before", "Node.Register", times=1)
            case.raises(yamux.Reset, c.register)
            case.equal(servers.nodes(), {}, "nodes after a registration that was not processed")
        with nomad_client.Client(servers.address) as c:
            servers.fault("vanish", "Node.Register", after=30, stop=True, times=1)
            case.raises(yamux.Reset, c.register)
            case.equal(list(servers.nodes()), [c.id], "nodes after a registration that was processed")
            case.raises(ConnectionRefusedError, nomad_client.Client, servers.address)


def test_connections_that_are_silent():
    with nomad_server.Servers(2) as servers:
        with nomad_client.Client(servers.address) as c:
            ping(c)
            servers.half_open(0)
            c.timeout = 0.4
            case.raises(TimeoutError, ping, c)
            case.equal(c.session.closed, False, "whether a half-open connection is closed")
            with nomad_client.Client(servers.address, timeout=0.4) as new:
                case.raises(TimeoutError, ping, new)
            with nomad_client.Client(servers.addresses[1]) as other:
                ping(other)
            servers.half_open(0, False)
            c.timeout = case.LEAST_S
            ping(c)
        servers.connection_fault(0, "mute")
        with nomad_client.Client(servers.address, timeout=0.4) as c:
            case.raises(TimeoutError, ping, c)
        servers.connection_fault(0, "refuse")
        with connect(servers.address) as s:
            case.equal(ended(s), True, "whether the connection is refused")
        servers.connection_fault(0, None)
        with nomad_client.Client(servers.address) as c:
            ping(c)
            for kind in ("ignores_pings", "ignores_syns"):
                servers.session_fault(kind)
            case.raises(TimeoutError, c.session.ping, 0.3)
            c.timeout = 0.3
            case.raises(TimeoutError, ping, c)
        with nomad_client.Client(servers.address) as c:
            ping(c)
            servers.session_fault("frame", hex=b"\xff" * 12)
            case.until(lambda: c.session.closed, 5, "the end of the connection after a bad frame")
            case.contains(c.session.failure, "version 255")
        with nomad_client.Client(servers.address) as c:
            ping(c)
            servers.session_fault("go_away")
            case.until(lambda: c.session.went_away == 0, 5, "the go-away")
            case.raises(yamux.Closed, ping, c)


def test_servers_are_stopped_and_started():
    with nomad_server.Servers(3) as servers:
        with nomad_client.Client(servers.addresses[1]) as c:
            found = c.register()
            case.equal([s["RPCAdvertiseAddr"] for s in found["Servers"]], servers.addresses, "servers")
            case.equal(found["LeaderRPCAddr"], servers.addresses[0], "leader")
            servers.stop_server(0)
            case.raises(ConnectionRefusedError, nomad_client.Client, servers.addresses[0])
            case.equal(str(case.raises(nomad_client.RpcError, c.heartbeat)), "No cluster leader")
            servers.set_leader(2)
            found = c.heartbeat()
            case.equal([s["RPCAdvertiseAddr"] for s in found["Servers"]], servers.addresses[1:], "servers without the stopped one")
            servers.start_server(0)
            case.equal(len(c.heartbeat()["Servers"]), 3, "servers after its start")
            servers.settings(advertised=[])
            case.equal(c.heartbeat()["Servers"], [], "an empty list on command")
            servers.drop(1)
            case.until(lambda: c.session.closed, 5, "the end of the connection")
        case.equal(servers.accepted()[1], 1, "connections to the second server")


case.run(globals())
