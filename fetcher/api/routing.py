"""What a route is: how it is reached, who serves it, and what the API document says of it."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Protocol

import orjson
from pydantic import BaseModel
from quart import Response, request

from fetcher.api.asgi import tenant_id_of
from fetcher.api.models.connections import Answer
from fetcher.api.payloads import Part
from fetcher.domain.access import Permission
from fetcher.domain.json_text import dumps, exact_number
from fetcher.queries.turns import Turns

JSON = "application/json"
PRODUCT_ROOT = "/v1/"
"""Below it nothing is served without a permission being named."""

_writers = Turns(2)


class Handler(Protocol):
    """An operation behind a route; path parameters arrive by keyword, as sent."""

    def __call__(self, **path_parameters: str) -> Awaitable[Response]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One header or query parameter, for the API document."""

    name: str
    place: str
    description: str
    required: bool = False
    schema: Mapping[str, object] = field(default_factory=lambda: {"type": "string"})
    example: object = None


def query_parameter(name: str, description: str, **schema: object) -> Parameter:
    return Parameter(name=name, place="query", description=description, schema=schema)


@dataclass(frozen=True, slots=True, kw_only=True)
class Success:
    """One successful answer. Without a model the body is of ``media_type`` and undescribed; where
    that is None there is no body."""

    description: str
    model: type[BaseModel] | None = None
    media_type: str | None = JSON
    headers: Sequence[str] = ()
    optional_headers: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Route:
    """``path`` is a template like ``/v1/fetcher/{id}``, and also what logs and metrics show.

    ``resource`` and ``action`` are what a caller must be allowed (spec rest-api 1.1); a system
    route has neither. Raise ValueError for a route below :data:`PRODUCT_ROOT` without them.
    ``refusals`` are the ``errorCode``s that are its own, beside those that any operation may answer
    with. ``in_document``: whether the API document describes it.
    """

    method: str
    path: str
    name: str
    summary: str
    tag: str
    handler: Callable[..., Awaitable[Response]]
    successes: Mapping[int, Success]
    resource: str = ""
    action: str = ""
    request: type[Part] | None = None
    parameters: Sequence[Parameter] = ()
    refusals: Sequence[str] = ()
    in_document: bool = True

    def __post_init__(self) -> None:
        is_named = bool(self.resource and self.action)
        is_system = not (self.resource or self.action or self.path.startswith(PRODUCT_ROOT))
        if not (is_named or is_system):
            raise ValueError(f"the route {self.name} must name its resource and action")

    @property
    def rule(self) -> str:
        """The template in the router's own spelling."""
        return self.path.replace("{", "<").replace("}", ">")

    @property
    def permission(self) -> Permission | None:
        """What is asked of a caller, None for a system route."""
        if not self.resource:
            return None
        return Permission(resource=self.resource, action=self.action)


def answer(
    model: Answer, status: int = 200, *, headers: Mapping[str, str] | None = None
) -> Response:
    """A JSON answer; members that are None are left out, values inside maps never are."""
    return json_response(model.to_json(), status, headers=headers)


async def large_answer(model: Callable[[], Answer]) -> Response:
    """As :func:`answer`, made in a thread: a page of connections or jobs may hold millions of
    numbers, and while they are written no other request, and no lease, would be served."""
    return await _writers.in_thread(lambda: answer(model()), tenant_id_of(request.scope))


def json_response(
    body: Mapping[str, object], status: int, *, headers: Mapping[str, str] | None = None
) -> Response:
    return Response(
        _json_bytes(body), status=status, content_type=JSON, headers=dict(headers or {})
    )


def no_content() -> Response:
    """204: neither a body nor headers that would describe one (RFC 9110, 8.6 and 15.3.5)."""
    response = Response(b"", status=204)
    response.headers.clear()
    return response


def _json_bytes(body: Mapping[str, object]) -> bytes:
    """Numbers keep every digit: what orjson cannot say exactly, our own writer says."""
    try:
        return orjson.dumps(body, default=_said_exactly)
    except orjson.JSONEncodeError:
        return dumps(body).encode()


def _said_exactly(value: object) -> object:
    if isinstance(value, Decimal):
        return orjson.Fragment(exact_number(value))
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError
