job "java" {
  group "server" {
    ephemeral_disk {
      size = 300
    }

    task "java" {
      driver       = "exec"
      kill_timeout = "30s"

      config {
        command = "/bin/sh"
        args = ["-c", <<-SCRIPT
          cat > Server.java <<'PROGRAM'
          import com.sun.net.httpserver.HttpServer;
          import java.net.InetSocketAddress;
          import java.nio.file.Files;
          import java.nio.file.Path;

          public class Server {
            public static void main(String[] args) throws Exception {
              Path stored = Path.of("stored");
              HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 17009), 0);
              server.createContext("/", exchange -> {
                if (exchange.getRequestMethod().equals("PUT"))
                  Files.write(stored, exchange.getRequestBody().readAllBytes());
                byte[] answer = Files.exists(stored) ? Files.readAllBytes(stored) : new byte[0];
                if (exchange.getRequestURI().getPath().equals("/memory"))
                  answer = Long.toString(Runtime.getRuntime().maxMemory()).getBytes();
                exchange.sendResponseHeaders(200, 0);
                exchange.getResponseBody().write(answer);
                exchange.close();
              });
              server.start();
            }
          }
          PROGRAM
          exec /usr/bin/java Server.java
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
