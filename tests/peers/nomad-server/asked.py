# SPDX-License-Identifier: Apache-2.0
"""Streams that nodes open: each waits, with its request, until a test sends data on it."""
import itertools
import threading
import time

import client_calls
import gopack
import schema
import yamux

# method: its request
STREAMING = {**client_calls.STREAMING, "Event.Stream": "EventStreamRequest"}


class Asked:
    """A stream. Data from the node is read when it arrives."""

    def __init__(self, stream):
        self.stream, self.objects, self.over = stream, [], None
        self.changed = threading.Condition()

    def read_all(self, reader):
        over = "end"
        try:
            while True:
                found = gopack.natural(reader.next())
                with self.changed:
                    self.objects.append(found)
                    self.changed.notify_all()
        except EOFError:
            pass
        except (gopack.Malformed, yamux.Reset):
            over = "reset"
        with self.changed:
            self.over = over
            self.changed.notify_all()

    def hear(self, count, seconds):
        end = time.monotonic() + seconds
        with self.changed:
            while len(self.objects) < count and not self.over and end > time.monotonic():
                self.changed.wait(end - time.monotonic())
            found, self.objects = self.objects[:count], self.objects[count:]
            return {"objects": found, "over": None if self.objects else self.over}


class AskedStreams:
    def __init__(self, cluster):
        self.cluster, self.numbers, self.open_ones = cluster, itertools.count(1), {}

    def serve(self, connection, stream, server):
        reader = gopack.Reader(stream.read)
        try:
            name = gopack.text(reader.next()[b"Method"])
            faults = self.cluster.faults.take(name, server)
            kind = STREAMING.get(name)
            if "silent" in faults:
                faults["silent"].cleared.wait()
            if "garbage" in faults:
                stream.write(faults["garbage"].garbage())
            elif "error" in faults or not kind:
                stream.write(gopack.pack({"Error": faults["error"]["text"] if "error" in faults else
                                          'Unknown rpc method: "%s"' % name}))
            else:
                stream.write(gopack.pack({"Error": ""}))
                self._begin(connection, stream, reader, name, kind)
                return
        except (EOFError, gopack.Malformed, KeyError, TypeError, yamux.Reset):
            pass
        stream.close()

    def _begin(self, connection, stream, reader, name, kind):
        harm = []
        asked, number = Asked(stream), next(self.numbers)
        try:
            args = schema.shared().unpack(kind, reader.next(), harm)
        except schema.Refused as e:
            connection.violation("%s: %s" % (name, e))
            return
        for text in harm:
            connection.violation("%s: %s" % (name, text))
        self.open_ones[number] = asked
        self.cluster.record(method=name, server=None, connection=connection.number, done=True, error=None, args=args,
                            reply=None, stream=number)
        asked.read_all(reader)
