"""Hosts that the guard refuses, as a caller sees it (spec rest-api 17.2)."""

import pytest

from fetcher.datasources.host_guard import HostGuard, HostRefused, Rule
from fetcher.domain.json_values import JsonValue
from fetcher_engine import SourceFailure, Stage
from tests.unit.api.harness import (
    CONNECTIONS,
    a_body,
    a_connection,
    a_request,
    an_api,
    an_api_with,
)

FORBIDDEN = {
    "code": "FET-0414",
    "title": "Forbidden Host",
    "message": "Host is not a valid external database endpoint",
    "errorCode": "FET-0414",
}


@pytest.mark.parametrize(
    "host",
    ["127.0.0.1", "10.0.0.9", "169.254.169.254", "::1", "::ffff:10.0.0.9", " 127.0.0.1 "],
)
async def test_refused_literal_is_refused_alone(host: str) -> None:
    api = an_api(refuses_host=HostGuard().refuses_as_written)
    for body in (a_body(host=host), a_body(host=host, password=None)):
        answered = await api.create(body)
        assert answered.status == 400
        assert answered.json == FORBIDDEN
        assert host.encode() not in answered.raw


@pytest.mark.parametrize("method", ["POST", "PATCH"])
@pytest.mark.parametrize(
    ("host", "code"),
    [
        ("64:ff9b::7f00:1", "FET-0414"),
        ("2002:7f00:1::", "FET-0414"),
        ("::FFFF:a09:807", "FET-0414"),
        ("0:0:0:0:0:ffff:7f00:1", "FET-0414"),
        ("2130706433", "FET-0001"),
        ("0x7f000001", "FET-0001"),
        ("0x7f.1", "FET-0001"),
        ("0177.0.0.1", "FET-0001"),
        ("127.1", "FET-0001"),
        ("127.0.0.1.", "FET-0001"),
        ("[::1]", "FET-0001"),
        ("::1%lo", "FET-0001"),
        ("localhost.", "FET-0001"),
        ("１２７.0.0.1", "FET-0001"),  # noqa: RUF001 - full-width digits
        ("127。0。0。1", "FET-0001"),
        ("%31%32%37.0.0.1", "FET-0001"),
        ("a@127.0.0.1", "FET-0001"),
    ],
)
async def test_no_notation_of_a_refused_host_is_registered(
    method: str, host: str, code: str
) -> None:
    api = an_api(refuses_host=HostGuard().refuses_as_written)
    if method == "POST":
        answered = await api.create(a_body(host=host))
    else:
        made = await api.create(a_body(host="db.example.net"))
        answered = await api.call("PATCH", f"{CONNECTIONS}/{made.json['id']}", {"host": host})
    assert (answered.status, answered.json["code"]) == (400, code)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST", "db.internal", "x.local"])
async def test_name_that_no_answer_could_open_is_refused_at_creation(host: str) -> None:
    """Improved row: the reference registers it, and refuses it whenever it is opened."""
    answered = await an_api(refuses_host=HostGuard().refuses_as_written).create(a_body(host=host))
    assert answered.status == 400
    assert answered.json == FORBIDDEN


@pytest.mark.parametrize("host", ["8.8.8.8", "db.example.net", "no-such.example.net"])
async def test_public_literals_and_names_are_registered(host: str) -> None:
    answered = await an_api(refuses_host=HostGuard().refuses_as_written).create(a_body(host=host))
    assert answered.status == 201
    assert answered.json["host"] == host


@pytest.mark.parametrize("host", ["127.0.0.1", "10.0.0.9", "169.254.169.254", "::1"])
async def test_without_the_guard_every_literal_is_registered(host: str) -> None:
    assert (await an_api().create(a_body(host=host))).status == 201


@pytest.mark.parametrize(("method", "operation"), [("POST", "test"), ("GET", "schema")])
async def test_host_refused_when_opened(method: str, operation: str) -> None:
    api, connection = an_api(), a_connection()
    await api.records.connections.insert(connection)
    source = api.engines.source(connection.config_name)
    source.test_error = source.discovery_error = HostRefused(Rule.RANGE)
    answered = await api.call(method, f"{CONNECTIONS}/{connection.id}/{operation}")
    assert answered.status == 400
    assert answered.json == FORBIDDEN


async def test_host_refused_by_the_preflight_goes_before_one_that_is_down() -> None:
    api = await an_api_with("a_db", "b_db")
    api.engines.source("a_db").test_error = SourceFailure(Stage.TCP, "refused")
    api.engines.source("b_db").test_error = HostRefused(Rule.NAME)
    mapped: JsonValue = {"a_db": {"orders": ["id"]}, "b_db": {"orders": ["id"]}}
    answered = await api.ask(a_request(mappedFields=mapped))
    assert answered.status == 400
    assert answered.json == FORBIDDEN
