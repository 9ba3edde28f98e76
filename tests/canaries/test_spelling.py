"""The search finds what it seeks; otherwise no hits would mean nothing."""

import pytest

from tests.canaries.spelling import canary, hits, respelt

CANARY = canary("FIELD")


@pytest.mark.parametrize("spelling", respelt(CANARY))
@pytest.mark.parametrize("before", ["", "x", 'said: "', "é"])
def test_every_spelling_is_found(spelling: str, before: str) -> None:
    text = f"{before}{respelt(CANARY)[spelling]} and more"
    assert [hit.place for hit in hits({"log": text.encode(), "other": b"nothing"})][:1] == ["log"]


def test_other_texts_are_no_hits() -> None:
    assert hits({"log": b"a canary, zq7, canaryzq7", "key": bytes(range(256)) * 20}) == []
