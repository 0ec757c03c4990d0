job "hello" {
  datacenters = ["dc1"]

  group "hello" {
    update {
      min_healthy_time = "1s"
    }

    task "hello" {
      driver = "raw_exec"
      user   = "nobody"

      config {
        command = "/bin/sh"
        args    = ["-c", "echo hello from $NOMAD_ALLOC_NAME; exec sleep infinity"]
      }

      resources {
        cpu    = 50
        memory = 32
      }
    }
  }
}
