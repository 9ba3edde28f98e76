"""What is sorted over all records is read in the order of an index: else the server sorts them all.

The server of the tests tells no plan, so that orders are held against the keys of the indexes.
"""

from collections.abc import Sequence

import pytest

from fetcher.adapters.mongo.audit import NEWEST, OLDEST
from fetcher.adapters.mongo.indexes import AUDIT_INDEXES, LIST_INDEXES, SWEEP_INDEXES, Index
from fetcher.adapters.mongo.job_lists import FIRST_ENDED_FIRST, LAST_ENDED_FIRST, list_order
from fetcher.domain.job_store import JobQuery

Order = Sequence[tuple[str, int]]
JOBS = (*LIST_INDEXES, *SWEEP_INDEXES)


def is_order_of(index: Index, order: Order, *equal: str) -> bool:
    """By an index a list is read forwards or backwards, behind fields that are of one value."""
    keys = list(index.keys)
    if [name for name, _ in keys[: len(equal)]] != list(equal):
        return False
    keys = keys[len(equal) :]
    backwards = [(name, -direction) for name, direction in keys]
    return list(order) in (keys[: len(order)], backwards[: len(order)])


@pytest.mark.parametrize("ascending", [True, False])
@pytest.mark.parametrize("equal", [(), ("status",), ("datasources",)])
def test_lists_of_jobs(ascending: bool, equal: Sequence[str]) -> None:
    order = list_order(JobQuery(ascending=ascending))
    assert any(is_order_of(each, order, *equal) for each in JOBS if each.partial is None)


@pytest.mark.parametrize("order", [FIRST_ENDED_FIRST, LAST_ENDED_FIRST])
@pytest.mark.parametrize("partial", [None, {"status": "failed"}])
def test_lists_of_ended_jobs(order: Order, partial: object) -> None:
    assert any(is_order_of(each, order) for each in JOBS if each.partial == partial)


@pytest.mark.parametrize("order", [NEWEST, OLDEST])
@pytest.mark.parametrize("equal", [(), ("target",), ("actor",), ("action",)])
def test_lists_of_audit_entries(order: Order, equal: Sequence[str]) -> None:
    assert any(is_order_of(each, order, *equal) for each in AUDIT_INDEXES)
