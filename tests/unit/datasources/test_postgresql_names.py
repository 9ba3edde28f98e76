"""Which pairs of schema and table a requested name may mean on PostgreSQL."""

from fetcher.datasources.postgresql.names import TableId, TableNames


def test_a_name_with_dots_is_read_in_every_way_that_a_server_can_have() -> None:
    assert TableNames(None).candidates("a.b.c") == (
        TableId("b", "c"),
        TableId("a", "b.c"),
        TableId("a.b", "c"),
        TableId("public", "a.b.c"),
    )


def test_a_name_that_no_server_can_have_is_not_taken_apart() -> None:
    """The readings of a million dots would need the square of that in bytes."""
    dots = "." * 1_000_000
    assert TableNames(None).candidates(dots) == (TableId("public", dots),)
