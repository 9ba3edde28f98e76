"""Stored passwords: ``base64(nonce[12] || AES-256-GCM || tag[16])``, spec worker-and-events 5.1."""

import base64
import os
from collections.abc import Callable

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fetcher.crypto.base64_text import decode_base64
from fetcher.crypto.keys import KEY_BYTES, KeyRing

_NONCE_BYTES = 12


class CredentialError(Exception):
    """A stored password cannot be read. The text never holds any part of it."""


class EncryptionKeyLength(CredentialError):
    def __init__(self, size: int) -> None:
        super().__init__(f"invalid encryption key length: got {size}, expected {KEY_BYTES} bytes")


class CiphertextNotBase64(CredentialError):
    def __init__(self) -> None:
        super().__init__("invalid ciphertext (base64): not standard base64 with padding")


class CiphertextTooShort(CredentialError):
    def __init__(self) -> None:
        super().__init__("ciphertext too short")


class CiphertextNotAuthentic(CredentialError):
    """Another key, or a changed or cut text."""

    def __init__(self) -> None:
        super().__init__("ciphertext failed authentication")


def encrypt_text(key: bytes, text: str, *, nonce: bytes) -> str:
    """Seal ``text`` without associated data; the nonce must never be used twice with one key."""
    sealed = _cipher(key).encrypt(nonce, text.encode("utf-8"), None)
    return base64.b64encode(nonce + sealed).decode("ascii")


def decrypt_text(key: bytes, stored: str) -> str:
    """Open what :func:`encrypt_text` made; raise a CredentialError."""
    raw = decode_base64(stored)
    if raw is None:
        raise CiphertextNotBase64
    if len(raw) < _NONCE_BYTES:
        raise CiphertextTooShort
    cipher = _cipher(key)
    try:
        return cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None).decode("utf-8")
    except (InvalidTag, UnicodeDecodeError):
        pass  # raised below, so that no foreign exception hangs on ours
    raise CiphertextNotAuthentic


class CredentialCipher:
    """Encrypts with the ring's current key, decrypts with the one a record names."""

    __slots__ = ("_new_nonce", "_ring")

    def __init__(self, ring: KeyRing, *, new_nonce: Callable[[int], bytes] = os.urandom) -> None:
        self._ring = ring
        self._new_nonce = new_nonce

    @property
    def key_version(self) -> str:
        """The label to store beside what :meth:`encrypt` answers."""
        return self._ring.version

    def encrypt(self, password: str) -> str:
        key = self._ring.current.credentials
        return encrypt_text(key, password, nonce=self._new_nonce(_NONCE_BYTES))

    def decrypt(self, stored: str, key_version: str) -> str:
        """Raise UnknownKeyVersion or a CredentialError.

        An empty label is unknown too: it marks a password that was never encrypted, which the
        caller must not bring here.
        """
        return decrypt_text(self._ring.get(key_version).credentials, stored)


def _cipher(key: bytes) -> AESGCM:
    if len(key) != KEY_BYTES:
        raise EncryptionKeyLength(len(key))
    return AESGCM(key)
