job "web" {
  datacenters = ["dc1", "${var.dc}"]
  meta = { for k, v in { a = 1, b = 2 } : upper(k) => v * 2 if v > 1 }

  group "g" {
    count = true ? 2 : max(1, 3)
    dynamic "service" {
      for_each = [{ port = 80 }, { port = 443 }][*].port
      content { port = service.value }
    }
    task "t" {
      env { "KEY" = "${attr.kernel.name}" }
      template {
        data = <<-EOT
          {{ range service "x" }}
          %{ for x in range(3) ~}
          server ${x};
          %{ endfor ~}
          $${escaped} %%{ if }
        EOT
      }
    }
  }
}
