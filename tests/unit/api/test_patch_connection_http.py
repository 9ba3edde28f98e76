"""Change a connection: spec rest-api 7.6, 17.3."""

import json
from dataclasses import replace
from datetime import timedelta

import pytest

from fetcher.datasources.host_guard import HostGuard
from fetcher.domain.connections import SourceType, TlsSettings
from tests.unit.api.harness import (
    CONNECTIONS,
    START,
    BrokenCipher,
    a_connection,
    an_api,
)
from tests.unit.api.patching import ID, PEM, an_api_with_one, kept, patch

TLS = TlsSettings(mode="verify-ca", ca=PEM)


# --- what is changed, and what stays -----------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "changed"),
    [
        ({"configName": " hr_db "}, {"config_name": "hr_db"}),
        ({"host": "pg2.acme.test"}, {"host": "pg2.acme.test"}),
        ({"host": "10.9.8.7"}, {"host": "10.9.8.7"}),
        ({"port": 65535}, {"port": 65535}),
        ({"databaseName": " hr "}, {"database_name": "hr"}),
        ({"schema": "audit"}, {"schema": "audit"}),
        ({"schema": ""}, {"schema": ""}),
        ({"userName": " other "}, {"username": "other"}),
        ({"password": "n3w"}, {"password_encrypted": "sealed:w3n"}),
        ({"metadata": {"a": {"b": [1, None]}}}, {"metadata": {"a": {"b": [1, None]}}}),
        ({"metadata": {}}, {"metadata": {}}),
        ({"type": "MYSQL"}, {"type": SourceType.MYSQL}),
        ({"colour": 1, "port": 1}, {"port": 1}),
        ({"CONFIGNAME": "hr_db"}, {"config_name": "hr_db"}),
    ],
)
async def test_one_field_is_changed_and_all_others_stay(
    body: dict[str, object], changed: dict[str, object]
) -> None:
    before = a_connection(id=ID, metadata={"team": "bi"}, schema="public")
    api = await an_api_with_one(before)
    answered = await patch(api, body)
    assert answered.status == 200, answered.raw
    after = await kept(api)
    assert after == replace(before, **changed, updated_at=after.updated_at)  # type: ignore[arg-type] # the fields' own values
    assert after.updated_at > before.updated_at
    shown = await api.get(f"{CONNECTIONS}/{ID}")
    assert shown.json == answered.json
    assert b"n3w" not in answered.raw


async def test_updated_at_moves_on_although_the_clock_stands_or_goes_back() -> None:
    ahead = START + timedelta(hours=1)
    api = await an_api_with_one(a_connection(id=ID, updated_at=ahead))
    await patch(api, {"port": 1})
    first = (await kept(api)).updated_at
    await patch(api, {"port": 2})
    second = (await kept(api)).updated_at
    assert ahead < first < second < ahead + timedelta(seconds=1)


@pytest.mark.parametrize(
    "member",
    ["configName", "type", "host", "port", "databaseName", "schema", "userName", "password"],
)
async def test_null_keeps(member: str) -> None:
    before = a_connection(id=ID, schema="public", metadata={"a": 1}, tls=TLS)
    api = await an_api_with_one(before)
    answered = await patch(api, {member: None, "metadata": None, "port": 5433})
    assert answered.status == 200
    after = await kept(api)
    assert after == replace(before, port=5433, updated_at=after.updated_at)


@pytest.mark.parametrize("body", [{}, None, {"ssl": {}}, {"colour": "red"}, {"port": None}])
async def test_body_that_changes_nothing_is_refused(body: object) -> None:
    api = await an_api_with_one()
    answered = await api.call(
        "PATCH",
        f"{CONNECTIONS}/{ID}",
        headers={"Content-Type": "application/json"},
        data=json.dumps(body).encode(),
    )
    assert answered.problem == (400, "FET-0001", "Invalid payload")
    assert (
        answered.json["message"]
        == "empty request body: it has no member that a connection could take"
    )
    assert (await kept(api)).updated_at == START


async def test_empty_body_goes_before_an_unknown_id() -> None:
    answered = await patch(an_api(), {})
    assert answered.problem == (400, "FET-0001", "Invalid payload")


# --- what is refused ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("body", "code", "field"),
    [
        ({"host": ""}, "FET-0001", "host"),
        ({"host": "db_1"}, "FET-0001", "host"),
        ({"port": 0}, "FET-0001", "port"),
        ({"port": 99999}, "FET-0001", "port"),
        ({"port": -1}, "FET-0001", "port"),
        ({"type": ""}, "FET-0001", "type"),
        ({"type": "postgresql"}, "FET-0001", "type"),
        ({"type": "SQLITE"}, "FET-0001", "type"),
        ({"configName": ""}, "FET-0001", "configName"),
        ({"configName": "ab"}, "FET-0001", "configName"),
        ({"configName": "a" * 101}, "FET-0001", "configName"),
        ({"configName": "sales db"}, "FET-0402", "config_name"),
        ({"configName": "    "}, "FET-0402", "config_name"),
        ({"configName": " ab "}, "FET-0001", "config_name"),
        ({"databaseName": ""}, "FET-0402", "database_name"),
        ({"databaseName": "  "}, "FET-0402", "database_name"),
        ({"databaseName": "a" * 256}, "FET-0001", "database_name"),
        ({"databaseName": "a\nb"}, "FET-0001", "database_name"),
        ({"userName": ""}, "FET-0402", "username"),
        ({"schema": "a" * 256}, "FET-0001", "schema"),
        ({"password": ""}, "FET-0402", "password"),
        ({"password": "a" * 1025}, "FET-0001", "password"),
        ({"password": "a\0b"}, "FET-0001", "password"),
        ({"metadata": {str(n): n for n in range(65)}}, "FET-0001", "metadata"),
        ({"metadata": {"invalidText": "ignore"}}, "FET-0001", "metadata.invalidText"),
        ({"type": "ORACLE"}, "FET-0001", "metadata.serviceName"),
        ({"ssl": {"mode": "require", "ca": "no PEM"}}, "FET-0001", "ssl.ca"),
    ],
)
async def test_values_are_judged_as_at_creation(
    body: dict[str, object], code: str, field: str
) -> None:
    api = await an_api_with_one()
    before = await kept(api)
    answered = await patch(api, body)
    assert answered.status == 400
    assert answered.json["code"] == code
    assert answered.json["fields"].keys() == {field}
    assert ("entityType" in answered.json) == ((code, field) not in _OF_THE_BODY)
    assert await kept(api) == before


_OF_THE_BODY = {
    ("FET-0001", "host"),
    ("FET-0001", "port"),
    ("FET-0001", "type"),
    ("FET-0001", "configName"),
    ("FET-0402", "password"),
}


async def test_old_faults_do_not_stand_in_the_way_of_other_changes() -> None:
    """A record of the reference may break our bounds; what is changed must keep them."""
    odd = a_connection(
        id=ID,
        tls=TlsSettings(mode="require", ca="not checked then"),
        metadata={str(n): n for n in range(70)},
    )
    api = await an_api_with_one(odd)
    assert (await patch(api, {"host": "pg2.acme.test"})).status == 200
    answered = await patch(api, {"ssl": {"ca": "still no PEM"}})
    assert answered.json["fields"].keys() == {"ssl.ca"}
    answered = await patch(api, {"metadata": {str(n): n for n in range(71)}})
    assert answered.json["fields"].keys() == {"metadata"}


async def test_unassigned_connection_can_be_changed() -> None:
    """Improved row: the reference asks for ``product_name`` first."""
    api = await an_api_with_one(a_connection(id=ID, product_name=""))
    answered = await patch(api, {"port": 5433})
    assert (answered.status, answered.json["port"]) == (200, 5433)
    assert "productName" not in answered.json


async def test_type_of_another_kind_of_source_needs_what_it_needs() -> None:
    lite = a_connection(
        id=ID, type=SourceType.SQLITE, host="", port=0, username="", password_encrypted=""
    )
    api = await an_api_with_one(lite)
    answered = await patch(api, {"type": "MYSQL"})
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["port", "host", "username", "password_encrypted"]
    assert answered.json["message"] == "missing: port, host, userName, password"
    body = {"type": "MYSQL", "host": "db", "port": 1, "userName": "u", "password": "p"}
    assert (await patch(api, body)).status == 200


async def test_failing_encryption_changes_nothing() -> None:
    api = await an_api_with_one(cipher=BrokenCipher())
    before = await kept(api)
    answered = await patch(api, {"password": "n3w", "port": 1})
    assert answered.problem == (500, "FET-0002", "Internal Server Error")
    assert b"n3w" not in answered.raw
    assert await kept(api) == before


# --- the host guard ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "10.0.0.9", "169.254.169.254", "::1", "::ffff:10.0.0.9"]
)
async def test_refused_literal_is_refused_alone(host: str) -> None:
    api = await an_api_with_one(refuses_host=HostGuard().refuses_as_written)
    answered = await patch(api, {"host": host, "port": 0, "password": ""})
    assert answered.problem == (400, "FET-0414", "Forbidden Host")
    assert "fields" not in answered.json
    assert host.encode() not in answered.raw
    assert (await kept(api)).host == "pg1.acme.test"


async def test_denied_port_on_the_stored_literal_is_refused() -> None:
    guard = HostGuard(denied_ports=frozenset({6379}))
    api = await an_api_with_one(
        a_connection(id=ID, host="8.8.8.8"), refuses_host=guard.refuses_as_written
    )
    answered = await patch(api, {"port": 6379})
    assert answered.problem == (400, "FET-0414", "Forbidden Host")
    assert (await patch(api, {"port": 6380})).status == 200


async def test_host_that_is_not_touched_is_not_judged_anew() -> None:
    """It was stored before the guard was on, and is refused whenever it is opened."""
    api = await an_api_with_one(
        a_connection(id=ID, host="10.0.0.9"), refuses_host=HostGuard().refuses_as_written
    )
    assert (await patch(api, {"userName": "other"})).status == 200
