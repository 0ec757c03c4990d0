# SPDX-License-Identifier: Apache-2.0
"""A plugin that does not list a mounted volume any more: an event of the node and a line in the log say so, once for each change."""
import shutil

from lib import case, volumes

BROKEN, WELL = "Volume is not as expected", "Volume is as expected again"


def storage_events():
    """Returns what the node's events say about the plugin's reports, oldest first."""
    node_id = node.ask("/v1/nodes")[0]["ID"]
    events = [e for e in node.ask("/v1/node/" + node_id)["Events"] if e["Message"] in (BROKEN, WELL)]
    return [(e["Message"], e["Details"]["volume_id"], e["Details"].get("error", "")) for e in events]


def start(name):
    """Returns the plugin's record of a volume that is mounted."""
    node.create(name)
    node.register(volumes.job("user-" + name, name, "sleep 1000"))
    node.wait_running("user-" + name)
    return node.store + "/volumes/meta/" + node.ask("/v1/volume/csi/" + name)["ExternalID"]


def told(count, code):
    """Lets the agent compare, which it does after repairs, besides once a minute. Returns the events when there are that many."""
    node.drover("volume", "doctor", "-fix", code=code)
    case.until(lambda: len(storage_events()) >= count, 60, "%d events" % count)
    return storage_events()


def test_each_change_is_told_once():
    first, second = start("first"), start("second")
    shutil.move(first, node.top + "/first")
    (event,) = told(1, 2)
    case.equal(event[:2], (BROKEN, "first"))
    case.contains(event[2], "it was deleted there, or the plugin does not list all")
    shutil.move(second, node.top + "/second")
    case.equal([e[:2] for e in told(2, 2)], [(BROKEN, "first"), (BROKEN, "second")])
    shutil.move(node.top + "/first", first)
    case.equal([e[:2] for e in told(3, 2)], [(BROKEN, "first"), (BROKEN, "second"), (WELL, "first")])
    shutil.move(node.top + "/second", second)
    case.equal(told(4, 0)[3], (WELL, "second", ""))
    case.equal(node.log().count("it was deleted there, or the plugin does not list all"), 2)
    case.contains(node.log(), "volume first: plugin local reports nothing unexpected about it any more")


with volumes.Node() as node:
    node.start_plugin()
    case.run(globals())
