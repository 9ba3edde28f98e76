"""Databases in every encoding of PostgreSQL: names, values and filters that are not ASCII.

But MULE_INTERNAL, which the server itself does not convert to UTF-8: nobody gets in.
"""

from typing import Final

import pytest

from fetcher.datasources.postgresql.encodings import CODECS
from fetcher.domain.connections import Connection
from fetcher_engine import EngineError
from tests.integration.datasources.harness import (
    connection_to,
    database_in,
    document,
    engines,
    parsed,
    replacing,
    run_sql,
)
from tests.servers.addresses import SqlAddress

pytestmark = pytest.mark.integration

LETTERS: Final = {
    "UTF8": "\u00e9\u65e5",
    "SQL_ASCII": "\u00e9\u65e5",
    "EUC_JP": "\u65e5",
    "EUC_JIS_2004": "\u65e5",
    "EUC_CN": "\u4e2d",
    "EUC_KR": "\ud55c",
    "EUC_TW": "\u4e2d",
    **{
        encoding: next(
            letter
            for number in range(0xC0, 0x100)
            if (letter := bytes([number]).decode(codec, "ignore")).isalpha()
        )
        for encoding, codec in CODECS.items()
        if encoding != "SQL_ASCII"
    },
}


async def read(connection: Connection, letters: str) -> list[dict[str, object]]:
    """With the name of a table, those of columns, and a filter's value in these letters."""
    table, column = f't"{letters}', f"c {letters}"
    async with engines() as opened:
        data = await document(
            opened,
            connection,
            {table: [column, "id"]},
            filters={table: {column: {"in": [f"v\\'{letters}"], "like": [f"%{letters}%"]}}},
        )
    return parsed(data)[table]


@pytest.mark.parametrize("encoding", sorted(LETTERS))
async def test_names_values_and_filters(postgres: SqlAddress, encoding: str) -> None:
    letters = LETTERS[encoding]
    with database_in(postgres, encoding) as address:
        run_sql(
            address,
            f'CREATE TABLE "t""{letters}" (id int, "c {letters}" text)',
            f"""INSERT INTO "t""{letters}" VALUES (1, E'v\\\\\\'{letters}'), (2, 'v')""",
        )
        connection = connection_to(address)
        expected = [{f"c {letters}": f"v\\'{letters}", "id": 1}]
        assert await read(connection, letters) == expected
        assert await read(replacing(connection), letters) == expected


@pytest.mark.parametrize("replaces", [False, True])
async def test_a_filter_value_that_the_encoding_does_not_have_is_named(
    postgres: SqlAddress, replaces: bool
) -> None:
    with database_in(postgres, "WIN1252") as address:
        run_sql(address, 'CREATE TABLE "t\u00e9" (id int, "c\u00e9" text)')
        connection = connection_to(address)
        async with engines() as opened:
            with pytest.raises(EngineError) as caught:
                await document(
                    opened,
                    replacing(connection) if replaces else connection,
                    {"t\u00e9": ["id"]},
                    filters={"t\u00e9": {"c\u00e9": {"eq": ["\u65e5"]}}},
                )
    failure = caught.value
    assert (failure.reason, failure.table, failure.column) == (
        "invalid_filter_value",
        "t\u00e9",
        "c\u00e9",
    )


@pytest.mark.parametrize("replaces", [False, True])
async def test_an_invalid_text_beside_names_that_are_not_ascii(
    postgres: SqlAddress, replaces: bool
) -> None:
    with database_in(postgres, "WIN1252") as address:
        run_sql(
            address,
            'CREATE TABLE "t\u20ac" (id int, "c\u00e9" text)',
            "INSERT INTO \"t\u20ac\" VALUES (1, convert_from('\\x6181e9', 'WIN1252'))",
        )
        connection = connection_to(address)
        async with engines() as opened:
            if replaces:
                data = await document(opened, replacing(connection), {"t\u20ac": ["*"]})
                assert parsed(data) == {"t\u20ac": [{"id": 1, "c\u00e9": "a\ufffd\u00e9"}]}
                return
            with pytest.raises(EngineError) as caught:
                await document(opened, connection, {"t\u20ac": ["*"]})
    failure = caught.value
    assert (failure.reason, failure.table, failure.column) == (
        "invalid_text",
        "t\u20ac",
        "c\u00e9",
    )


@pytest.mark.parametrize("replaces", [False, True])
async def test_a_code_that_an_encoding_of_several_bytes_leaves_undefined_fails_the_job(
    postgres: SqlAddress, replaces: bool
) -> None:
    with database_in(postgres, "EUC_JP") as address:
        run_sql(
            address,
            "CREATE TABLE t (a text)",
            "INSERT INTO t VALUES (convert_from('\\xa9a1', 'EUC_JP'))",
        )
        connection = connection_to(address)
        async with engines() as opened:
            with pytest.raises(EngineError) as caught:
                await document(
                    opened, replacing(connection) if replaces else connection, {"t": ["a"]}
                )
    failure = caught.value
    assert (failure.stage, failure.reason, failure.table) == ("rows", "invalid_text", "t")
