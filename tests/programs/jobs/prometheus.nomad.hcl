job "prometheus" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "prometheus" {
      driver       = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          printf 'scrape_configs:\n- job_name: self\n  scrape_interval: 1s\n  static_configs:\n  - targets: ["127.0.0.1:17005"]\n' > /prometheus.yml
          exec /usr/bin/prometheus --config.file=/prometheus.yml --storage.tsdb.path=/var/lib/prometheus --web.listen-address=127.0.0.1:17005
        SCRIPT
        ]
      }

      resources {
        cpu    = 100
        memory = 256
      }
    }
  }
}
