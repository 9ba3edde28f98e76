"""Keys: spec worker-and-events section 4, table 12.2 rows K1 to K6, vectors of 10.3."""

import base64
import hashlib
import hmac
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.crypto.keys import (
    KeyRing,
    KeySet,
    MasterKeyNotBase64,
    MasterKeyTooShort,
    PreviousKeyEnded,
    PreviousKeysMalformed,
    UnknownKeyVersion,
    decode_master_key,
    derive_key,
    generate_master_key,
)
from tests.unit.crypto.vectors import APP_ENC_KEY, MASTER

OTHER_MASTER = base64.b64encode(b"another-master-key-of-32-bytes!!").decode()


def hkdf_of_rfc_5869(master: bytes, info: bytes, size: int) -> bytes:
    """RFC 5869, sections 2.2 and 2.3, written out, without salt."""
    pseudorandom_key = hmac.digest(bytes(32), master, "sha256")
    block, output, counter = b"", b"", 1
    while len(output) < size:
        block = hmac.digest(pseudorandom_key, block + info + bytes([counter]), hashlib.sha256)
        output += block
        counter += 1
    return output[:size]


def test_the_four_keys_are_those_of_the_vectors() -> None:
    keys = KeyRing.from_text(APP_ENC_KEY).current
    assert {
        "credentials": keys.credentials.hex(),
        "internal": keys.internal_hmac.hex(),
        "external": keys.external_hmac.hex(),
        "storage": keys.storage.hex(),
    } == {
        "credentials": "787eb15ce64604ca326abb596722e78caa18159830ac4112e0ae63a7db9392d5",
        "internal": "bf6c3004b61f62ed66816d3d446aaaf13aa46119cae20e0466244e88bec1b530",
        "external": "ec9eedfd0b245950528714e5328ff2c2639ab32540a309f1cd68685ceaff9dfe",
        "storage": "873cea97251cb5a38a4a6dba0fb11225b9cecbcc4e0c5c4ca7c9b9db3cda32c2",
    }
    # K3: all differ, none is the master
    assert len({keys.credentials, keys.internal_hmac, keys.external_hmac, keys.storage}) == 4
    assert MASTER not in (keys.credentials, keys.internal_hmac, keys.external_hmac, keys.storage)


def test_a_master_of_44_bytes_is_used_whole() -> None:
    text = "RmV0Y2hlci1kZW1vLW1hc3Rlci1rZXktbWF0ZXJpYWwtMDEyMzQ1Njc4OSE="
    assert (
        KeyRing.from_text(text).current.external_hmac.hex()
        == "17586db67cab881b98b5c40efdbcfdda7a5ad54c0af2ab87bb202cf4ddcc7a27"
    )


def test_derivation_follows_rfc_5869() -> None:
    # K5: test case 3 of the RFC proves the writing-out above, which then judges ours
    assert hkdf_of_rfc_5869(b"\x0b" * 22, b"", 42).hex() == (
        "8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d9d201395faa4b61a96c8"
    )
    for size in (1, 32, 42, 8160):
        ours = derive_key(b"\x0b" * 22, context="some-context", size=size)
        assert ours == hkdf_of_rfc_5869(b"\x0b" * 22, b"some-context", size)


def test_the_extracted_key_of_the_vectors_expands_to_the_four_keys() -> None:
    prk = hmac.digest(bytes(32), MASTER, "sha256")
    assert prk.hex() == "46bd320605c5a6b6163ab70bc6345b92a5f908e79fe58979c23ebb47d1a5e307"
    keys = KeyRing.from_text(APP_ENC_KEY).current
    for context, key in (
        (b"fetcher-credentials-v1", keys.credentials),
        (b"fetcher-internal-hmac-v1", keys.internal_hmac),
        (b"fetcher-external-hmac-v1", keys.external_hmac),
        (b"fetcher-storage-encryption-v1", keys.storage),
    ):
        assert hmac.digest(prk, context + b"\x01", "sha256") == key


@pytest.mark.parametrize("size", [0, -1, 8161])
def test_a_size_outside_the_rfc_is_refused(size: int) -> None:
    with pytest.raises(ValueError, match="size"):
        derive_key(MASTER, context="c", size=size)


def test_an_empty_context_is_refused() -> None:
    with pytest.raises(ValueError, match="context"):
        derive_key(MASTER, context="")


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 0), ("  ", 0), (base64.b64encode(bytes(31)).decode(), 31)],
)
def test_a_short_master_is_refused_with_its_size(text: str, size: int) -> None:
    with pytest.raises(MasterKeyTooShort) as refused:
        KeyRing.from_text(text)
    assert str(refused.value) == f"master key too short: got {size} bytes, minimum 32 required"


@pytest.mark.parametrize(
    "text",
    [
        "not base64!" + APP_ENC_KEY,
        APP_ENC_KEY[:-1],  # padding missing
        APP_ENC_KEY.replace("A", "-", 1),  # the URL alphabet
        APP_ENC_KEY[:8] + " " + APP_ENC_KEY[8:],
        APP_ENC_KEY + "AAAA",
        "ключ" * 16,
    ],
)
def test_a_master_that_is_not_base64_is_refused_without_its_text(text: str) -> None:
    with pytest.raises(MasterKeyNotBase64) as refused:
        KeyRing.from_text(text)
    assert str(refused.value).startswith("invalid master key (base64): ")
    assert text not in str(refused.value)
    assert refused.value.__cause__ is None
    assert refused.value.__context__ is None


@pytest.mark.parametrize("size", [32, 44, 64])
def test_masters_of_32_bytes_and_more_are_accepted(size: int) -> None:
    assert len(decode_master_key(base64.b64encode(bytes(size)).decode())) == size


def test_surrounding_blanks_and_line_breaks_do_not_count() -> None:
    wrapped = f"  {APP_ENC_KEY[:10]}\r\n{APP_ENC_KEY[10:]}\n\t"
    assert decode_master_key(wrapped) == MASTER


def test_the_same_master_gives_the_same_keys_and_another_gives_others() -> None:
    first, second = KeyRing.from_text(APP_ENC_KEY), KeyRing.from_text(APP_ENC_KEY)
    other = KeyRing.from_text(OTHER_MASTER)
    assert first.current == second.current
    assert other.current.storage != first.current.storage


def test_keys_cannot_be_changed_by_their_users() -> None:
    # K6: what is handed out is immutable
    keys = KeyRing.from_text(APP_ENC_KEY).current
    assert isinstance(keys.storage, bytes)
    with pytest.raises(AttributeError):
        keys.storage = b"x"  # type: ignore[misc] # the assignment is what must fail


def test_a_generated_master_is_fresh_and_usable() -> None:
    first, second = generate_master_key(), generate_master_key()
    assert first != second
    assert len(decode_master_key(first)) == 32


@pytest.mark.parametrize(
    ("version", "expected"), [("", "1"), ("  ", "1"), (" v2 ", "v2"), ("2026-01", "2026-01")]
)
def test_a_blank_version_is_1(version: str, expected: str) -> None:
    assert KeyRing.from_text(APP_ENC_KEY, version=version).version == expected


def test_previous_keys_are_found_by_their_version_and_tried_after_the_current() -> None:
    ring = KeyRing.from_text(
        OTHER_MASTER, version="2", previous=f"1={APP_ENC_KEY}, 0 ={generate_master_key()}"
    )
    assert [key_set.version for key_set in ring] == ["2", "1", "0"]
    assert ring.current.version == "2"
    assert ring.get("1") == KeySet.from_master(MASTER, version="1")


@pytest.mark.parametrize("version", ["", "3", "V1"])
def test_an_unknown_version_is_refused(version: str) -> None:
    ring = KeyRing.from_text(APP_ENC_KEY, version="v1")
    with pytest.raises(UnknownKeyVersion, match=f"unsupported key version: {version}$"):
        ring.get(version)


@pytest.mark.parametrize(
    ("previous", "problem"),
    [
        (APP_ENC_KEY.rstrip("="), "previous key 1: expected <version>=<base64>"),
        (f"={APP_ENC_KEY}", "previous key 1: expected <version>=<base64>"),
        (f"1={OTHER_MASTER},", "previous key 2: expected <version>=<base64>"),
        (f"1={OTHER_MASTER},1={APP_ENC_KEY}", "previous key 2: its version is taken"),
        (f"now={OTHER_MASTER}", "previous key 1: its version is taken by another key"),
        ("1=AAAA", "previous key 1: master key too short: got 3 bytes, minimum 32 required"),
        # a key without a label: what stands before its padding must not be shown as the label
        (APP_ENC_KEY, "previous key 1: master key too short: got 0 bytes"),
        ("1=%%%", "previous key 1: invalid master key (base64)"),
    ],
)
def test_a_malformed_list_of_previous_keys_names_the_entry_and_no_key(
    previous: str, problem: str
) -> None:
    with pytest.raises(PreviousKeysMalformed) as refused:
        KeyRing.from_text(APP_ENC_KEY, version="now", previous=previous)
    assert str(refused.value).startswith(problem)
    assert APP_ENC_KEY[:12] not in str(refused.value)


def test_no_representation_shows_a_key() -> None:
    ring = KeyRing.from_text(APP_ENC_KEY)
    shown = f"{ring!r} {ring} {ring.current!r} {ring.current}"
    for secret in (MASTER, ring.current.storage, ring.current.external_hmac):
        assert secret.hex() not in shown
        assert repr(secret) not in shown
        assert base64.b64encode(secret).decode() not in shown


@given(st.binary(min_size=32, max_size=96))
def test_every_long_enough_master_survives_its_text_form(master: bytes) -> None:
    assert decode_master_key(base64.b64encode(master).decode()) == master


UNTIL = datetime(2026, 12, 31, tzinfo=UTC)
MOMENT = timedelta(microseconds=1)


@pytest.mark.parametrize(
    ("now", "has_ended"), [(UNTIL - MOMENT, False), (UNTIL, True), (UNTIL + MOMENT, True)]
)
def test_a_former_key_verifies_until_its_end_and_opens_after_it(
    now: datetime, has_ended: bool
) -> None:
    ring = KeyRing.from_text(
        APP_ENC_KEY, version="2", previous=f"1={OTHER_MASTER}", previous_until=UNTIL
    )
    assert ring.has_ended("1", now=now) is has_ended
    assert not ring.has_ended("2", now=now)
    assert not ring.has_ended("3", now=now)
    assert ring.get_verifying("2", now=now) is ring.current
    assert ring.get("1").version == "1"
    if has_ended:
        with pytest.raises(PreviousKeyEnded, match="version 1 verifies nothing since 2026-12-31"):
            ring.get_verifying("1", now=now)
    else:
        assert ring.get_verifying("1", now=now) is ring.get("1")


def test_without_an_end_a_former_key_verifies_for_ever() -> None:
    ring = KeyRing.from_text(APP_ENC_KEY, version="2", previous=f"1={OTHER_MASTER}")
    late = datetime(9999, 1, 1, tzinfo=UTC)
    assert ring.get_verifying("1", now=late) is ring.get("1")
    with pytest.raises(UnknownKeyVersion):
        ring.get_verifying("3", now=late)
