"""What an answer of the authorization service means (spec rest-api 3.1, step 6)."""

from decimal import Decimal
from typing import Final

from fetcher.domain.access import Granted, Refusal, Refused, Relayed, Verdict
from fetcher.domain.json_text import JsonTextError, exact_number, parse
from fetcher.domain.json_values import JsonObject, JsonValue

MAX_DEPTH: Final = 16
_TOLD: Final = ("entityType", "title", "message")


class AnswerUnreadable(Exception):
    """It is no verdict; says which rule it breaks, never what it says."""


def verdict_of(status: int, body: bytes) -> Verdict:
    """Raise AnswerUnreadable for what is neither a decision nor a refusal with a code."""
    answer = _object(body)
    code = _code(answer)
    if code and status != 500:
        return _relayed(status, code, answer)
    authorized = answer.get("authorized", False)
    if not isinstance(authorized, bool):
        raise AnswerUnreadable("authorized is no boolean")
    return Granted() if authorized else Refused(Refusal.FORBIDDEN)


def _relayed(status: int, code: str, answer: JsonObject) -> Relayed:
    if not 200 <= status <= 599:
        raise AnswerUnreadable("no status that could be told")
    told = {name: answer[name] for name in _TOLD if name in answer}
    texts = {name: text for name, text in told.items() if isinstance(text, str)}
    return Relayed(status=status, body={**texts, "code": code})


def _code(answer: JsonObject) -> str:
    """Empty where there is none."""
    code = answer.get("code")
    if code is None or isinstance(code, str):
        return code or ""
    if isinstance(code, bool) or not isinstance(code, int | Decimal):
        raise AnswerUnreadable("code is neither text nor number")
    return exact_number(code)


def _object(body: bytes) -> JsonObject:
    value: JsonValue = None
    try:
        value = parse(body, max_depth=MAX_DEPTH)
    except JsonTextError:
        value = None
    if not isinstance(value, dict):
        raise AnswerUnreadable("no JSON object")
    return value
