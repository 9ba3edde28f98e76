"""The keys of spec datasources 15.3, and what the product would have stored with them."""

import base64
import hashlib
import os

from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fetcher.crypto.sealed_fields import SealedFieldKeys

HASH_SECRET = "hash-key-demo-01"
ENCRYPT_SECRET = "00112233445566778899aabbccddeeff" * 2
KEYS = SealedFieldKeys(hash_secret=HASH_SECRET, encrypt_secret=ENCRYPT_SECRET)
ANA = "AQIDBAUGBwgJCgsMOxxkgKR+yCDpmSOW39GhNSCusGVWL6sn"
"""``Ana Lima``, sealed."""


def sealed(text: str) -> str:
    nonce = os.urandom(12)
    cipher = AESGCM(bytes.fromhex(ENCRYPT_SECRET))
    return base64.b64encode(nonce + cipher.encrypt(nonce, text.encode(), None)).decode()


def hashed(text: str) -> str:
    """By the definition of HMAC, not by the library that we use."""
    key = HASH_SECRET.encode().ljust(64, b"\0")
    inner = hashlib.sha256(bytes(each ^ 0x36 for each in key) + text.encode()).digest()
    return hashlib.sha256(bytes(each ^ 0x5C for each in key) + inner).hexdigest()
