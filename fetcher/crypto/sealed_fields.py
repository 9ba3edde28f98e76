"""Fields that a product keeps sealed in its own database, and the hashes it finds them by
(spec datasources 15.2, 15.3): the algorithms are that product's, not ours.
"""

import hashlib
import hmac
import re
from dataclasses import dataclass, field
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fetcher.crypto.base64_text import decode_base64

_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_KEY_BYTES: Final = (16, 24, 32)
_HEX: Final = re.compile(r"[0-9a-fA-F]+", re.ASCII)


class SealedFieldKeyError(Exception):
    """A key is missing, or is none. It says nothing of the key."""


class HashKeyMissing(SealedFieldKeyError):
    """``CRYPTO_HASH_SECRET_KEY_PLUGIN_CRM`` is empty."""


class EncryptKeyMissing(SealedFieldKeyError):
    """``CRYPTO_ENCRYPT_SECRET_KEY_PLUGIN_CRM`` is empty."""


class EncryptKeyUnusable(SealedFieldKeyError):
    """The encryption key is not the hex text of 16, 24 or 32 bytes."""


class FieldCipher:
    """Opens ``base64(nonce[12] || AES-GCM || tag[16])``, without associated data."""

    __slots__ = ("_cipher",)

    def __init__(self, key: bytes) -> None:
        self._cipher = AESGCM(key)

    def open(self, stored: bytes) -> bytes | None:
        """The plain bytes, None for what this key did not seal: no exception tells of the text."""
        raw = decode_base64(stored.decode("ascii", "replace"))
        if raw is None or len(raw) < _NONCE_BYTES + _TAG_BYTES:
            return None
        try:
            return self._cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None)
        except InvalidTag:
            return None


class SearchHash:
    """HMAC-SHA256 in lower-case hex. The text counts as it is: neither trimmed nor folded."""

    __slots__ = ("_key",)

    def __init__(self, key: bytes) -> None:
        self._key = key

    def __call__(self, text: str) -> str:
        """Raise UnicodeEncodeError for half a surrogate pair, which no stored text holds."""
        return hmac.new(self._key, text.encode("utf-8"), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class SealedFieldKeys:
    """Both secrets as they were configured; empty ones fail only who needs them."""

    hash_secret: str = field(default="", repr=False)
    """Its UTF-8 bytes are the key."""
    encrypt_secret: str = field(default="", repr=False)
    """Hex text of the key."""

    def search_hash(self) -> SearchHash:
        """Raise HashKeyMissing."""
        if not self.hash_secret:
            raise HashKeyMissing
        return SearchHash(self.hash_secret.encode("utf-8"))

    def cipher(self) -> FieldCipher:
        """Raise EncryptKeyMissing, EncryptKeyUnusable, HashKeyMissing.

        Opening needs no hash. But a process that was given one of the two keys alone is set up by
        halves, and says so as the reference does.
        """
        if not self.encrypt_secret:
            raise EncryptKeyMissing
        self.search_hash()
        key = bytes.fromhex(self.encrypt_secret) if self._is_hex() else b""
        if len(key) not in _KEY_BYTES:
            raise EncryptKeyUnusable
        return FieldCipher(key)

    def _is_hex(self) -> bool:
        return len(self.encrypt_secret) % 2 == 0 and bool(_HEX.fullmatch(self.encrypt_secret))
