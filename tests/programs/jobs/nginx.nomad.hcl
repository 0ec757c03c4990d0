job "nginx" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "nginx" {
      driver       = "exec"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          set -e
          mkdir -p /www /body
          echo 'pid /tmp/nginx.pid; error_log stderr; events { }
          http { client_body_temp_path /body; proxy_temp_path /tmp/p; fastcgi_temp_path /tmp/f; uwsgi_temp_path /tmp/u;
                 scgi_temp_path /tmp/s; access_log /dev/stdout;
                 server { listen 17004; root /www; location /files/ { alias /www/; dav_methods PUT; } } }' > /nginx.conf
          exec /usr/sbin/nginx -c /nginx.conf -g 'daemon off;' -p /
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
