# SPDX-License-Identifier: Apache-2.0
"""Identities of callers, and the tokens that servers issue (RS256, with a key of this run)."""
import base64
import ctypes
import hashlib
import hmac
import json
import re
import subprocess
import threading
import time
import uuid

LEEWAY_S = 60
UUID = re.compile(r"[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}")
DENIED = "Permission denied"
# DER of "SHA-256 digest follows", PKCS #1.
SHA256 = bytes.fromhex("3031300d060960864801650304020105000420")


def is_uuid(value):
    return UUID.fullmatch(value) is not None


class Key:
    """An RSA key that openssl makes in the background; its first user waits."""

    def __init__(self):
        self.lock, self.numbers, self.private = threading.Lock(), None, None
        self.id, self.made = str(uuid.uuid4()), time.time_ns()
        threading.Thread(target=self._load, daemon=True).start()

    def _load(self):
        with self.lock:
            if self.numbers is None:
                der = subprocess.run(["openssl", "genrsa", "-traditional", "2048"], capture_output=True, check=True).stdout
                der = subprocess.run(["openssl", "rsa", "-traditional", "-outform", "DER"], input=der,
                                     capture_output=True, check=True).stdout
                self.numbers, self.private = der_integers(der), private_key(der)
            return self.numbers

    def sign(self, claims):
        """Returns the compact JWT."""
        self._load()
        head = {"alg": "RS256", "kid": self.id, "typ": "JWT"}
        message = b64(json.dumps(head, separators=(",", ":")).encode()) + b"." + \
            b64(json.dumps(claims, separators=(",", ":")).encode())
        with self.lock:
            signature = sign(self.private, message)
        return (message + b"." + b64(signature)).decode()

    def verify(self, token):
        """Returns the claims; None if this key has not signed it."""
        try:
            message, _, signature = token.encode().rpartition(b".")
            _, n, e = self._load()[:3]
            size = (n.bit_length() + 7) // 8
            clear = pow(int.from_bytes(unb64(signature), "big"), e, n).to_bytes(size, "big")
            if not hmac.compare_digest(clear[-51:], SHA256 + hashlib.sha256(message).digest()):
                return None
            return json.loads(unb64(message.partition(b".")[2]))
        except ValueError:
            return None

    def public(self):
        """Returns the key as servers publish it."""
        _, n, e = self._load()[:3]
        return {"KeyID": self.id, "Algorithm": "RS256", "Use": "sig", "PublicKey": der_sequence(n, e),
                "CreateTime": self.made}


def b64(data):
    return base64.urlsafe_b64encode(data).rstrip(b"=")


def unb64(data):
    return base64.urlsafe_b64decode(data + b"=" * (-len(data) % 4))


def libcrypto():
    """Returns OpenSSL's libcrypto, which Python's ssl has already loaded."""
    lib = ctypes.CDLL("libcrypto.so.3")
    for name in ("d2i_AutoPrivateKey", "EVP_MD_CTX_new", "EVP_sha256"):
        getattr(lib, name).restype = ctypes.c_void_p
    return lib


def private_key(der):
    """Returns an EVP_PKEY, which is kept until the process ends. Signing in Python takes 30 times as long."""
    key = libcrypto().d2i_AutoPrivateKey(None, ctypes.byref(ctypes.c_char_p(der)), ctypes.c_long(len(der)))
    if not key:
        raise ValueError("this is no private key")
    return ctypes.c_void_p(key)


def sign(key, message):
    """Returns a signature: RSA with SHA-256."""
    lib = libcrypto()
    context = ctypes.c_void_p(lib.EVP_MD_CTX_new())
    size, data = ctypes.c_size_t(1024), ctypes.create_string_buffer(1024)
    ok = lib.EVP_DigestSignInit(context, None, ctypes.c_void_p(lib.EVP_sha256()), None, key) == 1 and \
        lib.EVP_DigestSign(context, data, ctypes.byref(size), message, ctypes.c_size_t(len(message))) == 1
    lib.EVP_MD_CTX_free(context)
    if not ok:
        raise ValueError("OpenSSL cannot sign")
    return data.raw[:size.value]


def der_integers(der):
    """Returns the integers of one SEQUENCE."""
    def head(at):
        n, at = der[at + 1], at + 2
        if n & 0x80:
            size = n & 0x7f
            n, at = int.from_bytes(der[at:at + size], "big"), at + size
        return n, at
    found = []
    _, at = head(0)
    while at < len(der):
        n, at = head(at)
        found.append(int.from_bytes(der[at:at + n], "big"))
        at += n
    return found


def der_sequence(*numbers):
    """Returns the DER of a SEQUENCE of integers."""
    def head(tag, n):
        if n < 0x80:
            return bytes([tag, n])
        size = n.to_bytes((n.bit_length() + 7) // 8, "big")
        return bytes([tag, 0x80 | len(size)]) + size
    body = b""
    for number in numbers:
        data = number.to_bytes(number.bit_length() // 8 + 1, "big")
        body += head(2, len(data)) + data
    return head(0x30, len(body)) + body


class Caller:
    """kind: anonymous, node, workload, intro, token, or invalid; .expired is separate."""

    def __init__(self, kind, node_id=None, claims=None, token=None, expired=False, by_secret=False):
        self.kind, self.node_id, self.claims, self.token, self.expired = kind, node_id, claims, token, expired
        self.by_secret = by_secret

    @property
    def valid(self):
        return self.kind != "invalid" and not self.expired


class Issuer:
    def __init__(self, cluster):
        self.cluster, self.key, self.signed = cluster, Key(), {}

    def _claims(self, subject, ttl_s, **more):
        now = int(time.time()) + self.cluster.clock_ahead_s
        claims = {"aud": "nomadproject.io", "iat": now, "nbf": now, "jti": str(uuid.uuid4()), "sub": subject, **more}
        if ttl_s:
            claims["exp"] = now + int(ttl_s)
        return claims

    def node(self, node):
        more = {"nomad_node_id": node["ID"], "nomad_node_pool": node["NodePool"],
                "nomad_node_datacenter": node["Datacenter"]}
        if node["NodeClass"]:
            more["nomad_node_class"] = node["NodeClass"]
        subject = "node:%s:%s:%s:default" % (self.cluster.region, node["NodePool"], node["ID"])
        return self.key.sign(self._claims(subject, self.cluster.identity_ttl_s, **more))

    def introduction(self, name="", pool="default", ttl_s=300):
        subject = "node-introduction:%s:%s:%s:default" % (self.cluster.region, pool, name)
        return self.key.sign(self._claims(subject, ttl_s, nomad_node_name=name, nomad_node_pool=pool))

    def task(self, alloc, task, identity=None):
        """Returns the JWT of a task's identity. It does not expire if identity is None or without TTL."""
        identity = identity or {"Name": "default", "Audience": ["nomadproject.io"], "TTL": 0}
        subject = ":".join([self.cluster.region, alloc["Namespace"], alloc["JobID"], alloc["TaskGroup"], task,
                            identity["Name"]])
        claims = self._claims(subject, identity["TTL"] / 1e9, nomad_namespace=alloc["Namespace"],
                              nomad_job_id=alloc["JobID"], nomad_allocation_id=alloc["ID"], nomad_task=task)
        audience = identity["Audience"] or []
        claims["aud"] = audience[0] if len(audience) == 1 else audience
        return self.key.sign(claims), claims.get("exp")

    def tasks(self, alloc):
        """Returns the default identities of an alloc's tasks, which are signed once."""
        group = [g for g in alloc["Job"]["TaskGroups"] if g["Name"] == alloc["TaskGroup"]][0]
        for name in (t["Name"] for t in group["Tasks"]):
            if (alloc["ID"], name) not in self.signed:
                self.signed[alloc["ID"], name] = self.task(alloc, name)[0]
        return {t["Name"]: self.signed[alloc["ID"], t["Name"]] for t in group["Tasks"]}

    def caller(self, token):
        """Returns the identity of this AuthToken."""
        if not token:
            return Caller("anonymous")
        cluster = self.cluster
        for node in cluster.nodes.values():
            if node["SecretID"] == token:
                return Caller("node", node["ID"], by_secret=True)
        if token in cluster.tokens:
            return Caller("token", token=cluster.tokens[token])
        claims = self.key.verify(token) if token.count(".") == 2 else None
        if claims is None:
            return Caller("invalid")
        expired = "exp" in claims and time.time() > claims["exp"] + LEEWAY_S
        if "nomad_node_id" in claims:
            return Caller("node", claims["nomad_node_id"], claims, expired=expired)
        if claims["sub"].startswith("node-introduction:"):
            return Caller("intro", claims=claims, expired=expired)
        return Caller("workload", claims=claims, expired=expired)
