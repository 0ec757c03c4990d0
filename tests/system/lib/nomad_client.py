# SPDX-License-Identifier: Apache-2.0
"""A small implementation of a node's side of the link, which tests servers, both ours and real ones, method by method.

    with nomad_client.Client("127.0.0.1:4647") as c:
        c.register()
        c.call("Node.GetClientAllocs", c.query(NodeID=c.id, SecretID=c.secret))
"""
import itertools
import queue
import socket
import ssl
import threading
import time
import uuid

from . import case
from . import nomad_server  # noqa: F401  # puts the peer's modules on the path
import gopack
import netrpc
import schema
import yamux
from netrpc import RpcError  # noqa: F401
from transport import Transport

MODES = {"plain": b"\1", "yamux1": b"\3", "yamux2": b"\6", "streaming": b"\5"}
LATEST = (99,)  # a client may send every field: peers skip fields that they do not know


class Channel:
    """One stream with calls one after the other. .heard: the bytes of the last answer."""

    def __init__(self, read, write, close):
        self.write, self.close, self.heard = write, close, b""

        def remember():
            data = read()
            self.heard += data
            return data
        self.reader = gopack.Reader(remember)

    def send(self, method, body, seq):
        self.write(netrpc.request(method, seq, body))

    def receive(self):
        """(header, body)"""
        self.heard = b""
        return netrpc.read_answer(self.reader)


class Client:
    """mode: yamux2, yamux1 or plain. certificate: (ca, cert, key) files for TLS, name: the server name to check."""

    seq = itertools.count(1)

    def __init__(self, address, mode="yamux2", certificate=None, name=None, node_id=None, secret=None, region="global",
                 timeout=case.LEAST_S, tls_version=None):
        host, _, port = address.rpartition(":")
        self.id, self.secret = node_id or str(uuid.uuid4()), secret or str(uuid.uuid4())
        self.region, self.token, self.timeout, self.mode = region, "", timeout, mode
        self.asked, self.handlers = queue.Queue(), {}
        sock = socket.create_connection((host, int(port)), timeout=case.LEAST_S)
        try:
            if certificate:
                sock = self._tls(sock, certificate, name, tls_version)
            sock.sendall(MODES[mode])
        except BaseException:
            sock.close()
            raise
        self.transport = Transport(sock)
        self.session = None
        if mode.startswith("yamux"):
            self.session = yamux.Session(self.transport, client=True, keepalive_s=0).start()
            threading.Thread(target=self._accept, daemon=True).start()

    def _tls(self, sock, certificate, name, version):
        ca, cert, key = certificate
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = name is not None
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(ca)
        if cert:
            context.load_cert_chain(cert, key)
        if version:
            context.maximum_version = context.minimum_version = version
        sock.sendall(b"\4")
        return context.wrap_socket(sock, server_hostname=name)

    # --- calls ---

    def channel(self):
        """Opens a stream for calls."""
        if self.session is None:
            return Channel(self.transport.recv, self.transport.sendall, self.close)
        stream = self.session.open()
        if self.mode == "yamux2":
            stream.write(netrpc.RPC)
        return Channel(lambda: stream.read(timeout=self.timeout), stream.write, stream.close)

    def call(self, method, args, takes=None, gives=None, channel=None):
        """Makes a call. Returns the decoded answer: as the struct `gives`, else by its own types. RpcError, EOFError, TimeoutError."""
        body = schema.shared().pack(takes, args, LATEST) if takes else gopack.pack(args)
        own = channel or self.channel()
        try:
            seq = next(self.seq)
            own.send(method, body, seq)
            head, found = own.receive()
            if (head["Seq"], head["ServiceMethod"]) != (seq, method):
                raise gopack.Malformed("an answer to %r" % head)
            if head["Error"]:
                raise RpcError(head["Error"])
            return schema.shared().unpack(gives, found) if gives else gopack.natural(found)
        finally:
            if channel is None and self.session is not None:
                own.close()

    def query(self, **more):
        """Returns arguments with query options."""
        return {"Region": self.region, "AuthToken": self.token, "AllowStale": True, **more}

    def write(self, **more):
        return {"Region": self.region, "AuthToken": self.token, **more}

    # --- requests of a node ---

    def node(self, version="2.0.5", **more):
        """Returns the smallest node that jobs are placed on."""
        return {
            "ID": self.id, "SecretID": self.secret, "Datacenter": "dc1", "Name": "n-" + self.id[:4], "NodePool": "default",
            "Status": "initializing",
            "Attributes": {"kernel.name": "linux", "cpu.arch": "amd64", "nomad.version": version, "driver.raw_exec": "1",
                           "driver.exec": "1", "unique.network.ip-address": "127.0.0.1",
                           "nomad.service_discovery": "true", "os.signals": "SIGINT,SIGTERM,SIGHUP,SIGKILL"},
            "NodeResources": {
                "Cpu": {"CpuShares": 4000, "TotalCpuCores": 4, "ReservableCpuCores": [0, 1, 2, 3]},
                "Processors": {"Topology": {"Distances": [[10]], "Nodes": b"\0", "Cores": [
                    {"ID": i, "Grade": True, "BaseSpeed": 1000} for i in range(4)]}},
                "Memory": {"MemoryMB": 4096}, "Disk": {"DiskMB": 20000},
                "Networks": [{"Mode": "host", "Device": "lo", "CIDR": "127.0.0.1/32", "IP": "127.0.0.1", "MBits": 1000}],
                "NodeNetworks": [{"Mode": "host", "Device": "lo", "Speed": 1000, "Addresses": [
                    {"Family": "ipv4", "Alias": "default", "Address": "127.0.0.1"}]}],
                "MinDynamicPort": 20000, "MaxDynamicPort": 32000},
            "ReservedResources": {},
            "Drivers": {d: {"Detected": True, "Healthy": True, "HealthDescription": "Healthy",
                            "UpdateTime": gopack.time_from_ns(time.time_ns()), "Attributes": {"driver." + d: "true"}}
                        for d in ("raw_exec", "exec")},
            "Links": {}, "Meta": {}, **more}

    def register(self, node=None, **more):
        """Calls Node.Register; later calls include the secret."""
        found = self.call("Node.Register", self.write(Node=node or self.node(), **more), "NodeRegisterRequest",
                          "NodeUpdateResponse")
        self.token = self.secret
        return found

    def heartbeat(self, **more):
        return self.call("Node.UpdateStatus", self.write(NodeID=self.id, Status="ready", **more), "NodeUpdateStatusRequest",
                         "NodeUpdateResponse")

    def client_allocs(self, index=0, wait_s=0, **more):
        return self.call("Node.GetClientAllocs", self.query(NodeID=self.id, SecretID=self.secret, MinQueryIndex=index,
                                                            MaxQueryTime=int(wait_s * 1e9), AllowStale=index > 0, **more),
                         "NodeSpecificRequest", "NodeClientAllocsResponse")

    def get_allocs(self, ids, index=0, wait_s=1):
        return self.call("Alloc.GetAllocs", self.query(AllocIDs=ids, MinQueryIndex=index, MaxQueryTime=int(wait_s * 1e9)),
                         "AllocsGetRequest", "AllocsGetResponse")

    def update_alloc(self, *updates):
        return self.call("Node.UpdateAlloc", self.write(Alloc=list(updates)), "AllocUpdateRequest", "GenericResponse")

    # --- requests of servers ---

    def _accept(self):
        while True:
            try:
                stream = self.session.accept()
            except TimeoutError:
                continue
            if stream is None:
                return
            threading.Thread(target=self._serve, args=(stream,), daemon=True).start()

    def _serve(self, stream):
        """Answers requests of servers with handlers[method](body), which returns an answer or raises RpcError; for streams it is a generator of
        frames. A method without a handler is answered as a node must."""
        try:
            mode = stream.read(1)
            reader = gopack.Reader(stream.read)
            if mode == netrpc.STREAMING:
                return self._serve_stream(stream, reader)
            while True:
                call = netrpc.read_call(reader)
                self.asked.put((call.method, gopack.natural(call.body)))
                handler, error, body = self.handlers.get(call.method), "", b"\x80"
                try:
                    if handler is None:
                        raise RpcError("rpc: can't find method " + call.method)
                    body = gopack.pack(handler(gopack.natural(call.body)))
                except RpcError as e:
                    error = str(e)
                stream.write(netrpc.answer(call.method, call.seq, body, error))
        except (EOFError, yamux.Reset):
            return None
        finally:
            stream.close()

    def _serve_stream(self, stream, reader):
        method = gopack.text(reader.next()[b"Method"])
        handler = self.handlers.get(method)
        if handler is None:
            stream.write(gopack.pack({"Error": 'Unknown rpc method: "%s"' % method}))
            return
        stream.write(gopack.pack({"Error": ""}))
        request = gopack.natural(reader.next())
        self.asked.put((method, request))
        for frame in handler(request, reader):
            stream.write(gopack.pack(frame))

    # --- end ---

    def close(self):
        if self.session:
            self.session.close()
        else:
            self.transport.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
