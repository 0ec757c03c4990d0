#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""POST /v1/jobs/parse: job files that job-parser reads; it is started on demand, bounded, and ended."""
import os
import signal
import threading

from lib import agent, api, case

JOB = """variable "image" {}
job "web" {
  group "g" {
    count = 2
    task "t" {
      driver = "raw_exec"
      config {
        command = "/bin/${var.image}"
      }
    }
  }
}
"""
# It takes seconds.
SLOW = 'job "slow" {\n meta {\n  x = bcrypt("a", 15)\n }\n}\n'


def parse(hcl, **body):
    return node.do("POST", "/v1/jobs/parse", {"JobHCL": hcl, **body})


def refused(status, part, body):
    node.refused(status, part, "POST", "/v1/jobs/parse", body)


def test_job_parser_is_not_started_before_the_first_job_file():
    case.equal("job-parser" in node.processes(), False, "whether job-parser runs")


def test_a_job_file_becomes_json_with_and_without_defaults():
    job = parse(JOB, Variables='image = "sleep"\nother = 1\n')
    case.equal((job["ID"], job["TaskGroups"][0]["Count"], job["Type"], job["Update"]), ("web", 2, None, None), "without defaults")
    case.equal(job["TaskGroups"][0]["Tasks"][0]["Config"], {"command": "/bin/sleep"}, "the variable's value")
    job = parse(JOB, Variables='image = "sleep"', Canonicalize=True)
    case.equal((job["Type"], job["Region"], job["Namespace"], job["Priority"]), ("service", "global", "default", 50), "defaults of the job")
    group = job["TaskGroups"][0]
    case.equal(group["Update"], job["Update"], "the group's update")
    case.equal((group["RestartPolicy"]["Attempts"], group["Tasks"][0]["RestartPolicy"]), (2, group["RestartPolicy"]), "restart")
    case.equal(group["Tasks"][0]["Resources"]["MemoryMB"], 300, "memory")
    case.equal(node.do("PUT", "/v1/validate/job", {"Job": job})["Error"], "", "problems of the job that was parsed")
    pretty = node.request("POST", "/v1/jobs/parse?pretty", {"JobHCL": 'job "j" {\n}'}).text
    case.contains(pretty, '\n    "ID": "j",')


def test_a_job_file_may_have_long_lists_and_large_maps():
    """A list of more than 1 KiB was sorted with a system call that the filter killed."""
    job = parse('job "j" {\n meta = { for x in range(500): "k${x}" => x }\n group "g" {\n task "t" {\n driver = "exec"\n config {\n'
                ' args = sort([for x in range(500): "v${x}"])\n }\n }\n }\n}')
    case.equal((len(job["Meta"]), len(job["TaskGroups"][0]["Tasks"][0]["Config"]["args"])), (500, 500), "members")


def test_what_is_wrong_is_answered_with_its_lines():
    refused(400, "Job spec is empty", {"JobHCL": ""})
    refused(400, "Job spec is empty", {})
    refused(400, "JobHCL: expected a text", {"JobHCL": 7})
    refused(400, "Variables: expected a text", {"JobHCL": "x", "Variables": []})
    refused(400, "version 1 are not supported", {"JobHCL": 'job "j" {\n}', "HCLv1": True})
    refused(400, 'Failed to parse job: input.hcl:2:2: unknown block "grup" in a job block', {"JobHCL": 'job "j" {\n grup "g" {}\n}'})
    refused(400, 'variable "image" has no value', {"JobHCL": JOB})
    refused(400, "variables:1:9: ", {"JobHCL": JOB, "Variables": "image = )"})
    refused(400, "file(): filesystem functions are disabled", {"JobHCL": 'job "j" {\n meta { x = file("/etc/passwd") }\n}'})
    refused(400, "the document needs too many steps", {"JobHCL": 'locals {\n a = range(1000)\n'
                                                        ' b = setproduct(local.a, local.a, local.a)\n}\njob "j" {\n}'})


def test_job_parser_has_no_file_and_nothing_of_the_configuration():
    parse('job "j" {\n}')
    parser = node.wait_process("job-parser")

    def others():
        return [name for name in agent.descriptors(parser)
                if not name.startswith(("socket:", "/dev/null", "/memfd:log-level")) and name != node.log_path]
    # It closes the memfd of the answer after it has sent it, perhaps after the client has the answer.
    case.until(lambda: others() == [], 10, "all other descriptors to be closed")


def test_a_job_file_that_needs_too_much_is_stopped_and_delays_no_other():
    answers = []
    thread = threading.Thread(target=lambda: answers.append(node.request("POST", "/v1/jobs/parse", {"JobHCL": SLOW}, timeout=60)))
    thread.start()
    parser = case.until(lambda: node.processes().get("job-parser"), 10, "job-parser")
    worker = case.until(lambda: agent.children(parser), 10, "its worker")[0]
    os.kill(worker, signal.SIGSTOP)
    case.equal(parse('job "j" {\n}')["ID"], "j", "a job file meanwhile")
    case.equal(thread.is_alive(), True, "whether the long one is still parsed")
    os.kill(worker, signal.SIGXCPU)
    os.kill(worker, signal.SIGCONT)
    thread.join()
    case.equal(answers[0].status, 500, answers[0].text)
    case.contains(answers[0].text, "this job file takes more time or memory to evaluate than is allowed")
    case.equal(node.processes()["job-parser"], parser, "job-parser")


def test_a_killed_job_parser_fails_its_requests_and_is_restarted():
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(node.request("POST", "/v1/jobs/parse", {"JobHCL": SLOW}, timeout=60)))
               for _ in range(2)]
    for thread in threads:
        thread.start()
    parser = node.wait_process("job-parser")
    case.until(lambda: len(agent.children(parser)) == 2, 10, "two workers")
    node.kill("job-parser", signal.SIGKILL)
    for thread in threads:
        thread.join()
    for answer in answers:
        case.equal((answer.status, answer.text.strip()), (500, "job-parser ended before it had evaluated this job file"))
    case.equal(parse('job "j" {\n}')["ID"], "j", "a job file after the kill")


def test_a_stopped_job_parser_delays_no_other_request():
    os.kill(node.wait_process("job-parser"), signal.SIGSTOP)
    gone = [api.Connection(node, 60) for _ in range(8)]
    for c in gone:
        c.request("POST", "/v1/jobs/parse", b'{"JobHCL": "job"}')
    case.equal(node.ask("/v1/agent/health")["client"]["ok"], True, "health")
    for c in gone:
        c.close()
    os.kill(node.wait_process("job-parser"), signal.SIGCONT)
    case.equal(parse('job "j" {\n}')["ID"], "j", "a job file after that")


def test_an_idle_job_parser_ends():
    case.until(lambda: "job-parser" not in node.processes(), 120, "job-parser, which has nothing to do, to end")
    case.equal(parse('job "j" {\n}')["ID"], "j", "a job file after that")


if __name__ == "__main__":
    with api.Node() as node:
        case.run(globals())
