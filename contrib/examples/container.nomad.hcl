# A container, as for Docker: its node needs skopeo, iptables and containernetworking-plugins, and
# plugin "docker" { config { enabled = true } } (docs/containers.md).
job "web" {
  datacenters = ["dc1"]

  group "web" {
    network {
      mode = "bridge"
      port "http" {
        static = 8080
        to     = 80
      }
    }

    task "nginx" {
      driver = "docker"

      config {
        image = "nginx:1.27"
        ports = ["http"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
