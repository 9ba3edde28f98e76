"""The private key among a connection's TLS settings, as it is stored (spec rest-api 12.2).

It is encrypted like the password. The stored text tells so itself and names its own key version,
since a new password moves the record's version and leaves this key as it is. The reference stores
the key in clear: such a text is read as it stands.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from fetcher.domain.connections import TlsSettings

_MARK: Final = "fetcher-encrypted"
"""No PEM text and no base64 begins so."""


def seal_tls_key(
    tls: TlsSettings, *, encrypt: Callable[[str], str], key_version: str
) -> TlsSettings:
    """What may be stored: ``key`` encrypted under ``key_version``, unless it is empty or already
    is encrypted (PATCH keeps what it does not change)."""
    if not tls.key or is_sealed_tls_key(tls.key):
        return tls
    return replace(tls, key=f"{_MARK}:{key_version}:{encrypt(tls.key)}")


def open_tls_key(tls: TlsSettings, decrypt: Callable[[str, str], str]) -> TlsSettings:
    """The settings to connect with. ``decrypt`` takes the encrypted text and its key version; what
    it raises comes out."""
    if not is_sealed_tls_key(tls.key):
        return tls
    # A version may hold a colon, base64 does not.
    version, _, encrypted = tls.key.removeprefix(f"{_MARK}:").rpartition(":")
    return replace(tls, key=decrypt(encrypted, version))


def is_sealed_under(key: str, key_version: str) -> bool:
    """Whether this text is what :func:`seal_tls_key` makes under this version."""
    return is_sealed_tls_key(key) and key.rpartition(":")[0] == f"{_MARK}:{key_version}"


def is_sealed_tls_key(key: str) -> bool:
    return key.startswith(f"{_MARK}:")
