# An agent's configuration, to be copied to /etc/drover/drover.hcl. All lines that are commented out
# show the defaults or an example. docs/configuration.md lists every setting;
# `drover config validate /etc/drover` checks the files.

# name       = "node1"   # default: the name of the host
# datacenter = "dc1"
data_dir  = "/var/lib/drover"
log_level = "info"

client {
  # Without servers, drover is its own one-node server.
  # servers = ["192.0.2.1", "192.0.2.2"]

  meta {
    # rack = "r1"
  }

  # A directory of the host that jobs may mount by this name.
  # host_volume "data" {
  #   path      = "/srv/data"
  #   read_only = false
  # }

  reserved {
    cpu    = 100 # MHz
    memory = 64  # MiB
  }
}

# Jobs with driver = "docker"; docs/containers.md says what they need.
# plugin "docker" {
#   config {
#     enabled = true
#   }
# }

# Health and metrics over TCP, for load balancers and Prometheus; nothing else is answered there.
# health {
#   address    = "127.0.0.1:4648"
#   token_file = "/etc/drover/health.token" # that each request needs
#   tls {
#     cert_file = "/etc/drover/health.pem"
#     key_file  = "/etc/drover/health.key"
#   }
# }

# Tasks without isolation, by default as root: whoever may submit jobs is then root.
plugin "raw_exec" {
  config {
    enabled = false
  }
}
