"""Names: spec engine 17.1, table 21.14."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fetcher.compat import normalized_field, normalized_table
from fetcher.compat.names import QualifiedName, SourceNames, parse_qualified, upper_case


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
    assert parse_qualified("t", "public") == QualifiedName("public", "t")
    assert parse_qualified("s.t", "public") == QualifiedName("s", "t")
    assert parse_qualified(" c.s.t ") == QualifiedName("s", "t")
    for name in ("", "  ", "a.b.c.d"):
        with pytest.raises(ValueError, match="table name"):
            parse_qualified(name)


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
