a0 = abs(-1.5)
a1 = abs(1e100)
a2 = abs("-3")
a3 = ceil(1.2)
a4 = ceil(-1.2)
a5 = ceil(-0.5)
a6 = ceil(5)
a7 = ceil(1/3)
a8 = floor(1.9)
a9 = floor(-0.1)
a10 = floor(-0.0)
a11 = log(16,2)
a12 = log(10,10)
a13 = log(100,10)
a14 = log(1000,10)
a15 = pow(2,10)
a16 = pow(2,0.5)
a17 = pow(10,22)
a18 = pow(10,-3)
a19 = pow(2,-60)
a20 = pow(2,-1074)
a21 = signum(-12)
a22 = signum(0)
a23 = min(1,2,-5)
a24 = max("10",9)
a25 = min([1,2,3]...)
a26 = parseint("ff",16)
a27 = parseint("-zz",36)
a28 = parseint("zZ",62)
a29 = parseint("+5",10)
a30 = parseint("-0",10)
a31 = parseint("340282366920938463463374607431768211456",10)
a32 = parseint("99999999999999999999999999999999",10)/3
a33 = parseint("18446744073709551615",10)/7
a34 = true ? [1] : ["a"]
a35 = true ? [1] : [1,2]
a36 = true ? [] : [1,2]
a37 = true ? {a=1} : {a="x"}
a38 = true ? {a=1} : {b="x"}
a39 = true ? null : [1]
a40 = true ? [null] : [1]
a41 = true ? {a=null} : {a=1}
a42 = true ? {a=null} : {b=1}
a43 = true ? "a" : true
a44 = false ? "a" : true
