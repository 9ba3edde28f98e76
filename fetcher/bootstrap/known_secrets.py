"""What passes through a process and must never be seen in its log."""

from collections.abc import Iterator, Sequence

from fetcher.crypto.keys import KeyRing
from fetcher.log_secrets import LiveSecrets, live_secrets
from fetcher.ports import PasswordCipher


def keys_as_texts(ring: KeyRing) -> Iterator[str]:
    """The derived keys as whoever is given one writes it."""
    for keys in ring:
        for key in (keys.credentials, keys.internal_hmac, keys.external_hmac, keys.storage):
            yield key.hex()


def note_secrets(secrets: Sequence[str]) -> None:
    """Of tenants' places, as the Tenant Manager tells of them."""
    for secret in secrets:
        live_secrets.note_of_place(secret)


class NotingCipher:
    """Implements :class:`fetcher.ports.PasswordCipher`; what passes through is masked in logs."""

    def __init__(self, cipher: PasswordCipher, secrets: LiveSecrets) -> None:
        self._cipher = cipher
        self._secrets = secrets

    @property
    def key_version(self) -> str:
        return self._cipher.key_version

    def encrypt(self, password: str) -> str:
        self._secrets.note(password)
        return self._cipher.encrypt(password)

    def decrypt(self, stored: str, key_version: str) -> str:
        password = self._cipher.decrypt(stored, key_version)
        self._secrets.note(password)
        return password
