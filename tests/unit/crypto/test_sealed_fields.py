"""Sealed fields and their hashes: spec datasources 15.2, 15.3 and their rows of 19.11."""

import base64

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from fetcher.crypto.sealed_fields import (
    EncryptKeyMissing,
    EncryptKeyUnusable,
    HashKeyMissing,
    SealedFieldKeys,
)

HASH_SECRET = "hash-key-demo-01"
ENCRYPT_SECRET = "00112233445566778899aabbccddeeff" * 2
SEALED = b"AQIDBAUGBwgJCgsMOxxkgKR+yCDpmSOW39GhNSCusGVWL6sn"
KEYS = SealedFieldKeys(hash_secret=HASH_SECRET, encrypt_secret=ENCRYPT_SECRET)


def test_the_specs_hash() -> None:
    assert KEYS.search_hash()("98765432100") == (
        "721a5d198e491822a1a19307a40ca0bab12cbd350e76c82b5b2d861818cbe372"
    )


def test_a_text_is_hashed_as_it_is() -> None:
    hashed = KEYS.search_hash()
    spellings = ["ana", "Ana", " ana", "ana ", "ána", "a\u0301na"]
    assert len({hashed(text) for text in spellings}) == len(spellings)


def test_the_specs_ciphertext() -> None:
    assert KEYS.cipher().open(SEALED) == b"Ana Lima"


@pytest.mark.parametrize("size", [16, 24, 32])
def test_keys_of_three_sizes_open_what_they_sealed(size: int) -> None:
    key = bytes(range(size))
    sealed = base64.b64encode(bytes(12) + AESGCM(key).encrypt(bytes(12), b"plain", None))
    keys = SealedFieldKeys(hash_secret="x", encrypt_secret=key.hex().upper())
    assert keys.cipher().open(sealed) == b"plain"


@pytest.mark.parametrize(
    "stored",
    [
        b"Ana Lima",
        b"AQIDBA==",
        b"",
        SEALED[:-4],
        SEALED[:-1] + b"A",
        base64.b64encode(bytes(27)),
        base64.b64encode(bytes(28)),
        SEALED.replace(b"+", b"-"),
        SEALED + b"\xff",
        b"\xc3\xa9" * 30,
    ],
)
def test_what_is_no_ciphertext_of_this_key_is_none(stored: bytes) -> None:
    assert KEYS.cipher().open(stored) is None


def test_line_breaks_inside_are_no_part_of_it() -> None:
    assert KEYS.cipher().open(SEALED[:20] + b"\r\n" + SEALED[20:]) == b"Ana Lima"


@pytest.mark.parametrize("secret", ["xyz", "00", "0" * 33, "00 " * 16, "0x" + "0" * 30, "é" * 32])
def test_an_encryption_key_that_is_none(secret: str) -> None:
    with pytest.raises(EncryptKeyUnusable) as caught:
        SealedFieldKeys(hash_secret="x", encrypt_secret=secret).cipher()
    assert secret not in repr(caught.value)


def test_missing_keys_fail_who_needs_them() -> None:
    with pytest.raises(HashKeyMissing):
        SealedFieldKeys(encrypt_secret=ENCRYPT_SECRET).search_hash()
    with pytest.raises(EncryptKeyMissing):
        SealedFieldKeys(hash_secret=HASH_SECRET).cipher()
    with pytest.raises(EncryptKeyMissing):
        SealedFieldKeys().cipher()
    with pytest.raises(HashKeyMissing):
        SealedFieldKeys(encrypt_secret=ENCRYPT_SECRET).cipher()


def test_no_key_shows() -> None:
    shown = repr((KEYS, KEYS.cipher(), KEYS.search_hash()))
    assert HASH_SECRET not in shown
    assert ENCRYPT_SECRET not in shown
