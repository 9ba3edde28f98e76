"""What MariaDB takes for JSON: a strict parser reads it too, or the job is refused."""

import json
import random
import re

import pytest

from fetcher.datasources.mysql.query import FENCE, TableQuery
from fetcher.datasources.mysql.row_texts import RowTexts
from fetcher_engine import SourceFailure
from tests.integration.datasources.mariadb import rows_in
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration

SEEDS = (
    r'{"a":[1,2.5,-3e10,"x\n\u00e9",true,false,null,{}],"b":{"c":[]}}',
    r'[1.5,"\"q\\"]',
    "-0.5e-3",
    r'"\ud83d\ude00"',
    "[0,-0,10,1e400,123456789012345678901234567890]",
    '{"":""}',
    '[[[]],{"k":[{}]}]',
)
ALPHABET = '0123456789.-+eE"\\/bfnrtux{}[]:, \t\n\x01\x7ftrufalsnyNI\x0c\xa0é'
DOCUMENTS = 6000
CONTROL_IN_NAME = re.compile(rb'"[\x00-\x1f]')
"""The one thing that is taken for JSON by the check of a column alone: it comes as a text."""
BLANKS = ("", " ", "\t", "\n \r\n")


def changed(chance: random.Random) -> str:
    """One of the seeds with a few characters put in, replaced, taken out."""
    text = list(chance.choice(SEEDS))
    for _ in range(chance.randint(0, 3)):
        place, kind = chance.randrange(len(text)), chance.randrange(3)
        text[place : place + min(kind, 1)] = [] if kind == 2 else [chance.choice(ALPHABET)]
        text = text or ["1"]
    return "".join(text)


def is_strict(data: bytes) -> bool:
    def refuse(constant: str) -> object:
        raise ValueError(constant)

    try:
        json.loads(data, parse_int=str, parse_float=str, parse_constant=refuse)
    except ValueError:
        return False
    return True


def exact(data: bytes) -> object:
    return json.loads(data, parse_int=str, parse_float=str)


async def test_whatever_it_takes_as_stored_parses_strictly_or_is_refused(
    mariadb: SqlAddress,
) -> None:
    """With its blanks and line breaks, as a column of its type holds it."""
    chance = random.Random(20311130)  # noqa: S311 - the same documents at every run
    documents = sorted(
        {changed(chance) for _ in range(DOCUMENTS)}
        | {f"{before}{seed}{after}" for seed in SEEDS for before in BLANKS for after in BLANKS}
        | {seed.replace(",", f"{blank},{blank}") for seed in SEEDS[:2] for blank in BLANKS}
        | {*BLANKS, '"a\tb"', '"a\nb"', '{"a\r":1}', '{"\nb": 1}'}
    )
    taken: list[bytes] = []
    for start in range(0, len(documents), 1000):
        some = documents[start : start + 1000]
        asked = ", ".join(f"JSON_VALID(_utf8mb4 X'{each.encode().hex()}')" for each in some)
        (row,) = rows_in(mariadb, f"SELECT {asked}")
        taken += [each.encode() for each, valid in zip(some, row, strict=True) if valid]
    query = TableQuery(name="t", fields=("j",), statement="", filtered=(), unchecked_json=("j",))
    texts = RowTexts(query, max_cell_bytes=1000)
    mistakes = []
    refused = 0
    for cell in taken:
        try:
            data = texts.joined([b'{"j":' + FENCE + cell + FENCE + b"}"])
        except SourceFailure as failure:
            refused += 1
            if failure.reason != "invalid_json" or is_strict(cell):
                mistakes.append(cell)
        else:
            wanted = exact(cell) if is_strict(cell) else cell.decode()
            if not is_strict(data) or exact(data) != {"j": wanted} or b"\n" in data:
                mistakes.append(cell)
            if not is_strict(cell) and not CONTROL_IN_NAME.search(cell):
                mistakes.append(cell)
    assert mistakes == []
    assert refused > 30
    assert len(taken) - refused > 300


async def test_whatever_it_takes_parses_strictly_or_is_refused(mariadb: SqlAddress) -> None:
    chance = random.Random(20311129)  # noqa: S311 - the same documents at every run
    documents = sorted({changed(chance) for _ in range(DOCUMENTS)})
    taken: list[bytes] = []
    for start in range(0, len(documents), 1000):
        asked = ", ".join(
            f"CAST(JSON_COMPACT(_utf8mb4 X'{each.encode().hex()}') AS BINARY)"
            for each in documents[start : start + 1000]
        )
        (row,) = rows_in(mariadb, f"SELECT {asked}")
        taken += [cell for cell in row if cell is not None]
    query = TableQuery(name="t", fields=("j",), statement="", filtered=(), unchecked_json=("j",))
    texts = RowTexts(query, max_cell_bytes=1000)
    mistakes = []
    refused = 0
    for cell in taken:
        try:
            data = texts.joined([b'{"j":' + FENCE + cell + FENCE + b"}"])
        except SourceFailure as failure:
            refused += 1
            if failure.reason != "invalid_json" or is_strict(cell):
                mistakes.append(cell)
        else:
            if data != b'{"j":' + cell + b"}" or not is_strict(data):
                mistakes.append(cell)
    assert mistakes == []
    # or the documents were too tame to show anything
    assert refused > 30
    assert len(taken) - refused > 200
