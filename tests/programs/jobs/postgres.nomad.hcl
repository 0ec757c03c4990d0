job "postgres" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "postgres" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command  = "/bin/sh"
        work_dir = "/local"
        args = ["-c", <<-SCRIPT
          set -e
          bin=$(echo /usr/lib/postgresql/*/bin)
          [ -d /db ] || $bin/initdb -D /db -U app --auth trust
          exec $bin/postgres -D /db -p 17002 -k /tmp
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
