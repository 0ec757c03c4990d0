job "python" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "python" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command = "/usr/bin/python3"
        args = ["-c", <<-PROGRAM
          import http.server, os
          class Server(http.server.BaseHTTPRequestHandler):
              def do_PUT(self):
                  with open("stored", "wb") as f:
                      f.write(self.rfile.read(int(self.headers["Content-Length"])))
                  self.send_response(204)
                  self.end_headers()
              def do_GET(self):
                  self.send_response(200)
                  self.end_headers()
                  self.wfile.write(open("stored", "rb").read() if os.path.exists("stored") else b"")
          http.server.ThreadingHTTPServer(("127.0.0.1", 17011), Server).serve_forever()
        PROGRAM
        ]
      }

      resources {
        cpu    = 100
        memory = 64
      }
    }
  }
}
