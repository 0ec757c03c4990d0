job "node-exporter" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "node-exporter" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command = "/usr/bin/prometheus-node-exporter"
        args    = ["--web.listen-address=127.0.0.1:17006"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
