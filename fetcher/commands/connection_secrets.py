"""What of a connection is stored encrypted: its password, and its TLS key beside it."""

from dataclasses import replace

from fetcher.domain.connections import Connection, TlsSettings
from fetcher.domain.tls_keys import (
    is_sealed_tls_key,
    is_sealed_under,
    open_tls_key,
    seal_tls_key,
)
from fetcher.ports import PasswordCipher


def with_sealed_tls_key(connection: Connection, cipher: PasswordCipher) -> Connection:
    """The record that may be stored; a key that is encrypted already stays as it is."""
    if connection.tls is None:
        return connection
    tls = seal_tls_key(connection.tls, encrypt=cipher.encrypt, key_version=cipher.key_version)
    return replace(connection, tls=tls)


def with_current_seals(connection: Connection, cipher: PasswordCipher) -> Connection:
    """The record with everything that is sealed under the cipher's key version, opened to prove it.

    An equal record where it is so already. A TLS key that the reference stored in clear stays so.
    Raise what the cipher raises for what it cannot open.
    """
    version = cipher.key_version
    password = connection.password_encrypted
    if password:
        plain = cipher.decrypt(password, connection.encryption_key_version)
        if connection.encryption_key_version != version:
            password = cipher.encrypt(plain)
    # Without a password the version says nothing; one that was never there stays so.
    has_version = bool(password or connection.encryption_key_version)
    return replace(
        connection,
        password_encrypted=password,
        encryption_key_version=version if has_version else "",
        tls=_with_current_seal(connection.tls, cipher),
    )


def _with_current_seal(tls: TlsSettings | None, cipher: PasswordCipher) -> TlsSettings | None:
    if tls is None or not is_sealed_tls_key(tls.key):
        return tls
    opened = open_tls_key(tls, cipher.decrypt)
    if is_sealed_under(tls.key, cipher.key_version):
        return tls
    return seal_tls_key(opened, encrypt=cipher.encrypt, key_version=cipher.key_version)
