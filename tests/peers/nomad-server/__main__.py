# SPDX-License-Identifier: Apache-2.0
"""Simulated servers of a cluster, for tests of the link.

    python3 tests/peers/nomad-server [--servers N] [--listen HOST:PORT]… [--version 1.6.10|2.0.5] [--ca F --cert F --key F]

The first line on stdout is {"addresses": […]}; then stdin takes the commands of control.py, until its end. Several servers
share one state: any of them may be stopped and started again on its port."""
import argparse
import os
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import acl_methods  # noqa: E402,F401  # fills the table of methods, as those below
import alloc_methods  # noqa: E402,F401
import csi_methods  # noqa: E402
import node_methods  # noqa: E402,F401
import service_methods  # noqa: E402,F401
import status_methods  # noqa: E402,F401
import user_methods  # noqa: E402,F401
from cluster import Cluster  # noqa: E402
from control import Control  # noqa: E402
from server import TLS, Server  # noqa: E402


def arguments():
    p = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    p.add_argument("--servers", type=int, default=1)
    p.add_argument("--listen", action="append", help="HOST:PORT of each server, default 127.0.0.1:0")
    p.add_argument("--version", default="2.0.5")
    p.add_argument("--region", default="global")
    p.add_argument("--datacenter", default="dc1")
    p.add_argument("--ttl", type=float, default=10.0, help="seconds, plus up to --ttl-jitter")
    p.add_argument("--ttl-jitter", type=float, default=10.0)
    p.add_argument("--grace", type=float, default=10.0)
    p.add_argument("--keepalive", type=float, default=30.0, help="seconds between pings")
    p.add_argument("--ping-timeout", type=float, default=10.0)
    p.add_argument("--ca")
    p.add_argument("--cert")
    p.add_argument("--key")
    p.add_argument("--no-verify-hostname", action="store_true", help="any certificate of the CA may connect")
    p.add_argument("--tls-upgrade", action="store_true", help="take connections without TLS too")
    return p.parse_args()


def main():
    args = arguments()
    cluster = Cluster(args.version, args.region, args.datacenter, args.ttl, args.ttl_jitter, args.grace)
    tls = TLS(args.ca, args.cert, args.key, not args.no_verify_hostname, args.tls_upgrade) if args.ca else None
    listen = args.listen or ["127.0.0.1:0"]
    if len(listen) == 1:
        listen = listen + [listen[0].rpartition(":")[0] + ":0"] * (args.servers - 1)
    for number, address in enumerate(listen):
        host, _, port = address.rpartition(":")
        cluster.servers.append(Server(cluster, number, host, int(port), tls, args.keepalive,
                                      args.ping_timeout))
    for server in cluster.servers:
        server.start()
    csi_methods.start_watcher(cluster)
    control = Control(cluster)
    control.say({"addresses": [s.address for s in cluster.servers]})
    try:
        control.run(sys.stdin)
    except KeyboardInterrupt:
        pass
    cluster.close()
    os._exit(0)  # ends without cleanup: the interpreter would crash in threads that still write an answer


if __name__ == "__main__":
    main()
