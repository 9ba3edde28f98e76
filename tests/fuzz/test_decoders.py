"""One count over all decoders: 10 000 cases in CI, 1 000 000 from FETCHER_TEST_SCALE=10 on.

``FETCHER_TEST_SEED`` replays what was drawn; ``FETCHER_TEST_FUZZ_DOCUMENT`` names the page that the
table of totals is written into.
"""

import base64
import os
import random
import secrets
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from tests.faults.matrix_outcome import write_into
from tests.fuzz.decoders import decoders
from tests.fuzz.decoders.decoder import FOLDERS, Decoder
from tests.scale import scale_factor
from tests.unit.api.test_decoder_properties import TOKENS
from tests.unit.crypto.mutations import mutated_bytes

NIGHTLY_SCALE: Final = 10
CASES: Final = 1_000_000 if scale_factor() >= NIGHTLY_SCALE else 10_000
BEGIN: Final = "<!-- the decoders: written by their test -->\n"
END: Final = "<!-- end of the decoders -->\n"
NUMBERS: Final = (0, 1, 127, 128, 255, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**63)
SHOWN_BYTES: Final = 2_000
WRITTEN_EVERY: Final = 50_000
"""Whoever stops it has the totals so far."""


Groups = Mapping[str, Mapping[str, Decoder]]


@pytest.fixture
def groups() -> Iterator[Groups]:
    yield decoders()
    while FOLDERS:
        shutil.rmtree(FOLDERS.pop())


def drawn(draw: random.Random, decoder: Decoder) -> bytes:
    """Good bytes with changes, with a hostile piece or number put in, two grown together, or none
    of them."""
    data = draw.choice(decoder.seeds)
    kind = draw.random()
    if kind < 0.05:
        return draw.randbytes(draw.randint(0, 200))
    if kind < 0.1:
        other = draw.choice(decoder.seeds)
        return data[: draw.randrange(len(data) + 1)] + other[draw.randrange(len(other) + 1) :]
    if kind < 0.5:
        at = draw.randrange(len(data) + 1)
        end = at + draw.choice((0, 0, 1, 4, 8))
        piece = draw.choice(TOKENS)
        if draw.random() < 0.5:
            size = draw.choice((1, 2, 4, 8))
            number = draw.choice(NUMBERS) % 2 ** (8 * size)
            piece = number.to_bytes(size, draw.choice(("little", "big")))
        data = data[:at] + piece + data[end:]
    return mutated_bytes(draw, data) if draw.random() < 0.7 else data


def test_each_decoder_reads_its_good_bytes_or_refuses_them_by_name(groups: Groups) -> None:
    """Which it must read: else nothing behind the first check would ever be reached."""
    tried = _by_name(groups)
    read = {name: [_outcome(each, seed) for seed in each.seeds] for name, each in tried.items()}
    # A signature is about all of a message, a handshake about what we say in it: both have their
    # own tests, tests/unit/crypto and tests/integration/datasources.
    never = {"event", "SQL Server's TLS"}
    assert {name for name, outcomes in read.items() if "read" not in outcomes} == never


def test_whatever_bytes_come_are_read_or_refused(groups: Groups) -> None:
    tried = _by_name(groups)
    seed = int(os.environ.get("FETCHER_TEST_SEED") or secrets.randbits(32))
    print(f"FETCHER_TEST_SEED={seed}")
    draw = random.Random(seed)  # noqa: S311 - cases, no secret
    found: dict[str, Counter[str]] = {name: Counter() for name in tried}
    names = list(tried)
    document = os.environ.get("FETCHER_TEST_FUZZ_DOCUMENT")
    for case in range(CASES):
        name = names[case % len(names)]
        found[name][_judged(tried[name], drawn(draw, tried[name]), name, seed)] += 1
        if document and (case + 1) % WRITTEN_EVERY == 0:
            write_into(Path(document), table(groups, found, seed), begin=BEGIN, end=END)
    assert sum(sum(each.values()) for each in found.values()) == CASES
    print(table(groups, found, seed))


def _by_name(groups: Groups) -> dict[str, Decoder]:
    tried = {name: each for group in groups.values() for name, each in group.items()}
    assert len(tried) == sum(map(len, groups.values()))
    return tried


def _judged(decoder: Decoder, data: bytes, name: str, seed: int) -> str:
    try:
        return _outcome(decoder, data)
    except BaseException as error:
        shown = base64.b64encode(data[:SHOWN_BYTES]).decode()
        error.add_note(f"{name}, seed {seed}, {len(data)} bytes, in base64: {shown}")
        raise


def _outcome(decoder: Decoder, data: bytes) -> str:
    try:
        answer = decoder.decode(data)
    except decoder.refusals as refused:
        return type(refused).__name__
    # a decoder that judges its refusals itself gives their code
    return answer if isinstance(answer, str) and answer[:4] in ("FET-", "413") else "read"


def table(groups: Groups, found: Mapping[str, Counter[str]], seed: int) -> str:
    cases = sum(sum(each.values()) for each in found.values())
    lines = [
        f"{cases} cases, seed {seed}:",
        "",
        "| what | decoders | cases | read | refused | otherwise |",
        "|---|---|---|---|---|---|",
    ]
    for group, tried in groups.items():
        outcomes = sum((found[name] for name in tried), Counter[str]())
        total, read = sum(outcomes.values()), outcomes["read"]
        lines.append(f"| {group} | {len(tried)} | {total} | {read} | {total - read} | 0 |")
    return "\n".join(lines)
