"""Sealing a result while it streams: signed, encrypted, written as text.

Spec worker-and-events 5.3: ``hmac = HMAC-SHA256(external key, plaintext)`` and
``body = base64(nonce[12] || AES-256-GCM(storage key, plaintext) || tag[16])`` without line breaks.
"""

import binascii
import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Final, TypeAlias

from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM

from fetcher.crypto.keys import KEY_BYTES

NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16

Buffer: TypeAlias = bytes | bytearray | memoryview

_SLICE_BYTES = 256 * 1024
# update_into wants room for one more block than it may write
_SLACK_BYTES = 15
_CARRY_BYTES = 2


class SealingRefused(ValueError):
    """The keys cannot seal a result; ``code`` is the reference's (spec 5.3)."""

    def __init__(self, code: str, text: str) -> None:
        super().__init__(text)
        self.code = code


def sealed_size(plaintext_bytes: int) -> int:
    """The size of the stored text for a document of this size."""
    return 4 * ((plaintext_bytes + NONCE_BYTES + TAG_BYTES + 2) // 3)


def check_result_keys(*, storage_key: bytes, hmac_key: bytes) -> None:
    """Raise SealingRefused."""
    if not storage_key:
        raise SealingRefused("FET-0056", "encryption not configured: no storage key")
    if len(storage_key) != KEY_BYTES:
        raise SealingRefused(
            "FET-0062",
            f"invalid encryption key length: got {len(storage_key)}, expected {KEY_BYTES} bytes",
        )
    if len(hmac_key) < KEY_BYTES:
        raise SealingRefused(
            "FET-0061",
            f"signing key too short: got {len(hmac_key)} bytes, minimum {KEY_BYTES} required",
        )


class ResultSealer:
    """One object being sealed; every attempt needs a sealer, and thus a nonce, of its own.

    Blocking and of one owner: big documents belong in a worker thread. Its own memory is bounded
    (some 256 KiB) however large the chunks are; what it answers is 4/3 of what it was fed.
    """

    __slots__ = ("_buffer", "_carried", "_encryptor", "_head", "_mac", "_plaintext_bytes")

    def __init__(
        self,
        *,
        storage_key: bytes,
        hmac_key: bytes,
        new_nonce: Callable[[int], bytes] = os.urandom,
    ) -> None:
        """Raise SealingRefused."""
        check_result_keys(storage_key=storage_key, hmac_key=hmac_key)
        nonce = new_nonce(NONCE_BYTES)
        self._encryptor = Cipher(AES(storage_key), GCM(nonce)).encryptor()
        self._mac = hmac.new(hmac_key, digestmod=hashlib.sha256)
        # 12 is a multiple of 3: the nonce is text of its own
        self._head = binascii.b2a_base64(nonce, newline=False)
        self._buffer = memoryview(bytearray(_CARRY_BYTES + _SLICE_BYTES + _SLACK_BYTES))
        self._carried = 0
        self._plaintext_bytes = 0

    @property
    def hmac_hex(self) -> str:
        """The signature of all that was fed so far, 64 lower-case hex digits."""
        return self._mac.hexdigest()

    @property
    def plaintext_bytes(self) -> int:
        return self._plaintext_bytes

    def feed(self, chunk: Buffer) -> bytes:
        """Seal ``chunk``; the text that is finished by it, which may be empty.

        ``chunk`` is bytes, or a contiguous view of bytes, and is not kept.
        """
        size = len(chunk)
        self._plaintext_bytes += size
        self._mac.update(chunk)
        head, self._head = self._head, b""
        if size <= _SLICE_BYTES:
            text = self._seal_slice(chunk)
            return head + text if head else text
        view = memoryview(chunk)
        slices = [
            self._seal_slice(view[start : start + _SLICE_BYTES])
            for start in range(0, size, _SLICE_BYTES)
        ]
        return b"".join([head, *slices])

    def finish(self) -> bytes:
        """The rest of the text, with the tag. The sealer cannot be used again."""
        carried = bytes(self._buffer[: self._carried])
        rest = carried + self._encryptor.finalize() + self._encryptor.tag
        head, self._head = self._head, b""
        return head + binascii.b2a_base64(rest, newline=False)

    def _seal_slice(self, plain: Buffer) -> bytes:
        # the one or two bytes that did not fill a group of three stand before the new ones
        buffer = self._buffer
        total = self._carried + self._encryptor.update_into(plain, buffer[self._carried :])
        usable = total - total % 3
        text = binascii.b2a_base64(buffer[:usable], newline=False)
        self._carried = total - usable
        buffer[: self._carried] = buffer[usable:total]
        return text

    def __repr__(self) -> str:
        return f"<ResultSealer {self._plaintext_bytes} bytes>"
