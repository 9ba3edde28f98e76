"""Results sealed and opened: spec worker-and-events 5.3, table 12.2 rows C7 and C8, 10.3."""

import base64
import hashlib
import hmac
import itertools
import tracemalloc
from collections.abc import Iterator

import pytest
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from hypothesis import given
from hypothesis import strategies as st

from fetcher.crypto.opener import (
    OpenedResult,
    ResultDefect,
    ResultOpener,
    ResultRejected,
    open_result,
)
from fetcher.crypto.sealer import ResultSealer, SealingRefused, sealed_size
from tests.unit.crypto import vectors

KEYS = vectors.ring().current
MIB = 1024 * 1024


def a_sealer() -> ResultSealer:
    return ResultSealer(
        storage_key=KEYS.storage,
        hmac_key=KEYS.external_hmac,
        new_nonce=lambda size: vectors.RESULT_NONCE[:size],
    )


def sealed(*chunks: bytes) -> tuple[bytes, str]:
    sealer = a_sealer()
    parts = [bytes(sealer.feed(chunk)) for chunk in chunks]
    parts.append(sealer.finish())
    return b"".join(parts), sealer.hmac_hex


def sealed_in_one_call(plaintext: bytes) -> bytes:
    nonce = vectors.RESULT_NONCE
    return base64.b64encode(nonce + AESGCM(KEYS.storage).encrypt(nonce, plaintext, None))


def opened(
    text: bytes, plaintext: bytes, *, expected_hmac: str | None = None, size: int | None = None
) -> OpenedResult:
    return open_result(
        text,
        storage_key=KEYS.storage,
        hmac_key=KEYS.external_hmac,
        expected_hmac=expected_hmac or hmac.digest(KEYS.external_hmac, plaintext, "sha256").hex(),
        expected_size=len(plaintext) if size is None else size,
    )


def test_the_vector_plaintext_is_the_documented_bytes() -> None:
    assert len(vectors.RESULT_PLAINTEXT) == 103
    assert (
        hashlib.sha256(vectors.RESULT_PLAINTEXT).hexdigest()
        == "8834c9ae6c3cfa22a9ffe5cdf50af6edd37f9be33a1aa8af00732ced227cdd9a"
    )


def test_a_result_is_sealed_as_in_the_vectors() -> None:
    text, signature = sealed(vectors.RESULT_PLAINTEXT)
    assert text == vectors.RESULT_OBJECT
    assert signature == vectors.RESULT_HMAC
    assert base64.b64decode(text)[-16:].hex() == vectors.RESULT_TAG
    assert len(text) == sealed_size(103) == 176


@given(
    plaintext=st.binary(max_size=400),
    cuts=st.lists(st.integers(min_value=0, max_value=400), max_size=12),
)
def test_the_text_does_not_depend_on_the_chunks(plaintext: bytes, cuts: list[int]) -> None:
    edges = [0, *sorted(min(cut, len(plaintext)) for cut in cuts), len(plaintext)]
    chunks = [plaintext[start:end] for start, end in itertools.pairwise(edges)]
    text, signature = sealed(*chunks)
    assert text == sealed_in_one_call(plaintext)
    assert signature == hmac.digest(KEYS.external_hmac, plaintext, "sha256").hex()
    assert len(text) == sealed_size(len(plaintext))
    # C8: it opens to the bytes that were signed
    with opened(text, plaintext) as result:
        assert result.read() == plaintext


@pytest.mark.parametrize(
    "size",
    [48 * 1024 - 1, 48 * 1024, 48 * 1024 + 1, MIB - 1, MIB, MIB + 1, 3 * MIB + 2],
)
@pytest.mark.parametrize("wrap", [bytes, bytearray, memoryview])
def test_chunks_larger_than_the_working_buffers_are_split(
    size: int, wrap: type[bytes] | type[bytearray] | type[memoryview]
) -> None:
    plaintext = (bytes(range(251)) * (size // 251 + 1))[:size]
    sealer = a_sealer()
    parts = [bytes(sealer.feed(chunk)) for chunk in (b"x", wrap(plaintext), b"yz")]
    assert b"".join([*parts, sealer.finish()]) == sealed_in_one_call(b"x" + plaintext + b"yz")
    assert sealer.plaintext_bytes == size + 3


def test_an_empty_document_is_sealed_too() -> None:
    text, _ = sealed()
    assert text == sealed_in_one_call(b"")
    with opened(text, b"") as result:
        assert (result.read(), result.size_bytes) == (b"", 0)


def test_every_sealer_has_a_nonce_of_its_own() -> None:
    nonces = set()
    for _ in range(3):
        sealer = ResultSealer(storage_key=KEYS.storage, hmac_key=KEYS.external_hmac)
        nonces.add(bytes(sealer.feed(b"same"))[:12])
    assert len(nonces) == 3


def test_the_working_memory_does_not_grow_with_the_document() -> None:
    chunk = bytes(MIB)
    tracemalloc.start()
    try:
        sealer = a_sealer()
        for _ in range(8):
            sealer.feed(chunk)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2.6 * MIB


@pytest.mark.parametrize(
    ("storage_key", "hmac_key", "code"),
    [
        (b"", KEYS.external_hmac, "FET-0056"),
        (bytes(31), KEYS.external_hmac, "FET-0062"),
        (bytes(33), KEYS.external_hmac, "FET-0062"),
        (KEYS.storage, bytes(31), "FET-0061"),
    ],
)
def test_unusable_keys_are_refused(storage_key: bytes, hmac_key: bytes, code: str) -> None:
    # C7
    with pytest.raises(SealingRefused) as refused:
        ResultSealer(storage_key=storage_key, hmac_key=hmac_key)
    assert refused.value.code == code
    with pytest.raises(SealingRefused):
        open_result(
            b"", storage_key=storage_key, hmac_key=hmac_key, expected_hmac="", expected_size=0
        )


def defect_of(
    text: bytes, plaintext: bytes, *, expected_hmac: str | None = None, size: int | None = None
) -> ResultDefect:
    with pytest.raises(ResultRejected) as rejected:
        opened(text, plaintext, expected_hmac=expected_hmac, size=size)
    assert rejected.value.__cause__ is None
    return rejected.value.defect


def test_a_changed_bit_anywhere_is_rejected() -> None:
    plaintext = vectors.RESULT_PLAINTEXT
    raw = base64.b64decode(vectors.RESULT_OBJECT)
    for place in range(0, len(raw), 5):
        changed = bytearray(raw)
        changed[place] ^= 0x40
        assert defect_of(base64.b64encode(changed), plaintext) is ResultDefect.NOT_AUTHENTIC


def test_another_key_is_rejected() -> None:
    with pytest.raises(ResultRejected) as rejected:
        open_result(
            vectors.RESULT_OBJECT,
            storage_key=bytes(32),
            hmac_key=KEYS.external_hmac,
            expected_hmac=vectors.RESULT_HMAC,
            expected_size=103,
        )
    assert rejected.value.defect is ResultDefect.NOT_AUTHENTIC


@pytest.mark.parametrize("expected_hmac", ["0" * 64, vectors.RESULT_HMAC.upper(), "é", "\ud800"])
def test_another_signature_is_rejected(expected_hmac: str) -> None:
    found = defect_of(vectors.RESULT_OBJECT, vectors.RESULT_PLAINTEXT, expected_hmac=expected_hmac)
    assert found is ResultDefect.WRONG_HMAC


@pytest.mark.parametrize("size", [0, 102, 104, -1, -28, -29])
def test_another_size_is_rejected(size: int) -> None:
    found = defect_of(vectors.RESULT_OBJECT, vectors.RESULT_PLAINTEXT, size=size)
    assert found is ResultDefect.WRONG_SIZE


@pytest.mark.parametrize(
    ("text", "defect"),
    [
        (b"", ResultDefect.WRONG_SIZE),
        (vectors.RESULT_OBJECT[:12], ResultDefect.WRONG_SIZE),
        (vectors.RESULT_OBJECT[:100], ResultDefect.WRONG_SIZE),
        (vectors.RESULT_OBJECT[:-1], ResultDefect.NOT_BASE64),
        (vectors.RESULT_OBJECT + b"\n", ResultDefect.NOT_BASE64),
        (vectors.RESULT_OBJECT + b"AAAA", ResultDefect.NOT_BASE64),
        (b"AA==" + vectors.RESULT_OBJECT, ResultDefect.NOT_BASE64),
        (vectors.RESULT_OBJECT.replace(b"+", b"-"), ResultDefect.NOT_BASE64),
        (b"\xff" * 176, ResultDefect.NOT_BASE64),
    ],
)
def test_a_text_that_is_cut_or_foreign_is_rejected(text: bytes, defect: ResultDefect) -> None:
    assert defect_of(text, vectors.RESULT_PLAINTEXT) is defect


@pytest.mark.parametrize(("size", "bits"), [(100, 1), (100, 2), (102, 1), (102, 8)])
@pytest.mark.parametrize("step", [1, 4, 400])
def test_bits_that_padding_leaves_over_are_zero(size: int, bits: int, step: int) -> None:
    """A text with others decodes to the same bytes: it would be a changed object that opens."""
    plaintext = bytes(size)
    text, _ = sealed(plaintext)
    alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
    place = len(text.rstrip(b"=")) - 1
    changed = bytearray(text)
    changed[place] = alphabet[alphabet.index(text[place]) | bits]
    assert changed != text
    assert base64.b64decode(changed) == base64.b64decode(text)
    chunks = [bytes(changed[start : start + step]) for start in range(0, len(text), step)]
    with pytest.raises(ResultRejected) as rejected:
        open_result(
            chunks,
            storage_key=KEYS.storage,
            hmac_key=KEYS.external_hmac,
            expected_hmac=hmac.digest(KEYS.external_hmac, plaintext, "sha256").hex(),
            expected_size=size,
        )
    assert rejected.value.defect is ResultDefect.NOT_BASE64


def test_padding_before_the_end_is_rejected_however_it_is_fed() -> None:
    plaintext = bytes(3)
    text = b"AA==" + sealed(plaintext)[0]
    opener = ResultOpener(
        storage_key=KEYS.storage,
        hmac_key=KEYS.external_hmac,
        expected_hmac="",
        expected_size=len(plaintext),
    )

    def feed_by_groups() -> None:
        for place in range(0, len(text), 4):
            opener.feed(text[place : place + 4])

    with pytest.raises(ResultRejected):
        feed_by_groups()


def test_a_text_that_never_ends_is_rejected_at_its_size() -> None:
    taken = 0

    def endless() -> Iterator[bytes]:
        nonlocal taken
        while True:
            taken += 4096
            yield b"AAAA" * 1024

    with pytest.raises(ResultRejected) as rejected:
        open_result(
            endless(),
            storage_key=KEYS.storage,
            hmac_key=KEYS.external_hmac,
            expected_hmac="",
            expected_size=10_000,
        )
    assert rejected.value.defect is ResultDefect.WRONG_SIZE
    assert taken <= 20_000


@given(
    plaintext=st.binary(max_size=300),
    step=st.integers(min_value=1, max_value=50),
)
def test_a_result_opens_from_chunks_of_any_size(plaintext: bytes, step: int) -> None:
    text, signature = sealed(plaintext)
    with open_result(
        (text[start : start + step] for start in range(0, len(text), step)),
        storage_key=KEYS.storage,
        hmac_key=KEYS.external_hmac,
        expected_hmac=signature,
        expected_size=len(plaintext),
        memory_bytes=64,
    ) as result:
        assert result.read() == plaintext
        assert b"".join(result.chunks()) == plaintext


def test_a_large_result_is_spooled_encrypted_and_read_in_bounded_chunks() -> None:
    plaintext = b"confidential " * 100_000
    text, signature = sealed(plaintext)
    result = open_result(
        text,
        storage_key=KEYS.storage,
        hmac_key=KEYS.external_hmac,
        expected_hmac=signature,
        expected_size=len(plaintext),
        memory_bytes=1024,
    )
    with result:
        spool = result._spool
        spool.seek(0)
        assert b"confidential" not in spool.read()
        chunks = list(result.chunks())
        assert max(map(len, chunks)) <= 64 * 1024
        assert b"".join(chunks) == plaintext
        # changed between the verification and the reading
        spool.seek(5)
        spool.write(b"\x00\x01")
        with pytest.raises(ResultRejected):
            result.read()
        spool.seek(0)
        spool.truncate(100)
        with pytest.raises(ResultRejected):
            result.read()


def test_a_failing_source_leaves_no_spool_open() -> None:
    class StoreGone(Exception):
        pass

    def broken() -> Iterator[bytes]:
        yield vectors.RESULT_OBJECT[:64]
        raise StoreGone

    # an open temporary file would be a ResourceWarning, and thus an error
    with pytest.raises(StoreGone):
        open_result(
            broken(),
            storage_key=KEYS.storage,
            hmac_key=KEYS.external_hmac,
            expected_hmac=vectors.RESULT_HMAC,
            expected_size=103,
            memory_bytes=1,
        )


def test_no_representation_shows_a_key_or_the_data() -> None:
    with opened(vectors.RESULT_OBJECT, vectors.RESULT_PLAINTEXT) as result:
        assert repr(result) == "<OpenedResult 103 bytes>"
    assert repr(a_sealer()) == "<ResultSealer 0 bytes>"
