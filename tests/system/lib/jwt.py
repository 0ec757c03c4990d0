# SPDX-License-Identifier: Apache-2.0
"""Tokens that the embedded server signs: their parts, and openssl's judgement of their signatures.

    jwt.parts(token)           # [{"alg": "RS256", "kid": …}, {"nomad_task": …}]
    jwt.verify(node, token)    # True, or what openssl says
"""
import base64
import contextlib
import json
import os
import sqlite3
import subprocess

from . import case


def decode(text):
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def parts(token):
    """Returns the head and the claims."""
    return [json.loads(decode(part)) for part in token.split(".")[:2]]


def keys(node):
    """Returns the public keys of the node."""
    return node.ask("/.well-known/jwks.json")["keys"]


def der(tag, *content):
    content = b"".join(content)
    size = len(content)
    length = bytes([size]) if size < 128 else bytes([0x82]) + size.to_bytes(2, "big")
    return bytes([tag]) + length + content


def public_key(jwk):
    """Returns the key as SubjectPublicKeyInfo."""
    if jwk["kty"] == "OKP":
        return der(0x30, der(0x30, bytes.fromhex("06032b6570")), der(3, b"\0", decode(jwk["x"])))
    numbers = der(0x30, der(2, b"\0", decode(jwk["n"])), der(2, decode(jwk["e"])))
    return der(0x30, der(0x30, bytes.fromhex("06092a864886f70d0101010500")), der(3, b"\0", numbers))


def verify(node, token):
    """Returns whether openssl accepts the signature, by the key that the token names."""
    head, _ = parts(token)
    jwk = next(k for k in keys(node) if k["kid"] == head["kid"])
    case.equal((jwk["alg"], jwk["use"], head["typ"]), (head["alg"], "sig", "JWT"))
    text, _, signature = token.rpartition(".")
    base = case.directory()
    for name, content in (("key", public_key(jwk)), ("text", text.encode()), ("signature", decode(signature))):
        with open(os.path.join(base, name), "wb") as f:
            f.write(content)
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-keyform", "DER", "-inkey", "key", "-rawin", "-in", "text", "-sigfile", "signature"]
    if head["alg"] == "RS256":
        command[2:2] = ["-digest", "sha256"]
    done = subprocess.run(command, cwd=base, capture_output=True, text=True, check=False)
    return "Signature Verified Successfully" in done.stdout or done.stdout + done.stderr


def age_keys(node, days, state="active", algorithm="%"):
    """Makes the keys, or those of one algorithm, and all allocations older, in the database of an agent that does not run."""
    with contextlib.closing(sqlite3.connect(node.data + "/state/state.db")) as db:
        for name in ("CreateTime", "InactiveTime"):
            db.execute("UPDATE signing_key SET json = json_set(json, ?, json_extract(json, ?) - ?) WHERE json_extract(json, '$.State') = ? AND "
                       "json_extract(json, ?) > 0 AND json_extract(json, '$.Algorithm') LIKE ?",
                       ("$." + name, "$." + name, days * 24 * 3600 * 10**9, state, "$." + name, algorithm))
        db.execute("UPDATE alloc SET json = json_set(json, '$.CreateTime', json_extract(json, '$.CreateTime') - ?)", (days * 24 * 3600 * 10**9,))
        db.commit()


def active(node):
    """Returns {algorithm: id} of the active keys; there must be one of each algorithm."""
    found = [(k["Algorithm"], k["KeyID"]) for k in node.ask("/v1/operator/keyring/keys") if k["State"] == "active"]
    case.equal(sorted(alg for alg, _ in found), ["EdDSA", "RS256"], "active keys")
    return dict(found)
