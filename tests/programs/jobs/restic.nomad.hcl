job "restic" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "restic" {
      driver       = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          set -e
          export RESTIC_REPOSITORY=/repository RESTIC_PASSWORD=words RESTIC_CACHE_DIR=/tmp/cache
          [ -d /repository ] || restic init
          mkdir -p /files
          date > "/files/$(date +%s%N)"
          restic backup /files
          restic check
          restic snapshots --json > /alloc/data/snapshots.tmp
          mv /alloc/data/snapshots.tmp /alloc/data/snapshots
          exec sleep 1000
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
