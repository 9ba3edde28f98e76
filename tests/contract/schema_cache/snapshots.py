"""Schemas to keep."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone

from fetcher_engine import AmbiguousTable, ColumnSnapshot, SchemaSnapshot, TableSnapshot


def a_snapshot(
    config_name: str = "sales_db", *, fields: tuple[str, ...] = ("id",)
) -> SchemaSnapshot:
    return SchemaSnapshot(config_name, (TableSnapshot("orders", fields),))


def full_snapshot(config_name: str = "sales_db") -> SchemaSnapshot:
    """Every member has a value that differs from its default."""
    columns = (
        ColumnSnapshot("id", "bigint", nullable=False, primary_key=True),
        ColumnSnapshot("a.b", "numeric(12,2)"),
        ColumnSnapshot('größe "x"\u2028\x00', ""),
    )
    return SchemaSnapshot(
        config_name,
        tables=(
            TableSnapshot("public.orders", ("id", "a.b", "größe"), columns, 12_000_000_000),
            TableSnapshot("empty", (), (), 0),
            TableSnapshot("unknown", ()),
        ),
        captured_at=datetime(2026, 3, 14, 9, 26, 53, 123456, timezone(timedelta(hours=5.5))),
        ignores_case=True,
        ambiguous=(AmbiguousTable("Orders", ("ORDERS", "orders")), AmbiguousTable("x", ())),
    )


def utc_snapshot(config_name: str = "sales_db") -> SchemaSnapshot:
    return replace(full_snapshot(config_name), captured_at=datetime(2026, 3, 14, tzinfo=UTC))
