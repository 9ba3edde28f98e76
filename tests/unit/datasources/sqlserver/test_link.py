"""A server that answers with other columns than it was asked for."""

import pytest

from fetcher.datasources.sqlserver.link import Statement
from fetcher_engine import SourceFailure, Stage
from tests.fuzz.decoders.sources import link_within_its_rows

NUMBER, LARGE = 0, 2


def test_column_that_does_not_come_in_pieces_is_no_large_one() -> None:
    link = link_within_its_rows(Statement("SELECT 1"))
    link.buffer(LARGE, 100)
    with pytest.raises(SourceFailure) as caught:
        link.buffer(NUMBER, 100, "t")
    assert (caught.value.stage, caught.value.reason) == (Stage.QUERY, "protocol")
    assert caught.value.table == "t"
