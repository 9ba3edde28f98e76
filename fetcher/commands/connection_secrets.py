"""What of a connection is stored encrypted beside its password."""

from dataclasses import replace

from fetcher.domain.connections import Connection
from fetcher.domain.tls_keys import seal_tls_key
from fetcher.ports import PasswordCipher


def with_sealed_tls_key(connection: Connection, cipher: PasswordCipher) -> Connection:
    """The record that may be stored; a key that is encrypted already stays as it is."""
    if connection.tls is None:
        return connection
    tls = seal_tls_key(connection.tls, encrypt=cipher.encrypt, key_version=cipher.key_version)
    return replace(connection, tls=tls)
