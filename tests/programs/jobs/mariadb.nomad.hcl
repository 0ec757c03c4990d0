job "mariadb" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "mariadb" {
      driver       = "exec"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          set -e
          [ -d /db ] || mariadb-install-db --no-defaults --datadir=/db --auth-root-authentication-method=normal
          exec /usr/sbin/mariadbd --no-defaults --datadir=/db --port=17003 --socket=/tmp/db.sock
        SCRIPT
        ]
      }

      resources {
        cpu    = 100
        memory = 512
      }
    }
  }
}
