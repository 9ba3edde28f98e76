"""Opening a sealed result: nothing is released before all of it has been verified.

The sealed text is gathered (in memory up to a bound, then in an unlinked temporary file, still
encrypted) while tag, signature and size are checked. Only then may its plaintext be read, which
decrypts a second time: no plaintext ever lies on a disk, and none unverified leaves this module.
"""

import binascii
import hashlib
import hmac
from collections.abc import Iterable, Iterator
from enum import StrEnum
from tempfile import SpooledTemporaryFile
from typing import Final

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers import (
    AEADDecryptionContext,
    Cipher,
)
from cryptography.hazmat.primitives.ciphers.algorithms import AES
from cryptography.hazmat.primitives.ciphers.modes import GCM

from fetcher.crypto.sealer import NONCE_BYTES, TAG_BYTES, Buffer, check_result_keys

MEMORY_BYTES: Final = 8 * 1024 * 1024

# below the size from which the C library maps fresh pages for each allocation
_SLICE_BYTES = 64 * 1024
_OVERHEAD_BYTES = NONCE_BYTES + TAG_BYTES


class ResultDefect(StrEnum):
    NOT_BASE64 = "not_base64"
    WRONG_SIZE = "wrong_size"
    NOT_AUTHENTIC = "not_authentic"
    """Another storage key, or a changed object."""
    WRONG_HMAC = "wrong_hmac"
    """Decrypts, but it is not the document that the event or the job names."""


class ResultRejected(Exception):
    """A sealed result is not what it should be. Nothing of it was released."""

    def __init__(self, defect: ResultDefect) -> None:
        super().__init__(f"result rejected: {defect.value.replace('_', ' ')}")
        self.defect = defect


class OpenedResult:
    """A verified result. Use it as a context manager, or call :meth:`close`."""

    __slots__ = ("_key", "_nonce", "_size", "_spool")

    def __init__(
        self, spool: "SpooledTemporaryFile[bytes]", *, key: bytes, nonce: bytes, size: int
    ) -> None:
        self._spool = spool
        self._key = key
        self._nonce = nonce
        self._size = size

    @property
    def size_bytes(self) -> int:
        return self._size

    def chunks(self) -> Iterator[bytes]:
        """The plaintext from its beginning, in chunks of at most 64 KiB. May be called again.

        Raise ResultRejected at the end when the gathered text was changed behind our back.
        """
        decryptor = Cipher(AES(self._key), GCM(self._nonce)).decryptor()
        self._spool.seek(0)
        left = self._size
        while left:
            part = self._spool.read(min(left, _SLICE_BYTES))
            if not part:
                raise ResultRejected(ResultDefect.WRONG_SIZE)
            left -= len(part)
            yield decryptor.update(part)
        if not _is_authentic(decryptor, self._spool.read(TAG_BYTES)):
            raise ResultRejected(ResultDefect.NOT_AUTHENTIC)

    def read(self) -> bytes:
        """All of the plaintext at once, for documents known to be small."""
        return b"".join(self.chunks())

    def close(self) -> None:
        self._spool.close()

    def __enter__(self) -> "OpenedResult":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<OpenedResult {self._size} bytes>"


class ResultOpener:
    """Takes the sealed text in chunks of any size, as it comes from a store. Blocking."""

    __slots__ = (
        "_decryptor",
        "_expected_hmac",
        "_key",
        "_mac",
        "_nonce",
        "_raw",
        "_raw_left",
        "_size",
        "_spool",
        "_text",
    )

    def __init__(
        self,
        *,
        storage_key: bytes,
        hmac_key: bytes,
        expected_hmac: str,
        expected_size: int,
        memory_bytes: int = MEMORY_BYTES,
    ) -> None:
        """``expected_hmac`` and ``expected_size`` are those of the job or its event.

        Raise SealingRefused for unusable keys.
        """
        check_result_keys(storage_key=storage_key, hmac_key=hmac_key)
        self._key = storage_key
        self._expected_hmac = expected_hmac
        self._size = expected_size
        self._mac = hmac.new(hmac_key, digestmod=hashlib.sha256)
        self._raw_left = expected_size + _OVERHEAD_BYTES
        self._spool: SpooledTemporaryFile[bytes] = SpooledTemporaryFile(  # noqa: SIM115 - outlives us
            max_size=memory_bytes
        )
        self._decryptor: AEADDecryptionContext | None = None
        self._nonce = b""
        self._text = b""
        self._raw = b""

    def feed(self, chunk: Buffer) -> None:
        """Take the next part of the stored text.

        Raise ResultRejected as soon as it is no base64 or more than the size allows.
        """
        view = memoryview(chunk)
        for start in range(0, len(view), _SLICE_BYTES):
            self._take_text(self._text + view[start : start + _SLICE_BYTES])

    def finish(self) -> OpenedResult:
        """Verify size, tag and signature; raise ResultRejected. The opener is used up."""
        if self._text:
            raise self._rejected(ResultDefect.NOT_BASE64)
        if self._raw_left or self._size < 0 or self._decryptor is None:
            raise self._rejected(ResultDefect.WRONG_SIZE)
        if not _is_authentic(self._decryptor, self._raw):
            raise self._rejected(ResultDefect.NOT_AUTHENTIC)
        self._spool.write(self._raw)
        given = self._expected_hmac.encode("utf-8", "replace")
        if not hmac.compare_digest(given, self._mac.hexdigest().encode("ascii")):
            raise self._rejected(ResultDefect.WRONG_HMAC)
        return OpenedResult(self._spool, key=self._key, nonce=self._nonce, size=self._size)

    def close(self) -> None:
        """Drop what was gathered; needed only where :meth:`finish` was not reached."""
        self._spool.close()

    def _take_text(self, text: bytes) -> None:
        usable = len(text) - len(text) % 4
        self._text = text[usable:]
        raw = _decode(text[:usable])
        if raw is None:
            raise self._rejected(ResultDefect.NOT_BASE64)
        if len(raw) > self._raw_left:
            raise self._rejected(ResultDefect.WRONG_SIZE)
        self._raw_left -= len(raw)
        if usable // 4 * 3 != len(raw) and self._raw_left:
            # padding ends the text, wherever it stands
            raise self._rejected(ResultDefect.WRONG_SIZE)
        self._take_raw(self._raw + raw)

    def _take_raw(self, raw: bytes) -> None:
        if self._decryptor is None:
            if len(raw) < NONCE_BYTES:
                self._raw = raw
                return
            self._nonce, raw = raw[:NONCE_BYTES], raw[NONCE_BYTES:]
            self._decryptor = Cipher(AES(self._key), GCM(self._nonce)).decryptor()
        # the last 16 bytes seen so far may be the tag
        cut = max(0, len(raw) - TAG_BYTES)
        sealed, self._raw = raw[:cut], raw[cut:]
        self._spool.write(sealed)
        self._mac.update(self._decryptor.update(sealed))

    def _rejected(self, defect: ResultDefect) -> ResultRejected:
        self.close()
        return ResultRejected(defect)

    def __repr__(self) -> str:
        return "<ResultOpener>"


def open_result(
    sealed: Buffer | Iterable[Buffer],
    *,
    storage_key: bytes,
    hmac_key: bytes,
    expected_hmac: str,
    expected_size: int,
    memory_bytes: int = MEMORY_BYTES,
) -> OpenedResult:
    """Verify a whole stored object, given at once or in chunks.

    Raise ResultRejected, or SealingRefused for unusable keys; what ``sealed`` raises passes.
    """
    opener = ResultOpener(
        storage_key=storage_key,
        hmac_key=hmac_key,
        expected_hmac=expected_hmac,
        expected_size=expected_size,
        memory_bytes=memory_bytes,
    )
    chunks = (sealed,) if isinstance(sealed, bytes | bytearray | memoryview) else sealed
    opened = False
    try:
        for chunk in chunks:
            opener.feed(chunk)
        result = opener.finish()
        opened = True
    finally:
        if not opened:
            opener.close()
    return result


def _decode(text: bytes) -> bytes | None:
    try:
        raw = binascii.a2b_base64(text, strict_mode=True)
    except binascii.Error:
        return None
    # Padding leaves up to four bits over, which say nothing. They must be zero (RFC 4648, section
    # 3.5), or a changed text would open as the one that was stored.
    rest = len(raw) % 3
    if rest and binascii.b2a_base64(raw[-rest:], newline=False) != text[-4:]:
        return None
    return raw


def _is_authentic(decryptor: AEADDecryptionContext, tag: bytes) -> bool:
    try:
        decryptor.finalize_with_tag(tag)
    except (InvalidTag, ValueError):  # ValueError: a tag that is too short
        return False
    return True
