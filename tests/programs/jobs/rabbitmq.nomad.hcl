job "rabbitmq" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "rabbitmq" {
      driver       = "exec"
      kill_signal  = "SIGTERM"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          mkdir -p /mq/log
          echo 'listeners.tcp.default = 17007' > /mq/rabbitmq.conf
          export HOME=/mq RABBITMQ_MNESIA_BASE=/mq/db RABBITMQ_LOG_BASE=/mq/log RABBITMQ_LOGS=- RABBITMQ_NODENAME=mq@localhost
          export RABBITMQ_CONFIG_FILE=/mq/rabbitmq RABBITMQ_ENABLED_PLUGINS_FILE=/mq/plugins RABBITMQ_DIST_PORT=17017 ERL_EPMD_PORT=17027
          exec /usr/lib/rabbitmq/bin/rabbitmq-server
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
