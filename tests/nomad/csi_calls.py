# SPDX-License-Identifier: Apache-2.0
"""The calls that a CSI driver writes to its log, in a form that can be compared: ids, paths and names are replaced.

    calls = csi_calls.Log(path, {"n1": "NODE"}, read)
    calls.mark("create")
    ...
    calls.steps()  # {"create": [Call, ...]}
"""
import re

# Calls that clients make periodically or at a moment of their own choice: only whether they are made can be compared.
PERIODIC = {"Identity/Probe", "Identity/GetPluginInfo", "Identity/GetPluginCapabilities", "Controller/ControllerGetCapabilities",
            "Node/NodeGetInfo", "Node/NodeGetCapabilities", "Node/NodeGetVolumeStats", "Controller/GetCapacity",
            "Controller/ControllerGetVolume", "GroupController/GroupControllerGetCapabilities"}
ID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# The names of numbers that are easier to read.
MODES = {1: "SINGLE_NODE_WRITER", 2: "SINGLE_NODE_READER_ONLY", 3: "MULTI_NODE_READER_ONLY", 4: "MULTI_NODE_SINGLE_WRITER",
         5: "MULTI_NODE_MULTI_WRITER", 6: "SINGLE_NODE_SINGLE_WRITER", 7: "SINGLE_NODE_MULTI_WRITER"}


def flat(value, at=""):
    """Returns {path of a member: value} of a JSON object."""
    if isinstance(value, dict):
        found = {}
        for key, inner in value.items():
            key = {"AccessType": "", "Type": ""}.get(key, key)
            found.update(flat(inner, ".".join(x for x in (at, key) if x)))
        return found or {at: "{}"}
    if isinstance(value, list):
        found = {}
        for i, inner in enumerate(value):
            found.update(flat(inner, "%s[%d]" % (at, i)))
        return found or {at: "[]"}
    if at.endswith("access_mode.mode"):
        value = MODES.get(value, value)
    return {at: str(value)}


class Call:
    """method: such as Node/NodeStageVolume; request: {member: value}; error: the driver's words, or nothing."""

    def __init__(self, said, names):
        self.method = said["Method"].replace("/csi.v1.", "", 1).lstrip("/")
        self.request = {k: names.replace(k, v) for k, v in flat(said["Request"] or {}).items() if k}
        self.error = names.replace("error", re.sub(r"rpc error: code = (\w+) desc = .*", r"\1", said["Error"] or "", flags=re.S))

    def __str__(self):
        members = " ".join("%s=%s" % item for item in sorted(self.request.items()))
        return "%s %s%s" % (self.method, members, " -> " + self.error if self.error else "")


class Names:
    """Replaces what differs between two runs of the same step. names: {word: its replacement}."""

    def __init__(self, names):
        self.names, self.paths = names, {}

    def replace(self, member, text):
        if member == "staging_target_path" and text:
            return self.paths.setdefault(text, "staging%d" % (len(self.paths) + 1))
        if member in ("target_path", "volume_path") and text:
            return "path"
        if member == "node_id":
            return "NODE"
        for word, instead in self.names.items():
            text = text.replace(word, instead)
        return ID.sub("ID", text)


class Log:
    """path: the file that the driver appends its log to. read: returns the calls in a text of it, as [{Method, Request, Error}]."""

    def __init__(self, path, names, read):
        self.path, self.names, self.read, self.marks = path, dict(names), read, []
        with open(path, "a", encoding="utf-8"):
            pass

    def text(self):
        with open(self.path, encoding="utf-8", errors="replace") as f:
            return f.read()

    def mark(self, step):
        """From now on the calls belong to this step."""
        self.marks.append((step, len(self.text())))

    def said(self, start=0, end=None):
        """Returns the calls of a part of the log, as the driver wrote them."""
        return self.read(self.text()[start:end])

    def steps(self):
        """Returns {step: its calls}, without the periodic ones."""
        found, text = {}, self.text()
        for i, (step, start) in enumerate(self.marks):
            end = self.marks[i + 1][1] if i + 1 < len(self.marks) else len(text)
            names = Names(self.names)
            calls = [Call(s, names) for s in self.said(start, end)]
            found.setdefault(step, []).extend(c for c in calls if c.method not in PERIODIC)
        return found

    def periodic(self):
        """Returns the methods of PERIODIC that were called."""
        return {s["Method"].replace("/csi.v1.", "", 1) for s in self.said()} & PERIODIC


# --- comparison ---

def differences(theirs, ours):
    """Compares the calls of two lives, {step: calls}. Returns rows (step, method, what, theirs, ours): what is a member of the request, "error",
    or "calls" for how often it is called."""
    rows = []
    for step in theirs:
        for method in sorted({c.method for c in theirs[step] + ours[step]}):
            a, b = ([c for c in calls if c.method == method] for calls in (theirs[step], ours[step]))
            if len(a) != len(b):
                rows.append((step, method, "calls", str(len(a)), str(len(b))))
            for one, other in zip(a, b):
                members = {m: (one.request.get(m, "-"), other.request.get(m, "-")) for m in {*one.request, *other.request}}
                members["error"] = one.error or "-", other.error or "-"
                rows += [(step, method, m, *values) for m, values in sorted(members.items()) if values[0] != values[1]]
        if [c.method for c in theirs[step]] != [c.method for c in ours[step]] and \
                sorted(c.method for c in theirs[step]) == sorted(c.method for c in ours[step]):
            rows.append((step, "-", "order", *(" ".join(c.method.split("/")[1] for c in x[step]) for x in (theirs, ours))))
    return rows


def explained(path, driver):
    """Returns the differences that the table below the driver's name, a heading of this document, gives a reason for: (step, call, what), each
    possibly "all"."""
    with open(path, encoding="utf-8") as f:
        section = f.read().split("\n### %s\n" % driver)[1].split("\n#")[0]
    return set(re.findall(r"^\| ([\w ]+) \| ([\w/]+) \| ([\w.`]+) \| [^|]+ \| [^|]+ \|", section, re.M))


def unexplained(rows, known):
    """Returns the rows that no difference of explained() covers."""
    def covers(entry, row):
        step, method, what = row[0], row[1].split("/")[-1], re.sub(r"\[\d+\]", "", row[2])
        return entry[0] in ("all", step) and entry[1] in ("all", method, row[1]) and (
            entry[2].strip("`") == "all" or what.startswith(entry[2].strip("`")))
    return [row for row in rows if not any(covers(entry, row) for entry in known)]
