"""A saved letter is known again, whatever a stranger wrote into it; no other is taken for it."""

import json
import math
from dataclasses import replace
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from fetcher.domain.dead_letters import DeadLetter
from fetcher.domain.saved_letters import fingerprint, saved_form


def nested(levels: int) -> object:
    inner: object = "deep"
    for _ in range(levels):
        inner = {"n": inner}
    return inner


LETTER = DeadLetter(
    tag=1,
    body=b'{"jobId":"\xc3\xa9"}',
    headers={
        "t": "1773480413",
        "bytes": bytearray(b"\xff\x00"),
        "time": datetime(2026, 1, 1, tzinfo=UTC),
        "number": Decimal("1.10"),
        "nan": math.nan,
        "huge": 2**70,
        "flag": True,
        "list": [1, None, {"b": b"a", "a": "\x1b[2J"}],
        "nested": nested(5000),
    },
    exchange="",
    routing_key="work",
    reason="malformed",
)


def test_line_of_a_file_is_known_as_the_letter_that_it_was_made_of() -> None:
    form = saved_form(LETTER)
    line = json.dumps({"position": 7, **form})
    assert fingerprint(json.loads(line)) == fingerprint(saved_form(replace(LETTER, tag=9)))


def test_what_is_saved_is_json_for_every_reader() -> None:
    """Which has no NaN, and no infinite number."""
    endless = replace(LETTER, headers={"up": math.inf, "down": [-math.inf], "half": 0.5})
    for letter in (LETTER, endless):
        json.dumps(saved_form(letter), allow_nan=False)
    assert saved_form(endless)["headers"] == {"up": "inf", "down": ["-inf"], "half": 0.5}


def test_bytes_that_are_no_text_are_saved_whole() -> None:
    form = saved_form(replace(LETTER, body=b"\xff\xfe"))
    assert form["body"] == {"base64": "//4="}
    headers = form["headers"]
    assert isinstance(headers, dict)
    assert headers["bytes"] == {"base64": "/wA="}
    assert saved_form(LETTER)["body"] == '{"jobId":"é"}'


@pytest.mark.parametrize("name", ["x-delivery-count", "x-acquired-count"])
def test_each_look_at_a_letter_leaves_it_the_same(name: str) -> None:
    looked_at = replace(LETTER, headers={**LETTER.headers, name: 3})
    assert fingerprint(saved_form(looked_at)) == fingerprint(saved_form(LETTER))


@pytest.mark.parametrize(
    "other",
    [
        replace(LETTER, body=LETTER.body + b" "),
        replace(LETTER, headers={**LETTER.headers, "t": "1773480414"}),
        replace(LETTER, headers={**LETTER.headers, "more": 1}),
        replace(LETTER, exchange="work"),
        replace(LETTER, exchange="work", routing_key=""),
        replace(LETTER, reason="unknown_job"),
        replace(LETTER, body=b"\xff"),
    ],
)
def test_letter_that_differs_in_anything_is_another(other: DeadLetter) -> None:
    assert fingerprint(saved_form(other)) != fingerprint(saved_form(LETTER))


@pytest.mark.parametrize("part", ["exchange", "routingKey", "reason", "headers", "body"])
def test_form_without_a_part_is_that_of_no_letter(part: str) -> None:
    form = saved_form(LETTER)
    del form[part]
    with pytest.raises(KeyError):
        fingerprint(form)
