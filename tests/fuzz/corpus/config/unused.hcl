telemetry { a = 1 }
bind_addr = "0.0.0.0"
server { enabled = true }
client { options { "driver.allowlist" = "exec" } server_join { retry_join = ["a"] } }
