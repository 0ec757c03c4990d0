a = try(foo.bar, [1][2], parseint("x", 10), "ok")
b = can({ a = 1 }.b)
c = jsondecode("{")
d = yamldecode("a: [")
e = regex_replace("a", "(", "b")
f = "${null}x"
g {
  h = 1 / 0
  i = file("/etc/passwd")
  j = [for x in 5 : x]
  k = (((1)))
  l = <<EOT
never ends
