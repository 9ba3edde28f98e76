"""The key ring: one master secret, four keys derived from it, and the rings of former masters.

Spec worker-and-events section 4. A label (key version) names a master; passwords and results are
stored beside the label of the master that sealed them.
"""

import base64
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDF

from fetcher.crypto.base64_text import decode_base64

MIN_MASTER_BYTES = 32
KEY_BYTES = 32
DEFAULT_KEY_VERSION = "1"

_MAX_HKDF_BYTES = 255 * 32  # RFC 5869, section 2.3: L <= 255 * HashLen


class MasterKeyError(ValueError):
    """A master key cannot be used. The text never holds any part of it."""


class MasterKeyNotBase64(MasterKeyError):
    def __init__(self) -> None:
        super().__init__("invalid master key (base64): not standard base64 with padding")


class MasterKeyTooShort(MasterKeyError):
    def __init__(self, size: int) -> None:
        super().__init__(
            f"master key too short: got {size} bytes, minimum {MIN_MASTER_BYTES} required"
        )


class PreviousKeysMalformed(MasterKeyError):
    """``APP_ENC_KEY_PREVIOUS`` is not a list of ``<version>=<base64>``.

    Entries are named by their place: a label could be a key that was pasted without one.
    """

    def __init__(self, place: int, problem: str) -> None:
        super().__init__(f"previous key {place}: {problem}")


class UnknownKeyVersion(LookupError):
    """No master in the ring has this label."""

    def __init__(self, version: str) -> None:
        super().__init__(f"unsupported key version: {version}")
        self.version = version


class PreviousKeyEnded(LookupError):
    """A former master verifies no longer: the time of ``APP_ENC_KEY_PREVIOUS_UNTIL`` has come."""

    def __init__(self, version: str, until: datetime) -> None:
        super().__init__(
            f"key version {version} verifies nothing since {until.isoformat()}"
            " (APP_ENC_KEY_PREVIOUS_UNTIL)"
        )
        self.version = version


def derive_key(master: bytes, *, context: str, size: int = KEY_BYTES) -> bytes:
    """HKDF-SHA256 without salt; ``context`` is the ASCII ``info`` (spec 4.2).

    Raise ValueError for an empty context or a size outside 1 to 8160.
    """
    if not context:
        raise ValueError("the key's context is empty")
    if not 0 < size <= _MAX_HKDF_BYTES:
        raise ValueError("the key's size is not between 1 and 8160 bytes")
    hkdf = HKDF(algorithm=SHA256(), length=size, salt=None, info=context.encode("ascii"))
    return hkdf.derive(master)


def decode_master_key(text: str) -> bytes:
    """The master's bytes, at least 32. Surrounding whitespace, CR and LF do not count.

    Raise MasterKeyNotBase64 or MasterKeyTooShort.
    """
    master = decode_base64(text.strip())
    if master is None:
        raise MasterKeyNotBase64
    if len(master) < MIN_MASTER_BYTES:
        raise MasterKeyTooShort(len(master))
    return master


def generate_master_key() -> str:
    """A fresh 32-byte master from the operating system, as ``APP_ENC_KEY`` wants it."""
    return base64.b64encode(os.urandom(MIN_MASTER_BYTES)).decode("ascii")


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySet:
    """The four keys of one master and its label; 32 bytes each."""

    version: str
    credentials: bytes = field(repr=False)
    internal_hmac: bytes = field(repr=False)
    external_hmac: bytes = field(repr=False)
    storage: bytes = field(repr=False)

    @classmethod
    def from_master(cls, master: bytes, *, version: str) -> "KeySet":
        """Raise MasterKeyTooShort below 32 bytes; a blank label becomes ``1``."""
        if len(master) < MIN_MASTER_BYTES:
            raise MasterKeyTooShort(len(master))
        return cls(
            version=version.strip() or DEFAULT_KEY_VERSION,
            credentials=derive_key(master, context="fetcher-credentials-v1"),
            internal_hmac=derive_key(master, context="fetcher-internal-hmac-v1"),
            external_hmac=derive_key(master, context="fetcher-external-hmac-v1"),
            storage=derive_key(master, context="fetcher-storage-encryption-v1"),
        )


class KeyRing:
    """The current keys, which sign and seal, and former ones, which only verify and open.

    From ``previous_until`` on the former ones verify nothing; stored credentials they still open.
    """

    __slots__ = ("_previous_until", "_sets")

    def __init__(
        self,
        current: KeySet,
        previous: Sequence[KeySet] = (),
        *,
        previous_until: datetime | None = None,
    ) -> None:
        """``previous_until`` has a zone; None is no end. Raise PreviousKeysMalformed when two sets
        carry the same label."""
        sets = (current, *previous)
        for place, key_set in enumerate(previous, start=1):
            if key_set.version in {earlier.version for earlier in sets[:place]}:
                raise PreviousKeysMalformed(place, "its version is taken by another key")
        self._sets = sets
        self._previous_until = previous_until

    @classmethod
    def from_text(
        cls,
        master: str,
        *,
        version: str = "",
        previous: str = "",
        previous_until: datetime | None = None,
    ) -> "KeyRing":
        """Read ``APP_ENC_KEY``, ``APP_ENC_KEY_VERSION``, ``APP_ENC_KEY_PREVIOUS`` and
        ``APP_ENC_KEY_PREVIOUS_UNTIL``.

        ``previous`` holds ``<version>=<base64>`` pairs, comma separated. Raise a MasterKeyError.
        """
        current = KeySet.from_master(decode_master_key(master), version=version)
        return cls(current, _previous_sets(previous), previous_until=previous_until)

    @property
    def current(self) -> KeySet:
        return self._sets[0]

    @property
    def version(self) -> str:
        """The label of the keys in use."""
        return self._sets[0].version

    def get(self, version: str) -> KeySet:
        """The keys under exactly this label; raise UnknownKeyVersion."""
        for key_set in self._sets:
            if key_set.version == version:
                return key_set
        raise UnknownKeyVersion(version)

    @property
    def previous_until(self) -> datetime | None:
        """The first moment at which former keys verify nothing; None: they do for ever."""
        return self._previous_until

    def has_ended(self, version: str, *, now: datetime) -> bool:
        """Whether this is the label of a former key that verifies nothing any more."""
        until = self._previous_until
        if until is None or now < until:
            return False
        return any(former.version == version for former in self._sets[1:])

    def get_verifying(self, version: str, *, now: datetime) -> KeySet:
        """The keys under this label, to verify what is signed or sealed with them.

        Raise UnknownKeyVersion, or PreviousKeyEnded for former ones whose time is over.
        """
        keys = self.get(version)
        if self._previous_until is not None and self.has_ended(version, now=now):
            raise PreviousKeyEnded(version, self._previous_until.astimezone(UTC))
        return keys

    def __iter__(self) -> Iterator[KeySet]:
        """Current first: the order in which to try them."""
        return iter(self._sets)

    def __repr__(self) -> str:
        return "<KeyRing>"


def _previous_sets(text: str) -> list[KeySet]:
    sets = []
    entries = text.split(",") if text.strip() else []
    for place, entry in enumerate(entries, start=1):
        version, separator, encoded = entry.partition("=")
        if not separator or not version.strip():
            raise PreviousKeysMalformed(place, "expected <version>=<base64>")
        master, problem = _read_previous(encoded)
        if master is None:
            raise PreviousKeysMalformed(place, problem)
        sets.append(KeySet.from_master(master, version=version))
    return sets


def _read_previous(encoded: str) -> tuple[bytes | None, str]:
    try:
        return decode_master_key(encoded), ""
    except MasterKeyError as refused:
        return None, str(refused)
