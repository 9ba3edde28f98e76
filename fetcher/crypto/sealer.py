"""Sealing a result while it streams: signed, encrypted, written as text.

Spec worker-and-events 5.3: ``hmac = HMAC-SHA256(external key, plaintext)`` and
``body = base64(nonce[12] || AES-256-GCM(storage key, plaintext) || tag[16])`` without line breaks.
"""

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Final, TypeAlias

import pybase64
from cryptography.hazmat.primitives.ciphers import Cipher
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM

from fetcher.crypto.keys import KEY_BYTES

NONCE_BYTES: Final = 12
TAG_BYTES: Final = 16

Buffer: TypeAlias = bytes | bytearray | memoryview

# What the cipher is given at once. Cipher and HMAC let other threads run and then wait for their
# turn, so they get few large pieces.
_PIECE_BYTES = 1024 * 1024
# What is written as text at once, a multiple of 3. It stays below the size from which the C library
# maps fresh pages for each allocation, which costs as much as the whole rest of sealing.
_SLICE_BYTES = 48 * 1024
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

    Blocking (some 2 ms a MiB) and of one owner. Its own memory is bounded, at 2.4 MiB, however long
    the document is; only a chunk over 1 MiB costs 4/3 of its size for as long as its text is used.
    """

    __slots__ = (
        "_encryptor",
        "_head",
        "_mac",
        "_pending",
        "_plaintext_bytes",
        "_sealed",
        "_text",
    )

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
        self._head = pybase64.b64encode(nonce)
        self._sealed = memoryview(bytearray(_CARRY_BYTES + _PIECE_BYTES + _SLACK_BYTES))
        self._text = memoryview(bytearray(_text_room(_PIECE_BYTES)))
        self._pending = 0
        self._plaintext_bytes = 0

    @property
    def hmac_hex(self) -> str:
        """The signature of all that was fed so far, 64 lower-case hex digits."""
        return self._mac.hexdigest()

    @property
    def plaintext_bytes(self) -> int:
        return self._plaintext_bytes

    def feed(self, chunk: Buffer) -> bytes | memoryview:
        """Seal ``chunk``; the text that is finished by it, which may be empty.

        ``chunk`` is bytes, or a contiguous view of bytes, and is not kept. A view that is answered
        is valid until the next call: whoever keeps the text copies it.
        """
        size = len(chunk)
        self._plaintext_bytes += size
        self._mac.update(chunk)
        if size <= _SLICE_BYTES:
            usable = self._encrypt(chunk)
            text = pybase64.b64encode(self._sealed[:usable])
            self._drop(usable)
            return self._take_head() + text
        out = self._text if size <= _PIECE_BYTES else memoryview(bytearray(_text_room(size)))
        head = self._take_head()
        place = len(head)
        out[:place] = head
        view = memoryview(chunk)
        for start in range(0, size, _PIECE_BYTES):
            usable = self._encrypt(view[start : start + _PIECE_BYTES])
            place = self._write_text(usable, out, place)
            self._drop(usable)
        return out[:place].toreadonly()

    def finish(self) -> bytes:
        """The rest of the text, with the tag. The sealer cannot be used again."""
        pending = bytes(self._sealed[: self._pending])
        rest = pending + self._encryptor.finalize() + self._encryptor.tag
        return self._take_head() + pybase64.b64encode(rest)

    def _encrypt(self, plain: Buffer) -> int:
        """Encrypt behind what is pending; how many pending bytes then fill groups of three."""
        behind = self._sealed[self._pending :]
        self._pending += self._encryptor.update_into(plain, behind)
        return self._pending - self._pending % 3

    def _write_text(self, usable: int, out: memoryview, place: int) -> int:
        for start in range(0, usable, _SLICE_BYTES):
            end = min(start + _SLICE_BYTES, usable)
            text = pybase64.b64encode(self._sealed[start:end])
            out[place : place + len(text)] = text
            place += len(text)
        return place

    def _drop(self, usable: int) -> None:
        left = self._pending - usable
        self._sealed[:left] = self._sealed[usable : self._pending]
        self._pending = left

    def _take_head(self) -> bytes:
        head, self._head = self._head, b""
        return head

    def __repr__(self) -> str:
        return f"<ResultSealer {self._plaintext_bytes} bytes>"


def _text_room(plaintext_bytes: int) -> int:
    """Enough for the text of a chunk, the nonce before it and what was pending."""
    return sealed_size(plaintext_bytes + _CARRY_BYTES)
