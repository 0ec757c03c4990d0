# SPDX-License-Identifier: Apache-2.0
"""One server: its listener, the first byte of a connection, TLS, sessions, and the calls on their streams."""
import contextlib
import itertools
import socket
import ssl
import threading
import time
import uuid

import gopack
import netrpc
import schema
import yamux
from methods import METHODS, Context, Failure
from transport import Transport

HANDSHAKE_S = 5.0
RPC_NOMAD, RPC_RAFT, RPC_MULTIPLEX, RPC_TLS, RPC_STREAMING, RPC_MULTIPLEX_V2 = range(1, 7)
ALERT_HANDSHAKE_FAILURE = b"\x15\x03\x03\x00\x02\x02\x28"
CONNECTION_FAULTS = ("refuse", "mute", "tls_close", "tls_alert", "tls_plain")


class Connection:
    """A TCP connection of a client; .session is set when it is multiplexed."""

    counter = itertools.count(1)

    def __init__(self, server, sock, peer):
        self.server, self.cluster, self.peer = server, server.cluster, peer
        self.number, self.established = next(self.counter), time.monotonic()
        self.sock, self.transport, self.session = sock, None, None
        self.tls_name, self.closed, self.nodes = "", False, set()

    def serves(self, node_id):
        """A call of this node succeeded on this connection, so servers use it for requests to the node from now on."""
        with self.cluster.changed:
            if node_id not in self.nodes:
                self.nodes.add(node_id)
                self.cluster.connections.setdefault(node_id, []).append(self)
                self.cluster.changed.notify_all()

    def violation(self, text):
        self.cluster.violation("connection %d: %s" % (self.number, text))

    def close(self, reset=False):
        with self.cluster.changed:
            self.closed = True
            for node_id in self.nodes:
                if self in self.cluster.connections.get(node_id, ()):
                    self.cluster.connections[node_id].remove(self)
            self.cluster.wake_all()
        if self.session:
            self.session.close(reset=reset)
        elif self.transport:
            self.transport.close(reset)
        else:
            with contextlib.suppress(OSError):
                self.sock.shutdown(socket.SHUT_RDWR)
            self.sock.close()
        self.server.forget(self)

    def on_session_end(self, session):
        if session.broken and not session.forgiven:
            self.violation("the session ended: " + session.failure)
        self.close()


class TLS:
    """Returns the TLS context of servers: clients need a certificate of the cluster's CA, with the name of a role if verify_server_hostname
    is set."""

    def __init__(self, ca, cert, key, verify_hostname=True, upgrade=False):
        self.verify_hostname, self.upgrade = verify_hostname, upgrade
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_2
        self.context.load_cert_chain(cert, key)
        self.context.load_verify_locations(ca)
        self.context.verify_mode = ssl.CERT_REQUIRED

    def names(self, sock):
        found = sock.getpeercert()
        names = [v for k, v in found.get("subjectAltName", ()) if k == "DNS"]
        return names + [v for part in found["subject"] for k, v in part if k == "commonName"]

    def role(self, sock, region):
        """Returns the name in the peer's certificate that permits the connection; None if it has none."""
        names = self.names(sock)
        for name in names:
            if name in ("client.%s.nomad" % region, "server.%s.nomad" % region):
                return name
        return None if self.verify_hostname else (names or [""])[0]


class Server:
    """.address, .listening. Several servers share one Cluster."""

    def __init__(self, cluster, number, host="127.0.0.1", port=0, tls=None, keepalive_s=30.0,
                 ping_timeout_s=10.0):
        self.cluster, self.issuer, self.number = cluster, cluster.issuer, number
        self.name, self.id, self.host, self.port = "server-%d" % number, str(uuid.uuid4()), host, port
        self.tls, self.keepalive_s, self.ping_timeout_s = tls, keepalive_s, ping_timeout_s
        self.listener, self.connections, self.lock = None, set(), threading.Lock()
        self.fault = None  # one of CONNECTION_FAULTS
        self.half_open = False
        self.accepted = 0

    @property
    def address(self):
        return "%s:%d" % (self.host, self.port)

    @property
    def listening(self):
        return self.listener is not None

    def start(self):
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((self.host, self.port))
        listener.listen(128)
        self.port = listener.getsockname()[1]
        self.listener = listener
        threading.Thread(target=self._accept, args=(listener,), daemon=True).start()
        with self.cluster.changed:
            self.cluster.changed.notify_all()

    def stop(self, reset=False):
        """Stops the server as SIGKILL does: the port is closed and every connection ends."""
        listener, self.listener = self.listener, None
        if listener:
            with contextlib.suppress(OSError):
                listener.shutdown(socket.SHUT_RDWR)
            listener.close()
        self.drop(reset)

    def drop(self, reset=False):
        """Ends all connections of this server."""
        with self.lock:
            found = list(self.connections)
        for connection in found:
            connection.close(reset)

    def set_half_open(self, on):
        """Neither reads, sends nor closes anything, also on future connections."""
        self.half_open = on
        with self.lock:
            found = list(self.connections)
        for connection in found:
            if connection.transport:
                (connection.transport.stall if on else connection.transport.resume)()

    def forget(self, connection):
        with self.lock:
            self.connections.discard(connection)

    # --- a connection ---

    def _accept(self, listener):
        while True:
            try:
                sock, peer = listener.accept()
            except OSError:
                return
            self.accepted += 1
            connection = Connection(self, sock, peer)
            with self.lock:
                self.connections.add(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        try:
            mode = self._hello(connection)
            if mode is None:
                return
            connection.transport = Transport(connection.sock)
            if connection.closed:  # by another thread that did not see the transport yet
                return
            if self.half_open:
                connection.transport.stall()
            if mode in (RPC_MULTIPLEX, RPC_MULTIPLEX_V2):
                self._serve_session(connection, mode == RPC_MULTIPLEX_V2)
            elif mode == RPC_NOMAD:
                self._serve_rpc(connection, connection.transport.recv, connection.transport.sendall, lambda: None,
                                lambda: connection.close(True))
        except (OSError, ConnectionError, yamux.Reset):
            pass
        finally:
            connection.close()

    def _hello(self, connection):
        """Returns the mode byte, after the TLS handshake if TLS is required; None if the connection has ended."""
        if self.fault == "refuse":
            return None
        if self.fault == "mute" or self.half_open:
            while (self.fault == "mute" or self.half_open) and self.listening:
                time.sleep(0.05)
            return None
        connection.sock.settimeout(HANDSHAKE_S)
        mode = connection.sock.recv(1)[:1]
        if mode == bytes([RPC_TLS]):
            if self.tls is None or not self._handshake(connection):
                return None
            connection.sock.settimeout(None)
            mode = connection.sock.recv(1)
        elif self.tls is not None and not self.tls.upgrade:
            return None
        if not mode or mode[0] not in (RPC_NOMAD, RPC_MULTIPLEX, RPC_STREAMING, RPC_MULTIPLEX_V2):
            if mode:
                connection.violation("the first byte is 0x%02x" % mode[0])
            return None
        return mode[0]

    def _handshake(self, connection):
        if self.fault in ("tls_close", "tls_alert", "tls_plain"):
            connection.sock.recv(4096)
            connection.sock.sendall({"tls_close": b"", "tls_alert": ALERT_HANDSHAKE_FAILURE,
                                     "tls_plain": b"220 this is not TLS\r\n"}[self.fault])
            return False
        try:
            connection.sock = self.tls.context.wrap_socket(connection.sock, server_side=True)
        except (ssl.SSLError, OSError) as e:
            self.cluster.record(method="(TLS)", server=self.number, connection=connection.number, error=str(e), done=True)
            return False
        connection.tls_name = self.tls.role(connection.sock, self.cluster.region)
        if connection.tls_name is None:
            self.cluster.record(method="(TLS)", server=self.number, connection=connection.number, done=True,
                                error="invalid role or region for certificate")
            return False
        return True

    # --- sessions ---

    def _serve_session(self, connection, mode_bytes):
        session = yamux.Session(connection.transport, client=False, keepalive_s=self.keepalive_s,
                                ping_timeout_s=self.ping_timeout_s, on_close=connection.on_session_end)
        connection.session = session
        session.start()
        while True:
            stream = session.accept()
            if stream is None:
                return
            mode = netrpc.RPC
            if mode_bytes:
                # As in the reference, this read blocks every later stream, and its failure ends the connection.
                try:
                    mode = stream.read(1)
                except yamux.Reset:
                    mode = b""
                if mode not in (netrpc.RPC, netrpc.STREAMING):
                    if not session.closed:
                        connection.violation("stream %d begins with %r" % (stream.number, mode))
                    return
            target = self._serve_stream if mode == netrpc.RPC else self._serve_asked
            threading.Thread(target=target, args=(connection, stream), daemon=True).start()

    def _serve_stream(self, connection, stream):
        try:
            self._serve_rpc(connection, stream.read, stream.write, stream.close, stream.reset)
        except yamux.Reset:
            pass
        finally:
            stream.close()

    def _serve_asked(self, connection, stream):
        self.cluster.asked.serve(connection, stream, self.number)

    # --- calls ---

    def _serve_rpc(self, connection, read, write, finish, reset):
        """Serves the requests of one stream, one after the other, until its end."""
        reader = gopack.Reader(read)
        while True:
            try:
                call = netrpc.read_call(reader)
            except EOFError:
                return
            except (gopack.Malformed, schema.Refused) as e:
                connection.violation("a request that is none: %s" % e)
                return
            faults = self.cluster.faults.take(call.method, self.number)
            record = self.cluster.record(method=call.method, server=self.number, connection=connection.number,
                                         done=False, error=None, args=None)
            data, keep = self._answer(connection, call, faults, record)
            if data is None:
                return
            self._send(connection, data, faults, write, finish, reset)
            if not keep:
                return

    def _answer(self, connection, call, faults, record):
        """Returns (bytes of the answer, whether the stream continues); (None, False) if there is no answer."""
        def failed(text, keep):
            with self.cluster.changed:
                record.update(error=text, done=True)
                self.cluster.changed.notify_all()
            return netrpc.answer(call.method, call.seq, b"", text), keep

        if "vanish_before" in faults:
            self._vanish(connection, faults["vanish_before"])
            return None, False
        if "delay" in faults:
            faults["delay"].cleared.wait(faults["delay"]["seconds"])
        if "silent" in faults:
            faults["silent"].cleared.wait()
            return None, False
        method = METHODS.get(call.method)
        if method is None or not method.exists(self.cluster.version):
            return failed(self._unknown(call.method), False)
        harm = []
        try:
            record["args"] = args = schema.shared().unpack(method.takes, call.body, harm)
        except schema.Refused as e:
            connection.violation("%s: msgpack decode error: %s" % (call.method, e))
            return failed("msgpack decode error [pos 0]: %s" % e, False)
        for text in harm:
            connection.violation("%s: %s" % (call.method, text))
        if "error" in faults:
            return failed(faults["error"]["text"], True)
        try:
            reply = self._handle(Context(self, connection, call.method, args), method)
        except (Failure, KeyError) as e:
            return failed(str(e.args[0]), True)
        if "error_after" in faults:
            return failed(faults["error_after"]["text"], True)
        body = self._body(method, args, reply, faults)
        with self.cluster.changed:
            record.update(reply=reply, done=True)
            self.cluster.changed.notify_all()
        return netrpc.answer(call.method, call.seq + ("wrong_seq" in faults) * 1000, body), True

    def _unknown(self, name):
        if "." not in name:
            return "rpc: service/method request ill-formed: " + name
        service = name.rpartition(".")[0]
        known = any(m.startswith(service + ".") for m in METHODS)
        return "rpc: can't find %s %s" % ("method" if known else "service", name)

    def _handle(self, ctx, method):
        cluster, args = self.cluster, ctx.args
        if isinstance(args, dict) and "Region" in args:
            if not args["Region"]:
                ctx.connection.violation("%s: no Region" % method.name)
                raise Failure("missing region for target RPC")
            if args["Region"] != cluster.region:
                raise Failure("No path to region")
            if cluster.leader_address() == "" and (method.write or not args.get("AllowStale", True)):
                time.sleep(0.05)
                raise Failure("No cluster leader")
            ctx.caller = self.issuer.caller(args["AuthToken"])
        if method.auth:
            method.auth(ctx)
        return method.fn(ctx)

    def _body(self, method, args, reply, faults):
        """Returns the packed reply, after the faults that change it."""
        if "index" in faults:
            fault = faults["index"]
            by = fault.get("by")
            reply = {**reply, "Index": max(0, args["MinQueryIndex"] + by) if by is not None else fault["index"]}
        if "empty" in faults:
            reply = {**reply, "Allocs": {}, "Index": faults["empty"].get("index") or self.cluster.index + 1}
        if "reply" in faults:
            reply = {**reply, **faults["reply"]["reply"]}
        tree = schema.shared().tree(method.gives, reply, self.cluster.version)
        if "pad" in faults and isinstance(tree, dict):
            tree["Zpadding"] = "x" * faults["pad"]["bytes"]
        return gopack.pack(tree)

    def _send(self, connection, data, faults, write, finish, reset):
        if "garbage" in faults:
            data = faults["garbage"].garbage()
        for kind in ("cut", "reset", "vanish"):
            if kind in faults:
                write(data[:faults[kind].get("after", 0)])
                if kind == "vanish":
                    self._vanish(connection, faults[kind])
                else:
                    (finish if kind == "cut" else reset)()
                raise yamux.Reset("on command")
        if "drip" in faults:
            step = faults["drip"].get("bytes", 1)
            for at in range(0, len(data), step):
                write(data[at:at + step])
                faults["drip"].cleared.wait(faults["drip"].get("seconds", 0))
            return
        write(data)

    def _vanish(self, connection, fault):
        if fault.get("stop"):
            self.stop(reset=fault.get("rst", False))
        else:
            connection.close(reset=fault.get("rst", False))
