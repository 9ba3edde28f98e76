"""POST /v1/management/connections: spec rest-api 17.1, with the decisions' changes."""

from typing import Any
from uuid import UUID

import pytest
from trio.testing import MockClock

from fetcher.api.services import HttpSettings
from fetcher.domain.errors import PortUnavailable
from tests.unit.api.harness import (
    CONNECTIONS,
    PRODUCT,
    BrokenCipher,
    a_body,
    an_api,
)

PEM = "-----BEGIN CERTIFICATE-----\nTUlJQg==\n-----END CERTIFICATE-----\n"
KEY = "-----BEGIN PRIVATE KEY-----\nTUlJQg==\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize("type_name", ["POSTGRESQL", "MYSQL", "MONGODB", "SQL_SERVER", "ORACLE"])
async def test_valid_create_of_each_type_answers_with_the_connection(
    type_name: str, autojump_clock: MockClock
) -> None:
    metadata = {"serviceName": "XE"} if type_name == "ORACLE" else {"team": "bi"}
    answered = await an_api().create(a_body(type=type_name, metadata=metadata, schema="public"))

    assert answered.status == 201
    body = answered.json
    assert UUID(body["id"]).version == 7
    assert answered.headers["Location"] == f"{CONNECTIONS}/{body['id']}"
    assert body == {
        "id": body["id"],
        "productName": "acme-reports",
        "configName": "sales_db",
        "type": type_name,
        "host": "pg1.acme.test",
        "port": 5432,
        "databaseName": "sales",
        "schema": "public",
        "userName": "reader",
        "metadata": metadata,
        "createdAt": "2026-03-14T09:26:53.123Z",
        "updatedAt": "2026-03-14T09:26:53.123Z",
    }
    assert b"s3cret" not in answered.raw
    assert b"terc3s" not in answered.raw


@pytest.mark.parametrize(
    "headers", [{}, {"X-Product-Name": "   "}, {"X-Product-Name": "bill@ing!"}]
)
async def test_product_header_is_required_and_judged(headers: dict[str, str]) -> None:
    answered = await an_api().create(a_body(), headers)
    assert answered.problem == (400, "FET-0403", "Invalid header")


@pytest.mark.parametrize(("length", "status"), [(100, 201), (101, 400)])
async def test_product_header_has_at_most_100_characters(length: int, status: int) -> None:
    answered = await an_api().create(a_body(), {"X-Product-Name": "p" * length})
    assert answered.status == status


async def test_product_name_is_stored_in_lower_case() -> None:
    answered = await an_api().create(a_body(), {"X-Product-Name": "Acme-Reports"})
    assert answered.json["productName"] == "acme-reports"


@pytest.mark.parametrize("body", [b"{bad", b"[]", b"", b"{} {}", b'"text"', b"1"])
async def test_what_is_no_json_object_is_an_invalid_payload(body: bytes) -> None:
    headers = PRODUCT | {"Content-Type": "application/json"}
    answered = await an_api().call("POST", CONNECTIONS, headers=headers, data=body)
    assert answered.problem == (400, "FET-0001", "Invalid payload")


@pytest.mark.parametrize("body", [b"{}", b"null", b'{"ssl":{}}', b'{"host":null}', b'{"x":1}'])
async def test_body_without_any_field_is_an_empty_body(body: bytes) -> None:
    headers = PRODUCT | {"Content-Type": "application/json"}
    answered = await an_api().call("POST", CONNECTIONS, headers=headers, data=body)
    assert answered.problem == (400, "FET-0001", "Invalid payload")
    assert (
        answered.json["message"]
        == "empty request body: it has no member that a connection could take"
    )


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("text/plain", 400),
        ("", 400),
        ("application/x-www-form-urlencoded", 400),
        ("application/json; charset=utf-8", 201),
        ("application/vnd.acme+json", 201),
    ],
)
async def test_only_json_media_types_are_read(content_type: str, status: int) -> None:
    headers = PRODUCT | {"Content-Type": content_type}
    answered = await an_api().create(a_body(), headers)
    assert answered.status == status
    if status == 400:
        assert answered.problem == (400, "FET-0001", "Invalid payload")


@pytest.mark.parametrize("port", [b'"5432"', b"5432.0", b"1e3", b"true", b"[1]"])
async def test_port_is_a_strict_integer(port: bytes) -> None:
    headers = PRODUCT | {"Content-Type": "application/json"}
    body = b'{"configName":"sales_db","port":' + port + b"}"
    answered = await an_api().call("POST", CONNECTIONS, headers=headers, data=body)
    assert answered.problem == (400, "FET-0001", "Invalid payload")
    assert "port" in answered.json["message"]


async def test_field_names_match_in_any_case_and_an_exact_match_wins() -> None:
    body = a_body(userName=None) | {"username": "other", "CONFIGNAME": "upper_db", "colour": "red"}
    answered = await an_api().create(body)
    assert answered.status == 201
    assert answered.json["userName"] == "other"
    assert answered.json["configName"] == "sales_db"
    assert "colour" not in answered.json


@pytest.mark.parametrize("name", ["abc", "x" * 100, "sales_db", "sales-db", "Sales_DB-9"])
async def test_config_names_that_are_accepted(name: str) -> None:
    assert (await an_api().create(a_body(configName=name))).json["configName"] == name


@pytest.mark.parametrize("name", ["ab", "x" * 101])
async def test_config_name_of_a_wrong_length_is_invalid(name: str) -> None:
    answered = await an_api().create(a_body(configName=name))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == ["config_name"]
    assert answered.json["entityType"] == "connection"


@pytest.mark.parametrize("name", ["sales db", "sales.db", "   ", "abç"])
async def test_config_name_with_other_characters_counts_as_missing(name: str) -> None:
    answered = await an_api().create(a_body(configName=name))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["config_name"]


@pytest.mark.parametrize("port", [1, 65535])
async def test_ports_at_the_ends_are_accepted(port: int) -> None:
    assert (await an_api().create(a_body(port=port))).json["port"] == port


@pytest.mark.parametrize(("port", "code"), [(0, "FET-0402"), (-1, "FET-0001"), (65536, "FET-0001")])
async def test_ports_beyond_the_ends_are_refused(port: int, code: str) -> None:
    answered = await an_api().create(a_body(port=port))
    assert (answered.status, answered.json["code"]) == (400, code)
    assert list(answered.json["fields"]) == ["port"]


async def test_missing_fields_are_all_named_and_only_they() -> None:
    body = a_body(password=None, userName="", databaseName=None, host="db_1")
    answered = await an_api().create(body)
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["databaseName", "userName", "password"]
    assert "entityType" not in answered.json


@pytest.mark.parametrize(
    "type_name", ["SQLITE", "postgresql", "DB2", "SQLSERVER", "postgres", " MYSQL ", " "]
)
async def test_unknown_type_is_an_invalid_field(type_name: str) -> None:
    answered = await an_api().create(a_body(type=type_name))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == ["type"]


@pytest.mark.parametrize("type_name", ["", None])
async def test_no_type_is_a_missing_field(type_name: str | None) -> None:
    answered = await an_api().create(a_body(type=type_name))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["type"]


async def test_missing_user_goes_before_an_unknown_type() -> None:
    answered = await an_api().create(a_body(type="DB2", userName=None))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["userName"]


async def test_sqlite_that_is_off_says_which_setting_turns_it_on() -> None:
    body = {"configName": "shop", "type": "SQLITE", "databaseName": "shop/main.db"}
    answered = await an_api().create(body)
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert answered.json["fields"]["type"].startswith(
        "the type SQLITE is off here: DATASOURCE_SQLITE_DIR; must be one of "
    )


async def test_name_that_cannot_be_one_is_told_beside_what_is_missing() -> None:
    answered = await an_api().create(a_body(configName="sales db", userName=None))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == ["userName", "configName"]


# Voided rows: `1db.acme.test` and `a` are names since spec 7.5's improvement.
@pytest.mark.parametrize(
    "host", ["1db.acme.test", "a", "a.acme.test", "localhost", "10.9.8.7", "::1"]
)
async def test_hosts_that_are_accepted(host: str) -> None:
    assert (await an_api().create(a_body(host=host))).json["host"] == host


@pytest.mark.parametrize(
    "host",
    [
        "db_1",
        "db-",
        "-db",
        "a..b",
        ".a",
        "db.acme.test.",
        "x" * 254,
        "127.1",
        "0x7f",
        "fe80::1%eth0",
    ],
)
async def test_hosts_that_are_refused(host: str) -> None:
    answered = await an_api().create(a_body(host=host))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == ["host"]


async def test_long_host_is_refused_without_backtracking() -> None:
    answered = await an_api().create(a_body(host="a" * 50_000 + "!"))
    assert list(answered.json["fields"]) == ["host"]


@pytest.mark.parametrize("wish", ["replace", "fail"])
async def test_invalid_text_is_an_option_of_the_connection(wish: str) -> None:
    answered = await an_api().create(a_body(metadata={"invalidText": wish}))
    assert (answered.status, answered.json["metadata"]) == (201, {"invalidText": wish})


async def test_nested_metadata_comes_back_exactly() -> None:
    api = an_api()
    headers = PRODUCT | {"Content-Type": "application/json"}
    metadata = b'{"a":{"b":[1,2.50,null,{"c":"\xc3\xa9"}]},"n":9007199254740993,"z":null}'
    body = b'{"configName":"sales_db","type":"MYSQL","host":"db","port":1,"databaseName":"d",'
    body += b'"userName":"u","password":"p","metadata":' + metadata + b"}"
    created = await api.call("POST", CONNECTIONS, headers=headers, data=body)
    shown = await api.get(f"{CONNECTIONS}/{created.json['id']}")
    assert metadata in shown.raw


async def test_config_name_is_taken_once_in_one_spelling() -> None:
    api = an_api()
    assert (await api.create(a_body())).status == 201
    again = await api.create(a_body())
    assert again.problem == (409, "FET-1002", "Conflict")
    assert (await api.create(a_body(configName="Sales_DB"))).status == 201


@pytest.mark.parametrize("name", ["midaz_onboarding", "midaz_transaction", "plugin_crm"])
async def test_names_of_internal_sources_are_taken(name: str) -> None:
    answered = await an_api().create(a_body(configName=name))
    assert answered.problem == (409, "FET-1002", "Conflict")


async def test_record_store_that_is_away_is_a_503_with_a_hint_when_to_come_back() -> None:
    class Away:
        async def find_by_config_names(self, names: object) -> Any:
            raise PortUnavailable("secret host pg7 is down")

    answered = await an_api(connections=Away()).create(a_body())
    assert answered.problem == (503, "FET-0003", "Service Unavailable")
    assert answered.headers["Retry-After"] == "5"
    assert b"pg7" not in answered.raw


async def test_failing_encryption_stores_nothing() -> None:
    api = an_api(cipher=BrokenCipher())
    answered = await api.create(a_body())
    assert answered.problem == (500, "FET-0002", "Internal Server Error")
    assert b"s3cret" not in answered.raw
    assert await api.records.connections.find_by_config_names(["sales_db"]) == []


# --- what cannot be stored -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"databaseName": "d" * 256}, "database_name"),
        ({"userName": "u" * 256}, "username"),
        ({"schema": "s" * 256}, "schema"),
        ({"password": "p" * 1025}, "password"),
        ({"password": "a\0b"}, "password"),
        ({"databaseName": "a\0b"}, "database_name"),
        ({"metadata": {f"k{n}": 1 for n in range(65)}}, "metadata"),
        ({"metadata": {"k": "v" * 2000}}, "metadata"),
        ({"metadata": {"k" * 256: 1}}, "metadata"),
        ({"metadata": {"a\0b": 1}}, "metadata"),
        ({"metadata": {"k": [{"a\0b": 1}]}}, "metadata"),
        ({"type": "ORACLE"}, "metadata.serviceName"),
        ({"metadata": {"invalidText": "Replace"}}, "metadata.invalidText"),
        ({"metadata": {"invalidText": True}}, "metadata.invalidText"),
        ({"metadata": {"invalidText": None}}, "metadata.invalidText"),
        ({"metadata": {"invalidText": ["replace"]}}, "metadata.invalidText"),
        ({"databaseName": "a\nb"}, "database_name"),
        ({"userName": "a\x7fb"}, "username"),
        ({"type": "ORACLE", "metadata": {"serviceName": "A\tB"}}, "metadata.serviceName"),
        ({"type": "ORACLE", "metadata": {"sid": "A\0B"}}, "metadata.sid"),
        ({"type": "ORACLE", "metadata": {"serviceName": " "}}, "metadata.serviceName"),
        ({"type": "ORACLE", "metadata": {"serviceName": "A)(HOST=b"}}, "metadata.serviceName"),
        ({"host": "db.acme\n.test"}, "host"),
    ],
)
async def test_values_beyond_their_bounds_are_invalid(
    changed: dict[str, object], field: str
) -> None:
    answered = await an_api().create(a_body(**changed))
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == [field]


@pytest.mark.parametrize(
    ("changed", "field"),
    [({"databaseName": "  "}, "database_name"), ({"userName": " "}, "username")],
)
async def test_blank_values_count_as_missing(changed: dict[str, object], field: str) -> None:
    answered = await an_api().create(a_body(**changed))
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert list(answered.json["fields"]) == [field]


# --- SQLITE (design section 8) ---------------------------------------------------------------


async def test_sqlite_needs_a_name_and_a_path_only() -> None:
    api = an_api(settings=HttpSettings(sqlite_allowed=True))
    body = {"configName": "shop", "type": "SQLITE", "databaseName": "shop/main.db"}
    answered = await api.create(body)
    assert answered.status == 201
    assert (answered.json["host"], answered.json["port"], answered.json["userName"]) == ("", 0, "")


@pytest.mark.parametrize(
    "path", ["/etc/x.db", "../x.db", "a/../../x.db", "a\\..\\x", "..", ".", "a\0.db"]
)
async def test_sqlite_path_stays_below_its_folder(path: str) -> None:
    api = an_api(settings=HttpSettings(sqlite_allowed=True))
    body = {"configName": "shop", "type": "SQLITE", "databaseName": path}
    answered = await api.create(body)
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert list(answered.json["fields"]) == ["database_name"]


async def test_sqlite_refuses_tls() -> None:
    api = an_api(settings=HttpSettings(sqlite_allowed=True))
    body = {"configName": "shop", "type": "SQLITE", "databaseName": "x.db", "ssl": {"mode": "true"}}
    answered = await api.create(body)
    assert list(answered.json["fields"]) == ["ssl.mode"]
