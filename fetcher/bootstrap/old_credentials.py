"""Credentials under a former key whose time is over: opened all the same, and told of."""

import structlog

from fetcher.bootstrap.told import ToldOnce
from fetcher.crypto.keys import KeyRing
from fetcher.ports import PasswordCipher, UtcNow

log = structlog.get_logger(__name__)


class OldCredentialsCipher:
    """Implements :class:`fetcher.ports.PasswordCipher`; warns of such a key as often as
    :class:`ToldOnce` lets it (decision 043)."""

    def __init__(self, cipher: PasswordCipher, ring: KeyRing, *, now: UtcNow) -> None:
        self._cipher = cipher
        self._ring = ring
        self._now = now
        self._told = ToldOnce()

    @property
    def key_version(self) -> str:
        return self._cipher.key_version

    def encrypt(self, password: str) -> str:
        return self._cipher.encrypt(password)

    def decrypt(self, stored: str, key_version: str) -> str:
        password = self._cipher.decrypt(stored, key_version)
        has_ended = self._ring.has_ended(key_version, now=self._now())
        if has_ended and self._told.may_tell(key_version):
            log.warning(
                "credentials_under_ended_key", key_version=key_version, remedy="fetcher keys rotate"
            )
        return password
