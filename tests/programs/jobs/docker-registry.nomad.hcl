job "docker-registry" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "docker-registry" {
      driver       = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          printf 'version: 0.1\nstorage:\n  filesystem:\n    rootdirectory: /registry\nhttp:\n  addr: 127.0.0.1:17012\n' > /registry.yml
          exec /usr/bin/docker-registry serve /registry.yml
        SCRIPT
        ]
      }

      resources {
        cpu    = 100
        memory = 128
      }
    }
  }
}
