"""What a stranger put into a dead letter is shown without harm."""

import json
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fetcher.adapters.dead_letters import read_dead_letter
from fetcher.cli.dead_letters import header_text


def test_headers_of_every_kind_become_json() -> None:
    nested: object = "deep"
    for _ in range(5000):
        nested = {"n": nested}
    shown = header_text(
        {
            "text": "a",
            "bytes": bytearray(b"\xff\x00"),
            "time": datetime(2026, 1, 1, tzinfo=UTC),
            "number": Decimal("1.10"),
            "flag": True,
            "list": [1, None, {"a": b"b"}],
            "nested": nested,
        }
    )
    told = json.loads(json.dumps(shown))
    assert told["bytes"] == "\ufffd\x00"
    assert (told["time"], told["number"], told["flag"]) == (
        "2026-01-01 00:00:00+00:00",
        "1.10",
        True,
    )
    assert told["list"] == [1, None, {"a": "b"}]
    assert json.dumps(told["nested"]).count("n") == 19


@pytest.mark.parametrize(
    "deaths",
    [None, "x", b"x", 7, [], [7], [{}], [{"exchange": 7, "routing-keys": "", "reason": []}]],
)
def test_marks_that_are_none_leave_reason_and_route_empty(deaths: object) -> None:
    letter = read_dead_letter(tag=1, body=b"", headers={"x-death": deaths})
    assert (letter.reason, letter.exchange, letter.routing_key) == ("", "", "")


def test_the_first_death_tells_the_route_and_our_own_mark_wins() -> None:
    deaths = [
        {"exchange": "fetcher.dlx", "routing-keys": ["fetcher.dlq.key"], "reason": "expired"},
        {"exchange": "", "routing-keys": ["work", "cc"], "reason": "delivery_limit"},
    ]
    letter = read_dead_letter(tag=1, body=b"", headers={"x-death": deaths})
    assert (letter.reason, letter.exchange, letter.routing_key) == ("delivery_limit", "", "work")
    ours = {
        "x-fetcher-reject-reason": "malformed",
        "x-fetcher-original-exchange": "",
        "x-fetcher-original-routing-key": "own",
    }
    letter = read_dead_letter(tag=1, body=b"", headers={"x-death": deaths, **ours})
    assert (letter.reason, letter.routing_key) == ("malformed", "own")
