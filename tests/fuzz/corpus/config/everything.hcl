# comment
region = "eu" // and another
/* over
 lines */ datacenter: "dc2"
name = "n\u00e9 \"q\" \\ $${x} $5"
data_dir = "/opt/drover/"
log_level = "WARN"
client {
  enabled = true
  servers = [ "a:4647", "b", ]
  node_class = "big" node_pool = "gpu"
  meta { rack = 12, "a.b" = "c" }
  meta = { on: true }
  max_kill_timeout = "1m30s"
  cgroup_parent = "nomad.slice"
  cpu_total_compute = 4000
  memory_total_mb = "2048"
  reserved { cpu = 500 memory = 256 disk = 1024 }
  host_volume "data" { path = "/srv/data" }
  host_volume "ro" {
    path = "/srv/ro"
    read_only = true
  }
  chroot_env { "/bin" = "/bin" "/opt/tools" = "/tools" }
}
plugin "raw_exec" { config { enabled = true denied_host_uids = "0, 1000-1999" } }
plugin "exec" { config {
  allow_caps = ["net_raw", "CAP_SYS_ADMIN"]
  default_pid_mode = "host"
} }
