# SPDX-License-Identifier: Apache-2.0
"""The cost of templates: starts of tasks that have one, beside the same tasks without, and what a change takes until all files show it."""
import os
import time

from measured import N, Bench, Spent, fresh_directory, job, poll, pss_mb, row, settle, stop

IDLE_S = float(os.environ.get("BENCH_IDLE_S", "31"))
TEXT = "{{ with nomadVar \"bench/value\" }}{{ .text }}{{ end }} of {{ env \"NOMAD_ALLOC_ID\" }}\n"


def templated(name, count):
    made = job(name, "raw_exec", count)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Templates"] = [
        {"EmbeddedTmpl": TEXT, "DestPath": "local/value", "ChangeMode": "noop", "Wait": {"Min": 0, "Max": 0}}]
    return made


def put(node, text):
    node.do("PUT", "/v1/var/bench/value", {"Path": "bench/value", "Items": {"text": text}})


def agent_mb(node):
    return sum(pss_mb(p) for p in node.parts().values())


def begin(node, made, count):
    """Returns how many start in a second."""
    name = made["Job"]["ID"]
    began = time.monotonic()
    node.register(made)
    poll(lambda: node.counts(name)["Running"] >= count, 600, "%d tasks to run" % count)
    return count / (time.monotonic() - began)


def show(files, text):
    for path in files:
        with open(path, encoding="utf-8") as f:
            if not f.read().startswith(text + " of "):
                return False
    return True


def bench_templates():
    with fresh_directory("tmpfs") as base, Bench(base) as node:
        put(node, "first")
        settle(3)
        before = agent_mb(node)
        plain = begin(node, job("plain", "raw_exec", N), N)
        plain_mb = agent_mb(node) - before
        stop(node, "plain", N)
        settle(3)
        before = agent_mb(node)
        rate = begin(node, templated("templates", N), N)
        row("starts, with a template each", "%.0f" % rate, "/s", "without: %.0f" % plain, None)
        row("starts with a template, of those without", "%.2f" % (rate / plain), "", "")
        grew = agent_mb(node) - before
        row("PSS of the agent per task with a template", "%.2f" % (grew * 1024 / N), "KiB", "without: %.2f" % (plain_mb * 1024 / N), None)
        poll(lambda: "template-renderer" not in node.processes(), 60, "template-renderer to end")
        settle(3)
        spent = Spent(node)
        time.sleep(IDLE_S)
        spent.end()
        row("idle CPU with %d tasks with templates" % N, "%.3f" % (spent.agent_us / spent.seconds / 1e4), "% of 1",
            ", ".join("%s %.3f" % (n, us / spent.seconds / 1e4) for n, us in sorted(spent.cpu.items()) if us))
        files = ["%s/alloc/%s/t/local/value" % (node.data, a["ID"]) for a in node.allocs("templates") if a["ClientStatus"] == "running"]
        assert len(files) == N and show(files, "first"), "every task has its file"
        began, spent = time.monotonic(), Spent(node)
        put(node, "second")
        poll(lambda: show(files, "second"), 600, "the change to be in all files")
        seconds = time.monotonic() - began
        row("a changed variable is in %d files after" % N, "%.2f" % seconds, "s")
        spent.end()
        row("CPU time of that, per file", "%.0f" % ((spent.all_us or spent.agent_us) / N), "us")


PARTS = {"templates": bench_templates}
