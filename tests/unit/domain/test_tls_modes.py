"""Rows of spec datasources 19.2, and which modes warn (3.2)."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from fetcher.domain.connections import Connection, SourceType, TlsSettings
from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import new_connection_id
from fetcher.domain.json_values import JsonValue
from fetcher.domain.tls_modes import (
    TLS_MODES,
    TlsWeakness,
    refuse_stored_tls_mode,
    tls_mode_problem,
    tls_weakness,
)

NETWORKED = [each for each in SourceType if each is not SourceType.SQLITE]
NOW = datetime(2031, 1, 1, tzinfo=UTC)


def a_connection(source_type: SourceType) -> Connection:
    return Connection(
        id=new_connection_id(),
        config_name="src",
        type=source_type,
        host="db",
        port=1,
        database_name="d",
        username="u",
        password_encrypted="sealed",
        encryption_key_version="1",
        created_at=NOW,
        updated_at=NOW,
    )


@pytest.mark.parametrize("source_type", NETWORKED)
def test_every_mode_of_a_type_is_its_own(source_type: SourceType) -> None:
    assert all(tls_mode_problem(source_type, mode) is None for mode in TLS_MODES[source_type])


@pytest.mark.parametrize("source_type", NETWORKED)
def test_no_mode_and_an_empty_one_are_no_mistake_of_a_record(source_type: SourceType) -> None:
    connection = a_connection(source_type)
    for tls in (None, TlsSettings(mode="")):
        refuse_stored_tls_mode(replace(connection, tls=tls))
    with pytest.raises(FetcherError) as caught:
        refuse_stored_tls_mode(replace(connection, tls=TlsSettings(mode=" ")))
    assert caught.value.code == "FET-0413"


@pytest.mark.parametrize("source_type", NETWORKED)
@pytest.mark.parametrize(
    "mode",
    [
        "REQUIRE",
        "True",
        "SKIP-VERIFY",
        "true;x=1",
        "true&host=h",
        "true\0",
        "true\n",
        " true",
        "true ",
        "../x",
        "ｔrue",  # noqa: RUF001 - full-width
        "truе",  # noqa: RUF001 - Cyrillic
        "t" * 10_000,
    ],
)
def test_modes_are_exact(source_type: SourceType, mode: str) -> None:
    problem = tls_mode_problem(source_type, mode)
    assert problem is not None
    assert len(problem) < 250


@pytest.mark.parametrize(
    ("mode", "types"),
    [
        ("verify-ca", {"POSTGRESQL"}),
        ("verify-full", {"POSTGRESQL"}),
        ("require", {"POSTGRESQL"}),
        ("preferred", {"MYSQL"}),
        ("skip-verify", {"MYSQL", "ORACLE"}),
        ("disable", {"POSTGRESQL", "ORACLE", "SQL_SERVER", "MONGODB"}),
        ("strict", {"SQL_SERVER"}),
    ],
)
def test_each_type_has_modes_of_its_own(mode: str, types: set[str]) -> None:
    assert {each.value for each in NETWORKED if tls_mode_problem(each, mode) is None} == types


def test_the_modes_are_those_of_the_spec() -> None:
    """Spec datasources 3.1."""
    assert {each.value: set(modes) for each, modes in TLS_MODES.items()} == {
        "POSTGRESQL": {"disable", "allow", "prefer", "require", "verify-ca", "verify-full"},
        "MYSQL": {"false", "true", "skip-verify", "preferred"},
        "ORACLE": {"disable", "false", "true", "enable", "verify", "skip-verify"},
        "SQL_SERVER": {"disable", "false", "true", "strict"},
        "MONGODB": {"disable", "false", "true", "enable", "insecure"},
        "SQLITE": set(),
    }


def weak_modes(source_type: SourceType, **tls: str) -> dict[str, str]:
    """What each mode of the type, and none, is warned of."""
    found = {}
    for mode in ("", *TLS_MODES[source_type]):
        settings = TlsSettings(mode=mode, **tls) if mode else None
        connection = replace(a_connection(source_type), tls=settings)
        weakness = tls_weakness(connection, sqlserver_trusts_all=False)
        if weakness is not None:
            found[mode] = weakness.name
    return found


@pytest.mark.parametrize(
    ("source_type", "weak"),
    [
        ("POSTGRESQL", {"allow": "OPTIONAL", "prefer": "OPTIONAL", "require": "UNVERIFIED"}),
        ("MYSQL", {"skip-verify": "UNVERIFIED", "preferred": "OPTIONAL"}),
        ("ORACLE", {"skip-verify": "UNVERIFIED"}),
        (
            "SQL_SERVER",
            {"": "READABLE", "disable": "READABLE", "false": "LOGIN_ONLY"},
        ),
        ("MONGODB", {"insecure": "UNVERIFIED"}),
        ("SQLITE", {}),
    ],
)
def test_modes_that_prove_nothing_are_weak(source_type: str, weak: dict[str, str]) -> None:
    assert weak_modes(SourceType(source_type)) == weak


def test_a_ca_is_what_require_verifies_by_and_allow_and_prefer_do_not() -> None:
    assert weak_modes(SourceType.POSTGRESQL, ca="x") == {"allow": "OPTIONAL", "prefer": "OPTIONAL"}


@pytest.mark.parametrize(
    ("ca", "metadata", "by_setting", "weak"),
    [
        ("", {}, False, False),
        ("", {"trustServerCertificate": "true"}, False, True),
        ("", {"trustServerCertificate": True}, False, True),
        ("", {"trustServerCertificate": "false"}, False, False),
        ("", {}, True, True),
        ("x", {"trustServerCertificate": "true"}, True, False),
    ],
)
def test_sql_server_is_trusted_blindly_only_where_somebody_said_so(
    ca: str, metadata: dict[str, JsonValue], by_setting: bool, weak: bool
) -> None:
    connection = replace(
        a_connection(SourceType.SQL_SERVER), tls=TlsSettings(mode="true", ca=ca), metadata=metadata
    )
    found = tls_weakness(connection, sqlserver_trusts_all=by_setting)
    assert found is (TlsWeakness.UNVERIFIED if weak else None)


def test_the_right_spelling_is_suggested_and_the_modes_are_listed() -> None:
    modes = '(valid modes for MYSQL: "false", "preferred", "skip-verify", "true")'
    assert tls_mode_problem(SourceType.MYSQL, "Preferred") == (
        f'not an SSL mode of MYSQL, did you mean "preferred"? {modes}'
    )
    assert tls_mode_problem(SourceType.MYSQL, "wrong") == f"not an SSL mode of MYSQL {modes}"
