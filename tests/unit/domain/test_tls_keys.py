"""The private key of TLS settings, as stored and as used (spec rest-api 12.2)."""

import os
from dataclasses import replace

import pytest

from fetcher.crypto.credentials import CredentialCipher, CredentialError
from fetcher.crypto.keys import KeyRing, KeySet
from fetcher.domain.connections import TlsSettings
from fetcher.domain.tls_keys import is_sealed_tls_key, open_tls_key, seal_tls_key

KEY = "-----BEGIN PRIVATE KEY-----\nY2FuYXJ5\n-----END PRIVATE KEY-----\n"
PLAIN = TlsSettings(mode="verify-full", ca="CA", cert="CERT", key=KEY)


def a_cipher(*previous: KeySet, version: str = "1") -> CredentialCipher:
    own = KeySet.from_master(os.urandom(32), version=version)
    return CredentialCipher(KeyRing(own, previous))


def sealed(tls: TlsSettings, cipher: CredentialCipher) -> TlsSettings:
    return seal_tls_key(tls, encrypt=cipher.encrypt, key_version=cipher.key_version)


@pytest.mark.parametrize("version", ["1", "2026-03", "a:b", ""])
def test_key_is_stored_encrypted_and_names_its_version(version: str) -> None:
    calls: list[tuple[str, str]] = []

    def decrypt(stored: str, key_version: str) -> str:
        calls.append((stored, key_version))
        return stored.removeprefix("sealed+")

    stored = seal_tls_key(PLAIN, encrypt=lambda text: f"sealed+{text}", key_version=version)
    assert stored == replace(PLAIN, key=f"fetcher-encrypted:{version}:sealed+{KEY}")
    assert open_tls_key(stored, decrypt) == PLAIN
    assert calls == [(f"sealed+{KEY}", version)]


def test_real_cipher_hides_the_key_and_gives_it_back() -> None:
    cipher = a_cipher()
    stored = sealed(PLAIN, cipher)
    assert "PRIVATE" not in stored.key
    assert is_sealed_tls_key(stored.key)
    assert open_tls_key(stored, cipher.decrypt) == PLAIN
    assert sealed(PLAIN, cipher) != stored  # a nonce of its own each time


def test_key_in_clear_is_read_as_it_stands() -> None:
    """As the reference stores it."""
    assert not is_sealed_tls_key(KEY)
    assert open_tls_key(PLAIN, a_cipher().decrypt) == PLAIN


def test_no_key_stays_none() -> None:
    without = replace(PLAIN, key="")
    cipher = a_cipher()
    assert sealed(without, cipher) == without
    assert open_tls_key(without, cipher.decrypt) == without


def test_sealed_key_is_not_sealed_twice() -> None:
    cipher = a_cipher()
    stored = sealed(PLAIN, cipher)
    assert sealed(replace(stored, ca="NEW"), cipher) == replace(stored, ca="NEW")


def test_key_outlives_a_change_of_the_current_version() -> None:
    old = KeySet.from_master(os.urandom(32), version="1")
    stored = sealed(PLAIN, CredentialCipher(KeyRing(old)))
    assert open_tls_key(stored, a_cipher(old, version="2").decrypt) == PLAIN


def test_wrong_key_raises_what_the_cipher_raises() -> None:
    with pytest.raises(CredentialError):
        open_tls_key(sealed(PLAIN, a_cipher()), a_cipher().decrypt)


def test_neither_form_shows_in_a_repr() -> None:
    assert "canary" not in repr(replace(PLAIN, key="canary"))
