job "mosquitto" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "mosquitto" {
      driver       = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          printf 'listener 17008 127.0.0.1\nallow_anonymous true\npersistence true\npersistence_location /\n' > /mosquitto.conf
          exec /usr/sbin/mosquitto -c /mosquitto.conf
        SCRIPT
        ]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
