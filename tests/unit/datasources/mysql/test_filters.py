"""Conditions as SQL: every operator, every kind of column (spec datasources 9, 19.7).

A value is digits by then: a number in decimal, a text or bytes in hexadecimal.
"""

import re
from decimal import Decimal

import hypothesis
import pytest
from hypothesis import strategies as st

from fetcher.datasources.filter_values import UnfitValue
from fetcher.datasources.mysql.filters import NoSuchFilter, predicate_sql
from fetcher.datasources.mysql.types import ColumnType, Kind, column_type
from fetcher.datasources.predicates import predicates_of

WILD = "%a\\_"
ATTACK = "x'; DROP TABLE t; --"
UNSIGNED = ColumnType(kind=Kind.BIGINT, held=range(2**64))
TEXT = ColumnType(kind=Kind.TEXT)
LATIN = ColumnType(kind=Kind.TEXT, is_plain=False)
LATIN_BIN = ColumnType(kind=Kind.TEXT, is_plain=False, is_sensitive=True)


def sql(of: ColumnType | Kind, condition: object) -> str:
    of = of if isinstance(of, ColumnType) else ColumnType(kind=of)
    return " AND ".join(predicate_sql("c", of, each) for each in predicates_of(condition))


def t(text: str) -> str:
    return f"_utf8mb4 X'{text.encode().hex()}'"


CASES: list[tuple[ColumnType | Kind, object, str]] = [
    (TEXT, {"eq": ["open"]}, f"(c IN ({t('open')}))"),
    (TEXT, {"eq": ["open", "late"]}, f"(c IN ({t('open')}, {t('late')}))"),
    (TEXT, {"eq": [None]}, "(c IS NULL)"),
    (TEXT, {"ne": [None]}, "(c IS NOT NULL)"),
    (TEXT, {"ne": ["a", "b"]}, f"(c NOT IN ({t('a')}, {t('b')}))"),
    (TEXT, {"in": ["a", None]}, f"(c IN ({t('a')}) OR c IS NULL)"),
    (TEXT, {"nin": ["a", None]}, f"(c NOT IN ({t('a')}) AND c IS NOT NULL)"),
    (TEXT, {"nin": ["a"]}, f"(c NOT IN ({t('a')}))"),
    (TEXT, {"in": []}, "FALSE"),
    (TEXT, {"nin": []}, "TRUE"),
    (TEXT, {"gt": ["m"]}, f"c > {t('m')}"),
    (TEXT, {"gte": ["m"]}, f"c >= {t('m')}"),
    (TEXT, {"lt": ["m"]}, f"c < {t('m')}"),
    (TEXT, {"lte": ["m"]}, f"c <= {t('m')}"),
    (TEXT, {"between": ["a", "m"]}, f"(c >= {t('a')} AND c <= {t('m')})"),
    (TEXT, {"like": [WILD]}, rf"(c LIKE {t(WILD)} ESCAPE '\\')"),
    (
        TEXT,
        {"like": ["a", "b"]},
        rf"(c LIKE {t('a')} ESCAPE '\\' OR c LIKE {t('b')} ESCAPE '\\')",
    ),
    (TEXT, {"is_null": [True]}, "c IS NULL"),
    (TEXT, {"is_null": [False]}, "c IS NOT NULL"),
    (TEXT, {"not_null": [True]}, "c IS NOT NULL"),
    (TEXT, {"eq": [""]}, "(c IN (_utf8mb4 X''))"),
    (TEXT, {"eq": [5]}, f"(c IN ({t('5')}))"),
    (TEXT, {"eq": [Decimal("1.10")]}, f"(c IN ({t('1.10')}))"),
    (TEXT, {"eq": [ATTACK]}, f"(c IN ({t(ATTACK)}))"),
    # what the column's own charset may not hold is compared in one that holds everything
    (LATIN, {"eq": ["ascii"]}, f"(c IN ({t('ascii')}))"),
    (LATIN, {"eq": ["é"]}, f"(CONVERT(c USING utf8mb4) IN ({t('é')}))"),
    (LATIN_BIN, {"gt": ["é"]}, f"CONVERT(c USING utf8mb4) COLLATE utf8mb4_bin > {t('é')}"),
    (Kind.NAMED, {"in": ["ok", "sad"]}, f"(c IN ({t('ok')}, {t('sad')}))"),
    (Kind.INTEGER, {"eq": [9007199254740993]}, "(c IN (9007199254740993))"),
    (Kind.INTEGER, {"gt": [Decimal("1.5")]}, "c > 1.5"),
    (Kind.INTEGER, {"eq": ["7"]}, "(c IN (7))"),
    (Kind.DECIMAL, {"lt": [10**80]}, "c < 1e80"),
    (Kind.DECIMAL, {"gt": [-(10**80)]}, "c > -1e80"),
    (UNSIGNED, {"eq": [18446744073709551615]}, "(c IN (18446744073709551615))"),
    (Kind.BITS, {"eq": [5]}, "(c IN (5))"),
    (Kind.FLAG, {"eq": [True, 0, "yes"]}, "(c IN (1, 0, 1))"),
    (Kind.DECIMAL, {"between": ["-0.5", Decimal("12.50")]}, "(c >= -0.5 AND c <= 12.50)"),
    (Kind.DECIMAL, {"eq": ["1e3"]}, "(c IN (1000))"),
    (
        Kind.DECIMAL,
        {"eq": ["0." + "1234567890" * 3 + "00"]},
        "(c IN (0.12345678901234567890123456789000))",
    ),
    (Kind.DOUBLE, {"eq": ["0.1"]}, "(c IN (0.1e0))"),
    (Kind.DOUBLE, {"eq": [Decimal("1e300")]}, "(c IN (1e+300))"),
    (Kind.FLOAT, {"eq": [Decimal("0.1")]}, "(c IN (0.10000000149011612e0))"),
    (Kind.BYTES, {"eq": ["vu8="]}, "(c IN (X'beef'))"),
    (
        Kind.UUID,
        {"eq": ["7F3C1F0E9C554B0E8F570C5A1F2D9B10"]},
        f"(c IN ({t('7f3c1f0e-9c55-4b0e-8f57-0c5a1f2d9b10')}))",
    ),
    (Kind.DATE, {"eq": ["2031-04-01"]}, "(c IN (DATE'2031-04-01'))"),
    (
        Kind.DATE,
        {"between": ["2031-03-01", "2031-03-31"]},
        "(c >= DATE'2031-03-01' AND c <= DATE'2031-03-31')",
    ),
    (Kind.DATE, {"gt": ["2031-03-31T12:00:00Z"]}, "c > TIMESTAMP'2031-03-31 12:00:00'"),
    (Kind.DATE, {"eq": ["2031-00-12"]}, f"(c IN ({t('2031-00-12')}))"),
    (
        Kind.DATETIME,
        {"between": ["2031-03-01", "2031-03-31"]},
        "(c >= TIMESTAMP'2031-03-01 00:00:00' AND c < TIMESTAMP'2031-04-01 00:00:00')",
    ),
    (
        Kind.DATETIME,
        {"between": ["2031-03-01", "9999-12-31"]},
        "(c >= TIMESTAMP'2031-03-01 00:00:00' AND c <= TIMESTAMP'9999-12-31 23:59:59.999999')",
    ),
    (
        Kind.TIMESTAMP,
        {"between": ["2031-03-01T00:00:00Z", "2031-03-31T00:00:00Z"]},
        "(c >= TIMESTAMP'2031-03-01 00:00:00' AND c <= TIMESTAMP'2031-03-31 00:00:00')",
    ),
    (Kind.DATETIME, {"lte": ["2031-03-31"]}, "c <= TIMESTAMP'2031-03-31 00:00:00'"),
    (
        Kind.TIMESTAMP,
        {"eq": ["2031-04-01T05:45:00.5+05:45"]},
        "(c IN (TIMESTAMP'2031-04-01 00:00:00.500000'))",
    ),
    (Kind.DECIMAL, {"lt": ["7" * 60 + ".12345"]}, f"c < {'7' * 60}.12345"),
    (Kind.DECIMAL, {"lt": [10**65]}, "c < 1e66"),
    (Kind.CLOCK, {"gt": ["-838:59:59.5"]}, "c > TIME'-838:59:59.5'"),
    (Kind.OTHER, {"eq": ["2001:db8::1"]}, f"(c IN ({t('2001:db8::1')}))"),
    (Kind.JSON, {"is_null": [True]}, "c IS NULL"),
    (Kind.GEOMETRY, {"not_null": [True]}, "c IS NOT NULL"),
    (
        Kind.INTEGER,
        {"lte": [500], "gt": [100]},
        "c > 100 AND c <= 500",
    ),
]


@pytest.mark.parametrize(("of", "condition", "text"), CASES)
def test_condition(of: ColumnType | Kind, condition: object, text: str) -> None:
    assert sql(of, condition) == text


@pytest.mark.parametrize(
    ("kind", "condition"),
    [
        (Kind.INTEGER, {"eq": ["abc"]}),
        (Kind.INTEGER, {"eq": [True]}),
        (Kind.INTEGER, {"eq": ["1e400"]}),
        (Kind.INTEGER, {"eq": ["NaN"]}),
        (Kind.INTEGER, {"eq": ["\u0663"]}),
        (Kind.INTEGER, {"like": ["1%"]}),
        (Kind.FLAG, {"eq": ["perhaps"]}),
        (Kind.INTEGER, {"lt": [10**80]}),
        (Kind.DECIMAL, {"eq": ["0." + "0" * 30 + "1"]}),
        (Kind.DECIMAL, {"eq": ["0." + "1234567890" * 4]}),
        (Kind.DECIMAL, {"eq": ["7" * 60 + "." + "0" * 29 + "1"]}),
        (Kind.DECIMAL, {"gt": ["-" + "7" * 65 + ".1"]}),
        (Kind.FLOAT, {"eq": ["1e39"]}),
        (Kind.DOUBLE, {"eq": ["1e999"]}),
        (Kind.TEXT, {"eq": [True]}),
        (Kind.TEXT, {"eq": ["\ud800"]}),
        (Kind.BYTES, {"eq": ["***"]}),
        (Kind.BYTES, {"eq": [5]}),
        (Kind.UUID, {"eq": ["zz"]}),
        (Kind.DATE, {"eq": ["2031-02-30"]}),
        (Kind.DATETIME, {"gt": ["yesterday"]}),
        (Kind.DATETIME, {"gt": ["2031-01-01T00:00:00.1234567Z"]}),
        (Kind.DATETIME, {"gt": ["0001-01-01T00:00:00+14:00"]}),
        (Kind.DATETIME, {"gt": [5]}),
        (Kind.CLOCK, {"eq": ["25:61"]}),
        (Kind.CLOCK, {"eq": ["839:00"]}),
        (Kind.CLOCK, {"eq": ["06:07'"]}),
    ],
)
def test_value_that_is_none_of_the_columns(kind: Kind, condition: object) -> None:
    with pytest.raises(UnfitValue) as caught:
        sql(kind, condition)
    assert str(caught.value) == ""


@pytest.mark.parametrize("kind", [Kind.JSON, Kind.GEOMETRY])
@pytest.mark.parametrize("operator", ["eq", "ne", "gt", "in", "nin"])
def test_documents_and_shapes_are_compared_with_nothing(kind: Kind, operator: str) -> None:
    with pytest.raises(NoSuchFilter):
        sql(kind, {operator: ["x"]})


SAFE = re.compile(
    r"\de[+-]?\d+|[()c ,<>=+.\d-]|IN|NOT|IS|NULL|OR|AND|FALSE|TRUE|LIKE|ESCAPE '\\\\'"
    r"|(?:_utf8mb4 )?X'[0-9a-f]*'|(?:DATE|TIMESTAMP|TIME)'[0-9:. -]*'"
    r"|CONVERT|USING utf8mb4|COLLATE utf8mb4_bin"
)
VALUES = st.none() | st.booleans() | st.integers() | st.decimals() | st.text(max_size=30)


@hypothesis.given(
    kind=st.sampled_from(list(Kind)),
    operator=st.sampled_from(["eq", "ne", "gt", "lt", "gte", "lte", "in", "nin", "like"]),
    value=VALUES,
    is_plain=st.booleans(),
)
def test_nothing_of_a_value_but_digits_reaches_the_statement(
    kind: Kind, operator: str, value: object, is_plain: bool
) -> None:
    try:
        text = sql(ColumnType(kind=kind, is_plain=is_plain), {operator: [value]})
    except Exception:  # noqa: BLE001 - a refusal is an answer too
        return
    assert SAFE.sub("", text) == ""


@pytest.mark.parametrize(
    ("data_type", "declared", "charset", "collation", "is_mariadb", "wanted"),
    [
        (
            "tinyint",
            "tinyint(1)",
            "",
            "",
            True,
            ColumnType(kind=Kind.FLAG, held=range(-128, 128), is_plain=False),
        ),
        (
            "tinyint",
            "tinyint(4)",
            "",
            "",
            True,
            ColumnType(kind=Kind.INTEGER, held=range(-128, 128), is_plain=False),
        ),
        ("bit", "bit(1)", "", "", True, ColumnType(kind=Kind.FLAG, held=range(2), is_plain=False)),
        (
            "bit",
            "bit(8)",
            "",
            "",
            True,
            ColumnType(kind=Kind.BITS, held=range(256), is_plain=False),
        ),
        (
            "varchar",
            "varchar(9)",
            "utf8mb4",
            "utf8mb4_0900_as_cs",
            False,
            ColumnType(kind=Kind.TEXT, is_sensitive=True),
        ),
        ("text", "text", "binary", "binary", False, ColumnType(kind=Kind.BYTES, is_plain=False)),
        (
            "char",
            "char(5)",
            "latin1",
            "latin1_bin",
            True,
            ColumnType(kind=Kind.TEXT, is_plain=False, is_sensitive=True),
        ),
        (
            "json",
            "json",
            "",
            "",
            False,
            ColumnType(kind=Kind.JSON, is_plain=False, is_native_json=True),
        ),
        (
            "json",
            "json",
            "utf8mb4",
            "utf8mb4_bin",
            True,
            ColumnType(kind=Kind.JSON, is_sensitive=True),
        ),
        (
            "int",
            "int(6) unsigned zerofill",
            "",
            "",
            True,
            ColumnType(kind=Kind.INTEGER, held=range(2**32), is_plain=False, is_padded=True),
        ),
        (
            "geomcollection",
            "geomcollection",
            "",
            "",
            False,
            ColumnType(kind=Kind.GEOMETRY, is_plain=False),
        ),
        ("vector", "vector(3)", "", "", False, ColumnType(kind=Kind.BYTES, is_plain=False)),
        ("of tomorrow", "of tomorrow", "", "", False, ColumnType(kind=Kind.OTHER, is_plain=False)),
    ],
)
def test_column_types(
    data_type: str,
    declared: str,
    charset: str,
    collation: str,
    is_mariadb: bool,
    wanted: ColumnType,
) -> None:
    found = column_type(
        data_type=data_type,
        declared=declared,
        charset=charset,
        collation=collation,
        is_mariadb=is_mariadb,
    )
    assert found == wanted
