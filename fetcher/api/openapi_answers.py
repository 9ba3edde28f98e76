"""The answers of an operation, as the API document has them: every status that it may have."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import BaseModel

from fetcher.api.examples import EXAMPLES
from fetcher.api.links import LINKS
from fetcher.api.models.system import ProblemBody, RelayedBody
from fetcher.api.refusals import (
    OF_AUTHORIZATION,
    OF_EVERY_OPERATION,
    OF_TENANTS,
    Refusal,
    by_status,
)
from fetcher.api.routing import JSON, Route, Success

TEXT: Final = "text/plain"

Schema = Mapping[str, object]
Schemas = Mapping[type[BaseModel], Schema]

_HEADERS: Final[Mapping[str, Mapping[str, object]]] = {
    "Location": {
        "description": "Where it is",
        "schema": {"type": "string", "format": "uri-reference"},
    },
    "Retry-After": {
        "description": "Seconds after which it is worth another try",
        "schema": {"type": "integer", "minimum": 0},
    },
    "WWW-Authenticate": {
        "description": "How to do better",
        "schema": {"type": "string", "const": "Bearer"},
    },
    "X-Request-Id": {
        "description": "The caller's, or a new one; logs have it",
        "schema": {"type": "string", "minLength": 1, "maxLength": 128},
    },
}
_OF_STATUS: Final[Mapping[int, Sequence[str]]] = {
    401: ["WWW-Authenticate"],
    429: ["Retry-After"],
    503: ["Retry-After"],
}
_CREDENTIALS: Final = frozenset({401, 403, 503})
"""Plain text, or JSON for those who ask for it by name (spec 3.1)."""


def responses_of(
    route: Route, schemas: Schemas, *, asks_for_token: bool, relays: bool, has_tenants: bool = False
) -> dict[str, object]:
    """By status. Where the authorization service's words are ``relays``-ed, its status may be any:
    those are the ranges ``4XX`` and ``5XX``."""
    is_guarded = asks_for_token and route.permission is not None
    is_of_tenant = has_tenants and route.permission is not None
    codes = [
        *OF_EVERY_OPERATION,
        *route.refusals,
        *(OF_AUTHORIZATION if is_guarded else ()),
        *(OF_TENANTS if is_of_tenant else ()),
    ]
    responses: dict[str, object] = {
        str(status): _success(success, schemas) | _links(route.name, status)
        for status, success in route.successes.items()
    }
    for status, refusals in by_status(codes).items():
        described = _refused(status, refusals, schemas[ProblemBody])
        if is_guarded and status in _CREDENTIALS:
            described = _told_in_words(described, schemas[RelayedBody] if relays else None)
        own = responses.get(str(status))
        responses[str(status)] = described if own is None else _either(own, described)
    if is_guarded and relays:
        relayed = {
            "description": "A refusal in the authorization service's own words",
            "headers": _headers([]),
            "content": {JSON: {"schema": schemas[RelayedBody]}},
        }
        responses |= {"4XX": relayed, "5XX": relayed}
    return responses


def _success(success: Success, schemas: Schemas) -> dict[str, object]:
    described: dict[str, object] = {
        "description": success.description,
        "headers": _headers(success.headers, success.optional_headers),
    }
    if success.media_type is None:
        return described
    schema: Schema = schemas[success.model] if success.model is not None else {}
    if success.media_type != JSON:
        schema = {"type": "string"}
    content: dict[str, object] = {"schema": schema}
    if success.model in EXAMPLES:
        content["example"] = EXAMPLES[success.model]
    described["content"] = {success.media_type: content}
    return described


def _links(operation: str, status: int) -> dict[str, object]:
    links = LINKS.get((operation, status))
    return {} if links is None else {"links": links.described()}


def _headers(names: Sequence[str], optional: Sequence[str] = ()) -> dict[str, object]:
    return {
        name: {
            "required": name not in optional,
            **_HEADERS.get(name, {"schema": {"type": "string"}}),
        }
        for name in (*names, *optional, "X-Request-Id")
    }


def _refused(status: int, refusals: Sequence[Refusal], body: Schema) -> dict[str, object]:
    told = "; ".join(f"`{each.error_code}`: {each.meaning}" for each in _merged(refusals))
    schema = {
        "allOf": [body],
        "properties": {
            "code": {"enum": list(dict.fromkeys(each.code for each in refusals))},
            "errorCode": {"enum": [each.error_code for each in refusals]},
        },
    }
    return {
        "description": told,
        "headers": _headers(_OF_STATUS.get(status, [])),
        "content": {JSON: {"schema": schema}},
    }


def _merged(refusals: Sequence[Refusal]) -> list[Refusal]:
    """One of those that mean the same."""
    return list({each.meaning: each for each in reversed(refusals)}.values())[::-1]


def _told_in_words(described: Mapping[str, object], relayed: Schema | None) -> dict[str, object]:
    content: dict[str, dict[str, object]] = dict(described["content"])  # type: ignore[call-overload] # as _refused made it
    if relayed is not None:
        content[JSON] = {"schema": {"anyOf": [content[JSON]["schema"], relayed]}}
    return {**described, "content": {**content, TEXT: {"schema": {"type": "string"}}}}


def _either(success: object, refused: Mapping[str, object]) -> dict[str, object]:
    """Two answers with one status; headers are promised where both have them."""
    own: Mapping[str, Any] = success  # type: ignore[assignment] # as _success made it
    other: dict[str, Any] = dict(refused["content"])  # type: ignore[call-overload] # as _refused made it
    schemas = [own["content"][JSON]["schema"], other[JSON]["schema"]]
    return {
        "description": f"{own['description']}; {refused['description']}",
        "headers": _headers([]),
        "content": {**other, JSON: {**own["content"][JSON], "schema": {"anyOf": schemas}}},
    }
