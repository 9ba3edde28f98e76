"""A server that answers with other columns than it was asked for."""

import pytest

from fetcher.datasources.sqlserver.link import Statement
from fetcher_engine import SourceFailure, Stage
from tests.fuzz.decoders.sources import TARGET, link_that_hears, link_within_its_rows
from tests.servers.tds import tokens

NUMBER, LARGE = 0, 2


def test_column_that_does_not_come_in_pieces_is_no_large_one() -> None:
    link = link_within_its_rows(Statement("SELECT 1"))
    link.buffer(LARGE, 100)
    with pytest.raises(SourceFailure) as caught:
        link.buffer(NUMBER, 100, "t")
    assert (caught.value.stage, caught.value.reason) == (Stage.QUERY, "protocol")
    assert caught.value.table == "t"


COLUMNS = [tokens.Column("varbinary(max)")]
TORN = (tokens.columns_token(COLUMNS) + tokens.row_token(COLUMNS, [b"some bytes"]))[:-8]
"""Its message ends within the cell: the driver would ask for the rest of it for ever."""


def test_cell_that_a_message_ends_in_is_an_end_of_the_connection() -> None:
    link = link_that_hears(TORN, is_logged_in=True)
    link.execute(Statement("SELECT 1"), Stage.QUERY)
    with pytest.raises(SourceFailure) as caught:
        link.row(Stage.ROWS)
    assert (caught.value.stage, caught.value.reason) == (Stage.ROWS, "reset")


def test_so_it_is_where_nobody_has_asked_for_rows() -> None:
    link = link_that_hears(TORN, is_logged_in=False)
    with pytest.raises(SourceFailure) as caught:
        link.log_in(TARGET)
    assert (caught.value.stage, caught.value.reason) == (Stage.AUTH, "reset")
