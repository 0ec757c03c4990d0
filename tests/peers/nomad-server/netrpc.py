# SPDX-License-Identifier: Apache-2.0
"""net/rpc on a stream: header and body of requests and answers, without lengths. And the frames of streaming RPC. Both roles."""
import itertools

import gopack
import schema

RPC, STREAMING = b"\1", b"\5"  # the first byte of a stream


class RpcError(Exception):
    """The Error of an answer."""


class Call:
    """A received request: .method, .seq, .body as msgpack decoded it."""

    def __init__(self, method, seq, body):
        self.method, self.seq, self.body = method, seq, body


def request(method, seq, body):
    """Returns the bytes of a request; body is already packed."""
    return gopack.pack({"Seq": gopack.U(seq), "ServiceMethod": method}) + body


def answer(method, seq, body, error=""):
    """Returns the bytes of an answer. An error has an empty map as body."""
    return gopack.pack({"Error": error, "Seq": gopack.U(seq), "ServiceMethod": method}) + (b"\x80" if error else body)


def read_call(reader):
    """Returns the next request. EOFError at the end; Malformed, schema.Refused for an invalid header."""
    head = schema.shared().unpack("RequestHeader", reader.next())
    return Call(head["ServiceMethod"], head["Seq"], reader.next())


def read_answer(reader):
    """Returns (header, body) of an answer."""
    return schema.shared().unpack("ResponseHeader", reader.next()), reader.next()


_seq = itertools.count(1)


def call(session, method, body, timeout=None):
    """Sends one request on a new stream. Returns the body of the answer, unpacked without a schema; RpcError."""
    stream = session.open()
    try:
        seq = next(_seq)
        stream.write(RPC + request(method, seq, body))
        head, found = read_answer(gopack.Reader(lambda: stream.read(timeout=timeout)))
        if head["Seq"] != seq or head["ServiceMethod"] != method:
            raise gopack.Malformed("the answer is to %r %d, not to %s %d" %
                                   (head["ServiceMethod"], head["Seq"], method, seq))
        if head["Error"]:
            raise RpcError(head["Error"])
        return found
    finally:
        stream.close()


class StreamingCall:
    """The client side of a streaming RPC: next() reads frames, send() sends input, close() cancels."""

    def __init__(self, stream, method, body, timeout=30):
        self.stream, self.timeout = stream, timeout
        self.reader = gopack.Reader(lambda: stream.read(timeout=self.timeout))
        stream.write(STREAMING + gopack.pack({"Method": method}))
        found = schema.shared().unpack("StreamAnswer", self.reader.next())
        if found["Error"]:
            stream.close()
            raise RpcError(found["Error"])
        stream.write(body)

    def next(self, timeout=None):
        """Returns the next frame as {"Error", "Payload"}; None at the end of the stream."""
        self.timeout = timeout or self.timeout
        try:
            found = self.reader.next()
        except EOFError:
            return None
        return schema.shared().unpack("StreamErrWrapper", found)

    def send(self, value):
        self.stream.write(gopack.pack(value))

    def close(self):
        self.stream.close()
