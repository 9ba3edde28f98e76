"""Which rules of a bucket delete results before their time."""

from datetime import UTC, datetime, timedelta, timezone
from typing import Any

import pytest

from fetcher.adapters.s3.lifecycle import expiry_rule

NOW = datetime(2030, 12, 1, 12, tzinfo=UTC)
TAG = {"Key": "class", "Value": "temporary"}


def a_rule(*, filter_: dict[str, Any] | None = None, **expiration: object) -> dict[str, Any]:
    return {
        "ID": "theirs",
        "Status": "Enabled",
        "Filter": filter_ if filter_ is not None else {"Prefix": ""},
        "Expiration": expiration,
    }


@pytest.mark.parametrize(
    "filter_", [{"Tag": TAG}, {"And": {"Prefix": "", "Tags": [TAG]}}, {"And": {"Tags": [TAG]}}]
)
def test_rule_for_tagged_objects_is_none_for_results_which_have_no_tags(
    filter_: dict[str, Any],
) -> None:
    rule = expiry_rule("", days=30, now=NOW)
    assert not rule.is_defeated_by(a_rule(filter_=filter_, Days=1))
    assert not rule.is_served_by(a_rule(filter_=filter_, Days=30))


def test_rule_for_objects_of_some_size_may_be_one_for_results() -> None:
    rule = expiry_rule("", days=30, now=NOW)
    assert rule.is_defeated_by(a_rule(filter_={"ObjectSizeGreaterThan": 1}, Days=1))


@pytest.mark.parametrize(
    ("date", "is_early"),
    [
        (NOW - timedelta(days=400), True),
        (NOW, True),
        (NOW + timedelta(days=30) - timedelta(seconds=1), True),
        (NOW + timedelta(days=30), False),
        ((NOW + timedelta(days=30)).astimezone(timezone(timedelta(hours=9))), False),
        ((NOW + timedelta(days=29)).replace(tzinfo=None), True),
        ((NOW + timedelta(days=31)).replace(tzinfo=None), False),
    ],
)
def test_rule_from_a_date_on_is_early_where_a_result_of_today_would_not_reach_its_time(
    date: datetime, is_early: bool
) -> None:
    rule = expiry_rule("", days=30, now=NOW)
    assert rule.is_defeated_by(a_rule(Date=date)) is is_early
