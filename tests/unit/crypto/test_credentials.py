"""Stored passwords: spec worker-and-events 5.1, table 12.2 rows C1 to C6, vectors of 10.3."""

import base64
from collections.abc import Callable

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from fetcher.crypto.credentials import (
    CiphertextNotAuthentic,
    CiphertextNotBase64,
    CiphertextTooShort,
    CredentialCipher,
    CredentialError,
    EncryptionKeyLength,
    decrypt_text,
    encrypt_text,
)
from fetcher.crypto.keys import KeyRing, UnknownKeyVersion, generate_master_key
from tests.unit.crypto import vectors

KEY = vectors.ring().current.credentials
STORED = "oKGio6SlpqeoqaqrSx5dgaHg41f3BOfM+M2ZbWSvR+Zwdz8ZdVkN"


def vector_nonce(size: int) -> bytes:
    return bytes(range(0xA0, 0xA0 + size))


@pytest.mark.parametrize(
    ("password", "stored"),
    [("s3cr3t-P@ss", STORED), ("", "oKGio6SlpqeoqaqrcJr/XzX1WQ3zQQFYcoeVyw==")],
)
def test_passwords_are_stored_as_in_the_vectors(password: str, stored: str) -> None:
    cipher = CredentialCipher(vectors.ring(), new_nonce=vector_nonce)
    assert cipher.encrypt(password) == stored
    assert cipher.decrypt(stored, "1") == password


def test_the_same_password_is_stored_differently_each_time() -> None:
    # C1
    cipher = CredentialCipher(vectors.ring())
    first, second = cipher.encrypt("pw"), cipher.encrypt("pw")
    assert first != second
    assert cipher.decrypt(first, "1") == cipher.decrypt(second, "1") == "pw"


@pytest.mark.parametrize("password", ["", "пароль 密码 🔑", "a\nb\r\n", "x" * 100_000])
def test_every_text_survives(password: str) -> None:
    # C2, C6
    cipher = CredentialCipher(vectors.ring())
    stored = cipher.encrypt(password)
    assert cipher.decrypt(stored, cipher.key_version) == password
    assert len(base64.b64decode(stored)) == len(password.encode()) + 28


@given(st.text())
def test_texts_round_trip(password: str) -> None:
    cipher = CredentialCipher(vectors.ring())
    assert cipher.decrypt(cipher.encrypt(password), "1") == password


def test_a_version_outside_the_ring_is_refused() -> None:
    # C3
    cipher = CredentialCipher(KeyRing.from_text(vectors.APP_ENC_KEY, version="2"))
    for label in ("1", ""):
        with pytest.raises(UnknownKeyVersion, match=f"unsupported key version: {label}$"):
            cipher.decrypt(STORED, label)


def test_a_version_of_the_ring_is_read_and_the_current_one_written() -> None:
    # C3, with the key ring of the decisions
    old = CredentialCipher(vectors.ring()).encrypt("pw")
    rotated = KeyRing.from_text(
        generate_master_key(), version="2", previous=f"1={vectors.APP_ENC_KEY}"
    )
    cipher = CredentialCipher(rotated)
    assert cipher.key_version == "2"
    assert cipher.decrypt(old, "1") == "pw"
    assert cipher.decrypt(cipher.encrypt("pw"), "2") == "pw"
    with pytest.raises(CiphertextNotAuthentic):
        cipher.decrypt(old, "2")


def flipped_tag(raw: bytes) -> bytes:
    return raw[:-1] + bytes([raw[-1] ^ 1])


@pytest.mark.parametrize(
    ("change", "error", "text"),
    [
        (lambda _: b"", CiphertextTooShort, "ciphertext too short"),
        (lambda _: bytes(5), CiphertextTooShort, "ciphertext too short"),
        (lambda _: bytes(11), CiphertextTooShort, "ciphertext too short"),
        (lambda raw: raw[:12], CiphertextNotAuthentic, "ciphertext failed authentication"),
        (lambda raw: raw[:-1], CiphertextNotAuthentic, "ciphertext failed authentication"),
        (flipped_tag, CiphertextNotAuthentic, "ciphertext failed authentication"),
    ],
)
def test_a_damaged_ciphertext_is_refused(
    change: Callable[[bytes], bytes], error: type[CredentialError], text: str
) -> None:
    # C4
    damaged = base64.b64encode(change(base64.b64decode(STORED))).decode()
    with pytest.raises(error) as refused:
        decrypt_text(KEY, damaged)
    assert str(refused.value) == text
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


@pytest.mark.parametrize(
    "stored", ["%%%", STORED[:-1], STORED + "é", "====", STORED.replace("+", "-")]
)
def test_a_text_that_is_not_base64_is_refused(stored: str) -> None:
    with pytest.raises(CiphertextNotBase64) as refused:
        decrypt_text(KEY, stored)
    assert str(refused.value).startswith("invalid ciphertext (base64): ")
    assert refused.value.__context__ is None


def test_line_breaks_in_a_stored_text_do_not_count() -> None:
    assert decrypt_text(KEY, f"{STORED[:20]}\r\n{STORED[20:]}\n") == "s3cr3t-P@ss"


@pytest.mark.parametrize("size", [0, 16, 31, 33, 64])
def test_a_key_of_another_length_is_refused(size: int) -> None:
    # C5
    text = f"invalid encryption key length: got {size}, expected 32 bytes"
    with pytest.raises(EncryptionKeyLength, match=text):
        encrypt_text(bytes(size), "pw", nonce=bytes(12))
    with pytest.raises(EncryptionKeyLength, match=text):
        decrypt_text(bytes(size), STORED)


def test_bytes_that_are_no_text_are_refused() -> None:
    stored = base64.b64encode(bytes(12) + AESGCM(KEY).encrypt(bytes(12), b"\xff", None)).decode()
    with pytest.raises(CiphertextNotAuthentic):
        decrypt_text(KEY, stored)
