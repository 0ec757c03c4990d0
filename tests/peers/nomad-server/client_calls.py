# SPDX-License-Identifier: Apache-2.0
"""Requests of servers to nodes: the types of each request and answer, and streams that a test reads piece by piece."""
import itertools
import threading

import gopack
import netrpc
import schema

# method on the wire: request, answer
UNARY = {
    "Allocations.GarbageCollectAll": ("NodeSpecificRequest", "GenericResponse"),
    "Allocations.GarbageCollect": ("AllocSpecificRequest", "GenericResponse"),
    "Allocations.Signal": ("AllocSignalRequest", "GenericResponse"),
    "Allocations.Restart": ("AllocRestartRequest", "GenericResponse"),
    "Allocations.Stats": ("AllocStatsRequest", "AllocStatsResponse"),
    "Allocations.Checks": ("AllocSpecificRequest", "AllocChecksResponse"),
    "Allocations.SetPauseState": ("AllocPauseStateRequest", "GenericResponse"),
    "Allocations.GetPauseState": ("AllocPauseStateRequest", "AllocPauseStateResponse"),
    "FileSystem.List": ("FsListRequest", "FsListResponse"),
    "FileSystem.Stat": ("FsListRequest", "FsStatResponse"),
    "ClientStats.Stats": ("NodeSpecificRequest", "ClientStatsResponse"),
    "Agent.Profile": ("AgentProfileRequest", "AgentProfileResponse"),
    "Agent.Host": ("AgentHostRequest", "AgentHostResponse"),
    "NodeMeta.Apply": ("NodeMetaApplyRequest", "NodeMetaResponse"),
    "NodeMeta.Read": ("NodeSpecificRequest", "NodeMetaResponse"),
    "NodeIdentity.Get": ("NodeIdentityRequest", "NodeIdentityGetResponse"),
    "NodeIdentity.Renew": ("NodeIdentityRequest", "Empty"),
    "HostVolume.Create": ("HostVolumeCreateRequest", "HostVolumeResponse"),
    "HostVolume.Register": ("HostVolumeRegisterRequest", "Empty"),
    "HostVolume.Delete": ("HostVolumeDeleteRequest", "HostVolumeResponse"),
    "CSI.ControllerValidateVolume": ("ControllerValidateVolumeRequest", "Empty"),
    "CSI.ControllerAttachVolume": ("ControllerAttachVolumeRequest", "ControllerAttachVolumeResponse"),
    "CSI.ControllerDetachVolume": ("ControllerDetachVolumeRequest", "Empty"),
    "CSI.ControllerCreateVolume": ("ControllerCreateVolumeRequest", "ControllerCreateVolumeResponse"),
    "CSI.ControllerExpandVolume": ("ControllerExpandVolumeRequest", "ControllerExpandVolumeResponse"),
    "CSI.ControllerDeleteVolume": ("ControllerDeleteVolumeRequest", "Empty"),
    "CSI.ControllerListVolumes": ("ControllerListVolumesRequest", "ControllerListVolumesResponse"),
    "CSI.ControllerCreateSnapshot": ("ControllerCreateSnapshotRequest", "CSISnapshot"),
    "CSI.ControllerDeleteSnapshot": ("ControllerDeleteSnapshotRequest", "Empty"),
    "CSI.ControllerListSnapshots": ("ControllerListSnapshotsRequest", "ControllerListSnapshotsResponse"),
    "CSI.NodeDetachVolume": ("NodeDetachVolumeRequest", "Empty"),
    "CSI.NodeExpandVolume": ("NodeExpandVolumeRequest", "NodeExpandVolumeResponse"),
}
STREAMING = {
    "Allocations.Exec": "AllocExecRequest",
    "FileSystem.Logs": "FsLogsRequest",
    "FileSystem.Stream": "FsStreamRequest",
    "Agent.Monitor": "MonitorRequest",
    "Agent.MonitorExport": "MonitorExportRequest",
}


def packed(kind, request, cluster, stale):
    """Returns the bytes of a request, with the query options that servers fill in."""
    fields = schema.shared().structs[kind].fields
    defaults = {"Region": cluster.region, "Namespace": "default", "AllowStale": stale}
    return schema.shared().pack(kind, {**{k: v for k, v in defaults.items() if k in fields}, **request}, cluster.version)


def call(cluster, node_id, method, request, timeout=None, raw=False):
    """Sends a request and returns the node's answer. RpcError; KeyError without a connection. A raw request, or one of a method that is not
    in the table, is sent unchanged."""
    connection = cluster.connection_of(node_id)
    takes, gives = UNARY.get(method, (None, None)) if not raw else (None, None)
    body = packed(takes, request, cluster, True) if takes else gopack.pack(request)
    found = netrpc.call(connection.session, method, body, timeout)
    if not gives:
        return gopack.natural(found)
    harm = []
    try:
        answer = schema.shared().unpack(gives, found, harm)
    except schema.Refused as e:
        connection.violation("answer to %s: %s" % (method, e))
        raise
    for text in harm:
        connection.violation("answer to %s: %s" % (method, text))
    return answer


class Streams:
    """Open streaming calls, by number."""

    def __init__(self, cluster):
        self.cluster, self.numbers, self.open_ones = cluster, itertools.count(1), {}
        self.lock = threading.Lock()

    def open(self, node_id, method, request, timeout=30):
        connection = self.cluster.connection_of(node_id)
        kind = STREAMING.get(method)
        body = packed(kind, request, self.cluster, False) if kind else gopack.pack(request)
        found = netrpc.StreamingCall(connection.session.open(), method, body, timeout)
        with self.lock:
            number = next(self.numbers)
            self.open_ones[number] = found
        return number

    def read(self, number, count=1, seconds=10):
        """Returns {"frames": […], "end": bool, "late": bool}: so many frames, fewer at the end or after the timeout."""
        call_ = self.open_ones[number]
        frames = []
        while len(frames) < count:
            try:
                frame = call_.next(seconds)
            except TimeoutError:
                return {"frames": frames, "end": False, "late": True}
            if frame is None:
                return {"frames": frames, "end": True, "late": False}
            frames.append(frame)
        return {"frames": frames, "end": False, "late": False}

    def send(self, number, value):
        self.open_ones[number].send(value)

    def close(self, number, reset=False):
        call_ = self.open_ones.pop(number)
        (call_.stream.reset if reset else call_.close)()
