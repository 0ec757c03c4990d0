job "node" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "node" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command = "/usr/bin/node"
        args = ["-e", <<-PROGRAM
          const fs = require("fs");
          require("http").createServer((request, answer) => {
            if (request.method === "PUT")
              request.pipe(fs.createWriteStream("stored")).on("finish", () => answer.end());
            else
              answer.end(fs.existsSync("stored") ? fs.readFileSync("stored") : "");
          }).listen(17010, "127.0.0.1");
        PROGRAM
        ]
      }

      resources {
        cpu    = 100
        memory = 256
      }
    }
  }
}
