"""The interpretation table of rest-api 3.1, step 6."""

import pytest

from fetcher.adapters.auth.answers import AnswerUnreadable, verdict_of
from fetcher.domain.access import Granted, Refusal, Refused, Relayed, Verdict

FORBIDDEN = Refused(Refusal.FORBIDDEN)


@pytest.mark.parametrize(
    ("status", "body", "verdict"),
    [
        (200, b'{"authorized":true}', Granted()),
        (200, b'{"authorized":true,"timestamp":"2026-01-01","code":""}', Granted()),
        (200, b'{"authorized":true,"code":null}', Granted()),
        (403, b'{"authorized":true}', Granted()),
        (200, b'{"authorized":false}', FORBIDDEN),
        (404, b'{"authorized":false}', FORBIDDEN),
        (200, b"{}", FORBIDDEN),
        (500, b'{"code":"AUT-9","message":"boom"}', FORBIDDEN),
        (500, b'{"code":"AUT-9","authorized":false}', FORBIDDEN),
        (401, b'{"code":"AUT-1"}', Relayed(status=401, body={"code": "AUT-1"})),
        (
            403,
            b'{"entityType":"policy","title":"No","message":"not you","code":17,"authorized":true}',
            Relayed(
                status=403,
                body={"entityType": "policy", "title": "No", "message": "not you", "code": "17"},
            ),
        ),
        (503, b'{"code":"x","title":7}', Relayed(status=503, body={"code": "x"})),
        (418, b'{"code":0}', Relayed(status=418, body={"code": "0"})),
        (418, b'{"code":1.50}', Relayed(status=418, body={"code": "1.50"})),
        (200, b'{"code":"x","authorized":true}', Relayed(status=200, body={"code": "x"})),
    ],
)
def test_answer_is_a_verdict(status: int, body: bytes, verdict: Verdict) -> None:
    assert verdict_of(status, body) == verdict


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, b""),
        (200, b"true"),
        (200, b"[]"),
        (200, b"null"),
        (200, b"<html>"),
        (200, b'{"authorized":tru'),
        (200, b'{"authorized":"true"}'),
        (200, b'{"authorized":1}'),
        (200, b'{"authorized":null}'),
        (200, b'{"authorized":true,"code":true}'),
        (200, b'{"authorized":true,"code":{}}'),
        (999, b'{"code":"x"}'),
        (200, b'{"a":' + b"[" * 40 + b"]" * 40 + b',"authorized":true}'),
    ],
)
def test_what_is_no_verdict_lets_nobody_in(status: int, body: bytes) -> None:
    with pytest.raises(AnswerUnreadable):
        verdict_of(status, body)
