job "redis" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "redis" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command = "/usr/bin/redis-server"
        args    = ["--port", "17001", "--save", "3600", "1"]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
