"""Spec worker-and-events 12.8, row B5."""

import random

import pytest

from fetcher.domain.backoff import TENANT_CONSUMER_BACKOFF, full_jitter


@pytest.mark.parametrize(
    ("tries", "ceiling"), [(0, 0.1), (1, 0.2), (2, 0.4), (4, 1.6), (5, 2.0), (20, 2.0), (5000, 2.0)]
)
def test_a_wait_lies_anywhere_below_a_ceiling_that_doubles_up_to_the_cap(
    tries: int, ceiling: float
) -> None:
    random.seed(7)
    waits = [full_jitter(tries, base_seconds=0.1, cap_seconds=2.0) for _ in range(1000)]
    assert 0 <= min(waits) < ceiling * 0.1
    assert ceiling * 0.9 < max(waits) <= ceiling


@pytest.mark.parametrize(
    ("failures", "ceiling"), [(1, 5.0), (2, 10.0), (3, 20.0), (4, 40.0), (9, 40.0)]
)
def test_tenants_come_back_within_five_seconds_then_ever_later(
    failures: int, ceiling: float
) -> None:
    random.seed(7)
    waits = [TENANT_CONSUMER_BACKOFF.pause_seconds(failures) for _ in range(1000)]
    assert 0 <= min(waits) < ceiling * 0.1
    assert ceiling * 0.9 < max(waits) <= ceiling
