# SPDX-License-Identifier: Apache-2.0
"""Reads state.db of a running agent, with the secrets that are sealed in it."""
import contextlib
import ctypes
import json
import os
import shutil
import sqlite3

from . import case

FORMAT_BYTES, NONCE_BYTES, TAG_BYTES = 1, 16, 16


def query(node, sql, args=()):
    """Returns all rows. Only the supervisor may open the database, so a copy is read."""
    to = case.directory()
    for file in ("state.db", "state.db-wal"):
        if os.path.exists(node.data + "/state/" + file):
            shutil.copy(node.data + "/state/" + file, to)
    try:
        with contextlib.closing(sqlite3.connect(to + "/state.db")) as db:
            return db.execute(sql, args).fetchall()
    finally:
        shutil.rmtree(to)


def files_with(node, *texts):
    """Returns (file, text) for each of the texts that a file of the state directory has."""
    found = []
    for name in sorted(os.listdir(node.data + "/state")):
        with open(node.data + "/state/" + name, "rb") as f:
            data = f.read()
        found += [(name, text) for text in texts if text.encode() in data]
    return found


def unseal(node, about, sealed):
    """Opens a sealed value with seal.key."""
    with open(node.data + "/state/seal.key", "rb") as f:
        key = f.read()
    nettle = ctypes.CDLL("libnettle.so.8")
    context, size = ctypes.create_string_buffer(4096), ctypes.c_size_t
    nettle.nettle_siv_cmac_aes256_set_key(context, key)
    nonce, text = sealed[FORMAT_BYTES:FORMAT_BYTES + NONCE_BYTES], sealed[FORMAT_BYTES + NONCE_BYTES:]
    plain = ctypes.create_string_buffer(len(text))
    opened = nettle.nettle_siv_cmac_aes256_decrypt_message(
        context, size(NONCE_BYTES), nonce, size(len(about)), about.encode(), size(len(text) - TAG_BYTES), plain, text)
    case.equal((sealed[0], opened), (1, 1), "whether %s opens" % about)
    return plain.raw[:len(text) - TAG_BYTES]


def volume(node, name, namespace="default"):
    """Returns the volume as its row has it, with what is sealed in it."""
    text, secrets, _ = query(node, "SELECT json, secrets, contexts FROM volume WHERE namespace = ? AND id = ?", [namespace, name])[0]
    found = json.loads(text)
    case.equal([n for n in ("Secrets", "MountFlags", "PublishContext") if '"%s"' % n in text], [], "secrets that are not sealed")
    if secrets:
        texts = unseal(node, "volume secrets of %s/%s" % (namespace, name), secrets).decode().split("\0")[:-1]
        flags, pairs = texts[:texts.index("")], texts[texts.index("") + 1:]
        if flags:
            found.setdefault("MountOptions", {})["MountFlags"] = flags
        if pairs:
            found["Secrets"] = dict(zip(pairs[::2], pairs[1::2]))
    return found
