"""Which pairs of schema and table a requested name may mean on PostgreSQL."""

import pytest

from fetcher.datasources.postgresql.names import TableNames
from fetcher.datasources.table_names import TableId


def test_a_name_with_dots_is_read_in_every_way_that_a_server_can_have() -> None:
    assert TableNames(None).candidates("a.b.c") == (
        TableId("b", "c"),
        TableId("a", "b.c"),
        TableId("a.b", "c"),
        TableId("public", "a.b.c"),
    )


def test_a_name_that_no_server_can_have_is_not_taken_apart() -> None:
    """The readings of a million dots would need the square of that in bytes."""
    for name in ("." * 1_000_000, "a." * 400 + "b", '"' * 1_000_001):
        assert TableNames(None).candidates(name) == (TableId("public", name),)


WEIRD = [("Sales 2031", "We.ird"), ("public", "We.ird")]


@pytest.mark.parametrize(
    ("schema", "requested", "name", "existing", "meant"),
    [
        (
            None,
            ["tx", "public.tx", "PUBLIC.tx", "db.public.tx"],
            "tx",
            [("public", "tx"), ("db", "public.tx")],
            [("public", "tx")],
        ),
        ("ops", ["runs", "ops.runs"], "runs", [("ops", "runs")], [("ops", "runs")]),
        (
            "ops",
            ["public.runs", "runs"],
            "runs",
            [("ops", "runs"), ("public", "runs")],
            [("ops", "runs")],
        ),
        (
            "ops",
            ["public.runs", "runs"],
            "public.runs",
            [("ops", "public.runs"), ("public", "runs")],
            [("public", "runs")],
        ),
        (
            "ops",
            ["public.runs", "runs"],
            "public.runs",
            [("ops", "public.runs"), ("ops", "runs")],
            [("ops", "public.runs")],
        ),
        # a schema of exactly that spelling comes before another spelling of the connection's
        ("Ops", ["ops.runs"], "runs", [("Ops", "runs"), ("ops", "runs")], [("ops", "runs")]),
        # two schemas on this server: one name cannot mean both
        (
            "Ops",
            ["ops.runs", "Ops.runs"],
            "runs",
            [("Ops", "runs"), ("ops", "runs")],
            [("Ops", "runs"), ("ops", "runs")],
        ),
        # what stands before a schema counts as the catalog and is dropped (spec engine 17.1)
        (None, ["Sales 2031.We.ird", "We.ird"], "We.ird", WEIRD, WEIRD),
        (None, ["Sales 2031.We.ird", "We.ird"], "We.ird", WEIRD[1:], []),
        (None, ["Sales 2031.We.ird", '"We.ird"'], "We.ird", WEIRD, WEIRD[:1]),
        (None, ["Sales 2031.We.ird", '"We.ird"'], '"We.ird"', WEIRD, WEIRD[1:]),
    ],
)
def test_names_that_became_one_mean_all_that_each_of_them_means(
    schema: str | None,
    requested: list[str],
    name: str,
    existing: list[tuple[str, str]],
    meant: list[tuple[str, str]],
) -> None:
    names = TableNames(schema, requested)
    there = [TableId(*pair) for pair in existing]
    assert names.meant(name, there) == tuple(TableId(*pair) for pair in meant)
    assert set(meant) <= {(one.schema, one.table) for one in names.candidates(name)}
