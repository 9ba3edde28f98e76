"""Names: spec engine 17.1, table 21.14."""

import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.compat import normalized_field, normalized_table
from fetcher.compat.names import (
    QualifiedName,
    SourceNames,
    shown_table,
    table_readings,
    upper_case,
)


@pytest.mark.parametrize(
    ("source_type", "name", "expected"),
    [
        ("POSTGRESQL", "public.tx", "tx"),
        ("POSTGRESQL", "PUBLIC.tx", "tx"),
        ("POSTGRESQL", "tx", "tx"),
        ("POSTGRESQL", "acct.inv", "acct.inv"),
        ("POSTGRESQL", "db.public.tx", "tx"),
        ("POSTGRESQL", "db.acct.inv", "acct.inv"),
        ("POSTGRESQL", "public.Users", "Users"),
        ("POSTGRESQL", " users ", "users"),
        ("POSTGRESQL", "", ""),
        ("POSTGRESQL", "a.b.c.d", "a.b.c.d"),
        ("POSTGRESQL", ".users", "users"),
        ("SQL_SERVER", "dbo.Users", "Users"),
        ("SQL_SERVER", "DBO.Users", "Users"),
        ("SQL_SERVER", "sales.o", "sales.o"),
        ("SQL_SERVER", "db1.dbo.u", "u"),
        ("ORACLE", "accounts", "ACCOUNTS"),
        ("ORACLE", "hr.emp", "HR.EMP"),
        ("ORACLE", "straße", "STRAßE"),
        ("MYSQL", "app.Users", "app.Users"),
        ("MYSQL", "def.app.users", "app.users"),
        ("MYSQL", " users ", "users"),
        ("unknown", "public.users", "public.users"),
        # parts between quotation marks
        ("POSTGRESQL", '"Users"', "Users"),
        ("POSTGRESQL", 'public."a.b"', '"a.b"'),
        ("POSTGRESQL", 'sales."2031.q1"', 'sales."2031.q1"'),
        ("POSTGRESQL", 'db."sales"."2031.q1"', 'sales."2031.q1"'),
        ("POSTGRESQL", '"we""ird"', 'we"ird'),
        ("POSTGRESQL", '"""q"""', '"""q"""'),
        ("POSTGRESQL", '" led "', '" led "'),
        ("POSTGRESQL", '"sales"."q1"', '"sales"."q1"'),
        ("POSTGRESQL", '"open', '"open'),
        ("POSTGRESQL", '""', '""'),
        ("POSTGRESQL", "a.", "a."),
        ("POSTGRESQL", ".", "."),
        ("SQL_SERVER", 'dbo."a.b"', '"a.b"'),
        ("ORACLE", 'hr."my.table"', 'HR."MY.TABLE"'),
        ("MYSQL", '"a"."b"', '"a"."b"'),
        ("MYSQL", '"b"', "b"),
        ("SQLITE", '"a.b"', "a.b"),
        ("SQLITE", '"a"."b"', '"a"."b"'),
        ("SQLITE", '""', '""'),
        ("MONGODB", '"a.b"', '"a.b"'),
        # no dots are parsed here: they belong to the name
        ("MONGODB", "a.b.c", "a.b.c"),
        ("MONGODB", " x ", " x "),
        ("SQLITE", "main.users", "main.users"),
        ("SQLITE", "Users", "Users"),
    ],
)
def test_tables_have_the_names_of_the_table(source_type: str, name: str, expected: str) -> None:
    assert normalized_table(name, SourceNames(source_type)) == expected


@pytest.mark.parametrize(
    ("source_type", "own_schema", "name", "expected"),
    [
        ("POSTGRESQL", "ops", "runs", "runs"),
        ("POSTGRESQL", "ops", "ops.runs", "runs"),
        ("POSTGRESQL", "ops", "OPS.runs", "runs"),
        ("POSTGRESQL", "Ops", "ops.Runs", "Runs"),
        ("POSTGRESQL", " ops ", "db.ops.runs", "runs"),
        ("POSTGRESQL", "ops", "public.runs", "public.runs"),
        ("POSTGRESQL", "ops", "acct.inv", "acct.inv"),
        ("POSTGRESQL", "  ", "public.runs", "runs"),
        ("POSTGRESQL", "PUBLIC", "public.runs", "runs"),
        ("SQL_SERVER", "sales", "sales.o", "o"),
        ("SQL_SERVER", "sales", "dbo.o", "dbo.o"),
        # an explicit schema stays in an Oracle name, and no session of MySQL has one
        ("ORACLE", "HR", "hr.staff", "HR.STAFF"),
        ("MYSQL", "app", "app.users", "app.users"),
        ("MONGODB", "app", "app.users", "app.users"),
        ("SQLITE", "main", "main.users", "main.users"),
    ],
)
def test_a_schema_that_the_connection_names_is_the_one_that_names_do_not_show(
    source_type: str, own_schema: str, name: str, expected: str
) -> None:
    """Spec datasources 6.2: it takes the default's place, so ``public.x`` is another table then."""
    assert normalized_table(name, SourceNames(source_type, own_schema)) == expected


@pytest.mark.parametrize(
    ("source_type", "expected"),
    [
        ("ORACLE", "BAL"),
        ("POSTGRESQL", "Bal"),
        ("SQL_SERVER", "Bal"),
        ("MYSQL", "Bal"),
        ("MONGODB", "Bal"),
        ("SQLITE", "Bal"),
        ("unknown", "Bal"),
    ],
)
def test_only_oracle_changes_fields(source_type: str, expected: str) -> None:
    assert normalized_field("Bal", SourceNames(source_type)) == expected


def test_qualified_names_have_one_to_three_parts() -> None:
    """What a name means first of all; without a schema it lies in the default one."""
    first = {name: table_readings(name)[0] for name in ("t", "s.t", " c.s.t ", '"a.b"."c""d"')}
    assert first == {
        "t": QualifiedName("", "t"),
        "s.t": QualifiedName("s", "t"),
        " c.s.t ": QualifiedName("s", "t"),
        '"a.b"."c""d"': QualifiedName("a.b", 'c"d'),
    }
    assert [table_readings(empty) for empty in ("", "  ", '""')] == [()] * 3
    postgresql = SourceNames("POSTGRESQL")
    assert postgresql.default_schema == "public"
    for name in ("", "a.", "a.b.c.d", "n" * 1025):
        assert normalized_table(name, postgresql) == name


@pytest.mark.parametrize(
    ("name", "readings"),
    [
        ("t", [("", "t")]),
        ("s.t", [("s", "t"), ("", "s.t")]),
        ("c.s.t", [("s", "t"), ("c", "s.t"), ("c.s", "t"), ("", "c.s.t")]),
        ('"s.t"', [("", "s.t")]),
        ('s."t"', [("s", "t")]),
        ('c.s."t.u"', [("s", "t.u")]),
        ('"a"b.c', [('"a"b', "c"), ("", '"a"b.c')]),
        ('"', [("", '"')]),
        ('"a".b.c.d', []),
        ('""', []),
        ("", []),
        ("s.", [("", "s.")]),
    ],
)
def test_readings_of_a_name(name: str, readings: list[tuple[str, str]]) -> None:
    assert [(each.schema, each.table) for each in table_readings(name)] == readings


@given(st.text(alphabet='ab."\0 ', max_size=12), st.text(alphabet='ab." ', max_size=12))
def test_a_listed_name_means_its_table_first(table: str, schema: str) -> None:
    if table:
        shown = shown_table(table, schema)
        first = table_readings(shown)[0]
        assert (first.schema, first.table) == (schema, table)
        for source in (SourceNames("POSTGRESQL", "other"), SourceNames("MYSQL")):
            assert table_readings(normalized_table(shown, source))[0] == first


@pytest.mark.parametrize(
    "name", ['"' * 1025, "a." * 513, '"a".' * 257, '""' * 512 + "a", "." * 1024]
)
def test_a_hostile_name_costs_little(name: str) -> None:
    assert sum(len(each.table) for each in table_readings(name)) <= 2 * len(name)
    assert len(normalized_table(name, SourceNames("POSTGRESQL"))) <= len(name)


def test_upper_casing_never_changes_the_length() -> None:
    assert upper_case("aßŉé1_") == "AßŉÉ1_"


@given(
    st.text(max_size=20),
    st.sampled_from(["POSTGRESQL", "SQL_SERVER", "ORACLE", "MYSQL", "MONGODB", "SQLITE"]),
    st.text(max_size=3),
)
def test_normalization_never_fails(name: str, source_type: str, own_schema: str) -> None:
    source = SourceNames(source_type, own_schema)
    assert len(normalized_table(name, source)) <= len(name)
    assert len(normalized_field(name, source)) == len(name)


def test_upper_case_is_that_of_each_character() -> None:
    """Of whole texts at once: a request may bring mebibytes of names."""
    everything = "".join(map(chr, range(sys.maxunicode + 1)))
    assert upper_case(everything) == "".join(
        upper if len(upper := one.upper()) == 1 else one for one in everything
    )
    assert upper_case("straße_é") == "STRAßE_É"
