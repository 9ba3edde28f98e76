"""Validating a request against schemas (spec 21.7, the wildcard of design section 5)."""

from collections.abc import Mapping, Sequence

import pytest

from fetcher_engine import (
    DatasourceMapping,
    ErrorCategory,
    ExtractionRequest,
    Limits,
    SchemaSnapshot,
    SchemaValidationRequest,
    SourceFailure,
    Stage,
    TableMapping,
    TableSnapshot,
    ValidationReport,
)
from fetcher_engine.memory import MemorySchemaCache, MemorySource

from .hosts import TENANT, Host
from .loops import AnyLoop, every_loop, run
from .refusals import leaky, refuses

pytestmark = every_loop

SHOP = SchemaSnapshot(
    "",
    (
        TableSnapshot("orders", ("id", "total")),
        TableSnapshot("people", ("id", "profile.name", "profile.mail")),
    ),
)


def shop_host(cache: MemorySchemaCache | None = None, limits: Limits | None = None) -> Host:
    sources = {name: MemorySource(schema=SHOP) for name in ("shop", "crm")}
    return Host(sources, options={"limits": limits}, cache=cache)


def validate(host: Host, request: SchemaValidationRequest) -> ValidationReport:
    return run(host.engine.validate_schema(TENANT, request))


def of_table(
    table: str, fields: Sequence[str] = (), filters: Sequence[str] = (), name: str = "shop"
) -> SchemaValidationRequest:
    return SchemaValidationRequest(
        (DatasourceMapping(name, (TableMapping(table, fields, filters),)),)
    )


def failures(report: ValidationReport) -> list[tuple[str, str, str, str]]:
    return [(f.config_name, f.table, str(f.type), f.field) for f in report.failures]


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (of_table("orders", ["id", "total"]), []),
        (of_table("orders"), []),
        (of_table("order", ["nope"]), [("shop", "order", "table_not_found", "")]),
        (of_table("ORDERS", ["id"]), [("shop", "ORDERS", "table_not_found", "")]),
        (of_table("orders", ["price"]), [("shop", "orders", "field_not_found", "price")]),
        (of_table("orders", ["Id"]), [("shop", "orders", "field_not_found", "Id")]),
        (of_table("orders", ["id"], ["price"]), [("shop", "orders", "invalid_filter", "price")]),
        (of_table("people", ["profile"], ["profile"]), []),
        (of_table("people", ["prof"]), [("shop", "people", "field_not_found", "prof")]),
        (of_table("people", ["profile.name"]), []),
        (
            of_table("people", ["profile.nam"]),
            [("shop", "people", "field_not_found", "profile.nam")],
        ),
        (of_table("orders", ["*"]), []),
        (of_table("orders", ["*", "*"]), []),
        (of_table("orders", ["*", "id"]), [("shop", "orders", "field_not_found", "*")]),
        (of_table("*", ["id"]), [("shop", "*", "table_not_found", "")]),
    ],
)
def test_names_are_matched_as_they_are(
    request_: SchemaValidationRequest, expected: list[tuple[str, str, str, str]]
) -> None:
    report = validate(shop_host(), request_)
    assert failures(report) == expected
    assert report.valid is (expected == [])


def test_unknown_source_is_a_failure_and_not_an_error() -> None:
    host = shop_host()
    report = validate(host, of_table("orders", ["id"], name="gone"))
    assert report.to_public_dict() == {
        "valid": False,
        "failures": [
            {
                "type": "datasource_not_found",
                "configName": "gone",
                "detail": "no connection configured for the requested datasource",
            }
        ],
    }
    assert host.close_counts() == []


def test_details_are_the_fixed_texts() -> None:
    request = SchemaValidationRequest.of({"shop": {"x": ["a"], "orders": ["a"]}})
    details = [f.detail for f in validate(shop_host(), request).failures]
    assert details == ["field not found in table schema", "table not found in datasource schema"]
    report = validate(shop_host(), of_table("orders", [], ["a"]))
    assert report.failures[0].detail == "filter references a field not found in table schema"


def test_report_is_sorted_whatever_the_order_of_the_request(
    any_loop: AnyLoop,
) -> None:
    host = Host(
        {name: MemorySource(schema=SHOP, before_discovery=any_loop.pause) for name in ("b", "a")},
    )
    request = SchemaValidationRequest(
        (
            DatasourceMapping("gone"),
            DatasourceMapping("b", (TableMapping("x"), TableMapping("orders", ["z", "y"], ["w"]))),
            DatasourceMapping("a", (TableMapping("people", ["q"]),)),
        )
    )
    report = run(host.engine.validate_schema(TENANT, request))
    assert failures(report) == [
        ("a", "people", "field_not_found", "q"),
        ("b", "orders", "field_not_found", "y"),
        ("b", "orders", "field_not_found", "z"),
        ("b", "orders", "invalid_filter", "w"),
        ("b", "x", "table_not_found", ""),
        ("gone", "", "datasource_not_found", ""),
    ]
    assert host.close_counts() == [1, 1]


def many(count: int, prefix: str = "n") -> list[str]:
    return [f"{prefix}{index:02}" for index in range(count)]


@pytest.mark.parametrize(
    ("mapping", "expected"),
    [
        (
            {name: {"t": ["f"]} for name in many(11)},
            ("", "", "datasource count exceeds the configured limit"),
        ),
        (
            {"shop": {name: ["f"] for name in many(21)}},
            ("shop", "", "table count exceeds the configured limit"),
        ),
        (
            {"shop": {"t": many(51)}},
            ("shop", "t", "field count exceeds the configured limit"),
        ),
    ],
)
def test_count_above_its_limit_is_reported_before_any_store_is_asked(
    mapping: Mapping[str, Mapping[str, Sequence[str]]], expected: tuple[str, str, str]
) -> None:
    host = shop_host()
    report = validate(host, SchemaValidationRequest.of(mapping))
    assert [(f.config_name, f.table, f.detail) for f in report.failures] == [expected]
    assert host.store.calls == []


def test_filters_are_counted_apart_and_all_breaches_are_reported() -> None:
    request = SchemaValidationRequest(
        (
            DatasourceMapping("b", (TableMapping("t", many(51), many(51)),)),
            DatasourceMapping("a", tuple(TableMapping(name) for name in many(21))),
        )
    )
    report = validate(shop_host(), request)
    assert [(f.config_name, f.table, f.detail.split()[0]) for f in report.failures] == [
        ("a", "", "table"),
        ("b", "t", "field"),
        ("b", "t", "filter"),
    ]


def test_counts_exactly_at_their_limits_pass() -> None:
    wide = SchemaSnapshot("", tuple(TableSnapshot(name, tuple(many(50))) for name in many(20)))
    host = Host({name: MemorySource(schema=wide) for name in many(10, "c")})
    tables = tuple(TableMapping(name, many(50), many(50)) for name in many(20))
    request = SchemaValidationRequest(
        tuple(DatasourceMapping(name, tables) for name in many(10, "c"))
    )
    assert validate(host, request).valid


def test_field_asked_for_twice_counts_once() -> None:
    host = shop_host(limits=Limits(max_fields_per_table=2))
    assert validate(host, of_table("orders", ["id", "total", "id"])).valid


def test_expanded_wildcard_is_limited() -> None:
    host = shop_host(limits=Limits(max_fields_per_table=1))
    report = validate(host, of_table("orders", ["*"]))
    assert failures(report) == [("shop", "orders", "limit_exceeded", "")]


def test_wildcard_of_a_table_without_columns_finds_no_field() -> None:
    bare = SchemaSnapshot("", (TableSnapshot("t", ()),))
    report = validate(Host({"shop": MemorySource(schema=bare)}), of_table("t", ["*"]))
    assert failures(report) == [("shop", "t", "field_not_found", "*")]


def test_last_of_two_tables_of_one_name_counts() -> None:
    twice = SchemaSnapshot("", (TableSnapshot("t", ("old",)), TableSnapshot("t", ("new",))))
    host = Host({"shop": MemorySource(schema=twice)})
    assert validate(host, of_table("t", ["new"])).valid


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
@pytest.mark.parametrize(
    ("what", "make"),
    [
        ("datasource config name", lambda b: of_table("t", ["f"], name=b)),
        ("table name", lambda b: of_table(b, ["f"])),
        ("field name", lambda b: of_table("t", ["f", b])),
        ("filter field name", lambda b: of_table("t", ["f"], [b])),
    ],
)
def test_blank_name_is_an_error(what: str, make: object, blank: str) -> None:
    assert callable(make)
    host = shop_host()
    with refuses(ErrorCategory.VALIDATION, f"schema validation request has a blank {what}"):
        validate(host, make(blank))
    assert host.store.calls == []


def test_request_without_sources_is_an_error() -> None:
    with refuses(ErrorCategory.VALIDATION, "schema validation request has no datasources"):
        validate(shop_host(), SchemaValidationRequest())


@pytest.mark.parametrize(
    ("error", "category"),
    [
        (leaky(), ErrorCategory.UNAVAILABLE),
        (SourceFailure(Stage.DNS, "not_found"), ErrorCategory.CONNECT),
    ],
)
def test_source_that_is_down_is_an_error_and_no_report(
    error: Exception, category: ErrorCategory
) -> None:
    host = shop_host()
    host.factories["shop"].source.discovery_error = error
    with refuses(category) as caught:
        validate(host, of_table("orders", ["id"]))
    assert caught.value.source == "shop"
    assert host.close_counts() == [1]


@pytest.mark.parametrize("cache", [None, MemorySchemaCache()])
@pytest.mark.parametrize(
    ("table", "column", "told"),
    [
        ("orders", None, ("orders", None)),
        ("orders", "id", ("orders", "id")),
        ("orders", "total", ("orders", "total")),
        ("orders", "secret", ("orders", None)),
        ("people", "id", (None, None)),
    ],
)
def test_failed_discovery_names_what_was_asked_for(
    table: str,
    column: str | None,
    told: tuple[str | None, str | None],
    cache: MemorySchemaCache | None,
) -> None:
    host = shop_host(cache)
    failure = SourceFailure(Stage.SCHEMA, "permission", table=table, column=column)
    host.sources["shop"].discovery_error = failure
    with refuses(ErrorCategory.UNAVAILABLE, "failed to discover datasource schema") as caught:
        validate(host, of_table("orders", ["id"], ["total"]))
    error = caught.value
    assert (error.source, error.stage, error.reason) == ("shop", Stage.SCHEMA, "permission")
    assert (error.table, error.column) == told
    request = ExtractionRequest(
        mapped_fields={"shop": {"orders": ["id"]}}, filters={"shop": {"orders": {"total": 1}}}
    )
    with refuses(ErrorCategory.UNAVAILABLE, "failed to discover datasource schema") as caught:
        run(host.engine.plan_extraction(TENANT, request))
    assert (caught.value.table, caught.value.column) == told


def test_discovery_of_all_names_no_table() -> None:
    host = shop_host()
    failure = SourceFailure(Stage.SCHEMA, "permission", table="orders")
    host.sources["shop"].discovery_error = failure
    with refuses(ErrorCategory.UNAVAILABLE) as caught:
        run(host.engine.discover_schema(TENANT, "shop"))
    assert (caught.value.reason, caught.value.table) == ("permission", None)


def test_cached_schema_is_not_discovered_again() -> None:
    host = shop_host(MemorySchemaCache())
    validate(host, of_table("orders", ["id"]))
    validate(host, of_table("people", ["id"]))
    assert host.close_counts() == [1]
