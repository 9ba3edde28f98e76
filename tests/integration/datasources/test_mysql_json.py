"""What a JSON column of MariaDB holds: embedded where a strict parser reads it, else a text."""

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest

from tests.integration.datasources.harness import document, engines
from tests.integration.datasources.mariadb import connection_to, own_database, rows_in, run_sql
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
BLANKS = ("", " ", "\t", "\n \r\n")


def changed(chance: random.Random) -> str:
    """One of the seeds with a few characters put in, replaced, taken out."""
    text = list(chance.choice(SEEDS))
    for _ in range(chance.randint(0, 3)):
        place, kind = chance.randrange(len(text)), chance.randrange(3)
        text[place : place + min(kind, 1)] = [] if kind == 2 else [chance.choice(ALPHABET)]
        text = text or ["1"]
    return "".join(text)


def is_strict(data: str) -> bool:
    def refuse(constant: str) -> object:
        raise ValueError(constant)

    try:
        json.loads(data, parse_int=str, parse_float=str, parse_constant=refuse)
    except ValueError:
        return False
    return True


def exact(data: str | bytes) -> Any:
    return json.loads(data, parse_int=str, parse_float=str)


@pytest.fixture
def database(mariadb: SqlAddress) -> Iterator[SqlAddress]:
    with own_database(mariadb) as address:
        yield address


async def test_whatever_is_stored_comes_exactly(database: SqlAddress) -> None:
    """Whether the database takes it for JSON or was told not to look."""
    chance = random.Random(20311130)  # noqa: S311 - the same documents at every run
    documents = sorted(
        {changed(chance) for _ in range(DOCUMENTS)}
        | {f"{before}{seed}{after}" for seed in SEEDS for before in BLANKS for after in BLANKS}
        | {seed.replace(",", f"{blank},{blank}") for seed in SEEDS[:2] for blank in BLANKS}
        | {*BLANKS, "", '"a\tb"', '"a\nb"', '{"a\r":1}', '{"\nb": 1}', '{"a":\x0161', '\x01!1"'}
    )
    values = ", ".join(f"({n}, X'{each.encode().hex()}')" for n, each in enumerate(documents))
    run_sql(
        database,
        "CREATE TABLE t (id int PRIMARY KEY, j json)",
        f"SET STATEMENT check_constraint_checks = 0 FOR INSERT INTO t VALUES {values}",
    )
    taken = {int(number) for (number,) in rows_in(database, "SELECT id FROM t WHERE JSON_VALID(j)")}
    async with engines() as opened:
        data = await document(opened, connection_to(database), {"t": ["id", "j"]})
    rows = exact(data)["src"]["t"]
    found = {int(row["id"]): row["j"] for row in rows}
    mistakes = [
        each
        for number, each in enumerate(documents)
        if found[number] != (exact(each) if is_strict(each) else each)
    ]
    assert mistakes == []
    assert len(rows) == len(documents)
    assert b"\n" not in data
    # or the documents were too tame to show anything
    strict = {number for number, each in enumerate(documents) if is_strict(each)}
    assert len(strict & taken) > 300
    assert len(taken - strict) > 30
    assert len(documents) - len(strict | taken) > 300
