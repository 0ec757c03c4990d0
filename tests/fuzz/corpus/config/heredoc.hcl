client {
 meta {
 a = <<-EOT
   x $${y}
   EOT
 b = "\ud83d\ude00"
 }
}
