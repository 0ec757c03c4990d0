# SPDX-License-Identifier: Apache-2.0
"""The cost of templates: starts of tasks that have one, beside the same tasks without, and what a change takes until all files show it."""
import os
import time

from measured import N, Bench, Spent, fresh_directory, job, poll, pss_mb, row, settle, stop, switches

IDLE_S = float(os.environ.get("BENCH_IDLE_S", "31"))
# Reads a file, which no event reports.
FILE = "{{ file (print (env \"NOMAD_ALLOC_DIR\") \"/data/input\") }}"
TEXT = "{{ with nomadVar \"bench/value\" }}{{ .text }}{{ end }} of {{ env \"NOMAD_ALLOC_ID\" }}\n"


def templated(name, count, text=TEXT):
    made = job(name, "raw_exec", count)
    made["Job"]["TaskGroups"][0]["Tasks"][0]["Templates"] = [
        {"EmbeddedTmpl": text, "DestPath": "local/value", "ChangeMode": "noop", "Wait": {"Min": 0, "Max": 0}}]
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


def idle(node):
    """Returns the CPU usage in percent of a core, the wakeups per second, and both by process as a text."""
    poll(lambda: "template-renderer" not in node.processes(), 60, "template-renderer to end")
    settle(3)
    spent = Spent(node)
    before = {name: switches(pid) for name, pid in spent.pids.items()}
    time.sleep(IDLE_S)
    spent.end()
    woken = {name: (switches(pid) - before[name]) / spent.seconds for name, pid in spent.pids.items()}
    return spent.agent_us / spent.seconds / 1e4, sum(woken.values()), ", ".join(
        "%s %.3f %.1f/s" % (n, us / spent.seconds / 1e4, woken[n]) for n, us in sorted(spent.cpu.items()) if us)


def bench_templates():
    with fresh_directory("tmpfs") as base, Bench(base) as node:
        put(node, "first")
        settle(3)
        before = agent_mb(node)
        plain = begin(node, job("plain", "raw_exec", N), N)
        plain_mb = agent_mb(node) - before
        plain_cpu, plain_woken, parts = idle(node)
        print("  idle without templates: " + parts)
        stop(node, "plain", N)
        settle(3)
        before = agent_mb(node)
        rate = begin(node, templated("templates", N), N)
        row("starts, with a template each", "%.0f" % rate, "/s", "without: %.0f" % plain, None)
        row("starts with a template, of those without", "%.0f" % (100 * rate / plain), "%", ">= 25", rate >= 0.25 * plain)
        grew = (agent_mb(node) - before) * 1024 / N
        row("PSS of the agent per task with a template", "%.2f" % grew, "KiB", "<= 16", grew <= 16)
        row("  without", "%.2f" % (plain_mb * 1024 / N), "KiB")
        cpu, woken, parts = idle(node)
        print("  idle with templates: " + parts)
        row("idle CPU with %d tasks with templates" % N, "%.3f" % cpu, "% of 1", "<= 0.1", cpu <= 0.1)
        row("  without", "%.3f" % plain_cpu, "% of 1")
        row("wakeups of the agent for templates that do not change", "%.1f" % (woken - plain_woken), "/s", "<= 2", woken - plain_woken <= 2)
        bench_change(node)
        stop(node, "templates", N)
        bench_files(node)


def bench_change(node):
    files = ["%s/alloc/%s/t/local/value" % (node.data, a["ID"]) for a in node.allocs("templates") if a["ClientStatus"] == "running"]
    assert len(files) == N and show(files, "first"), "every task has its file"
    began, spent = time.monotonic(), Spent(node)
    put(node, "second")
    poll(lambda: show(files, "second"), 600, "the change to be in all files")
    seconds = time.monotonic() - began
    spent.end()
    row("a changed variable is in %d files after" % N, "%.2f" % seconds, "s", "<= %.1f" % (N / 100), seconds <= N / 100)
    each = (spent.all_us or spent.agent_us) / N
    row("CPU time of that, per file", "%.0f" % each, "us", "<= 3000", each <= 3000)


def bench_files(node):
    """Templates that read a file, which is looked at again and again."""
    made = templated("files", N, FILE)
    made["Job"]["TaskGroups"][0]["Tasks"].append({
        "Name": "makes", "Driver": "raw_exec", "Config": {"command": "/bin/sh", "args": ["-c", "echo text > $NOMAD_ALLOC_DIR/data/input"]},
        "Lifecycle": {"Hook": "prestart", "Sidecar": False}, "Resources": {"CPU": 100, "MemoryMB": 64}})
    begin(node, made, N)
    cpu, woken, parts = idle(node)
    print("  idle with templates of files: " + parts)
    row("idle CPU with %d tasks whose templates read a file" % N, "%.3f" % cpu, "% of 1", "<= 1", cpu <= 1)
    row("wakeups of the agent for them", "%.1f" % woken, "/s")


PARTS = {"templates": bench_templates}
