"""What all questions of operators have in common: their place, deadline, permission and limit."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import trio
from quart import Response

from fetcher.api.list_parameters import positive_integer
from fetcher.api.models.connections import Answer
from fetcher.api.routing import Parameter, Route, Success, query_parameter
from fetcher.domain.errors import FetcherError, PortUnavailable

ROOT: Final = "/v1/operations"
DEFAULT_LIMIT: Final = 20
MAX_LIMIT: Final = 100
LOOK_SECONDS: Final = 10.0
"""What a look may take in all, whichever of the parts that it asks hangs. To cut off a connection
that does may take some seconds more."""

LIMIT = query_parameter(
    "limit",
    "So many of each list",
    type="integer",
    minimum=1,
    maximum=MAX_LIMIT,
    default=DEFAULT_LIMIT,
)


def asked_limit(text: str | None) -> int:
    limit = positive_integer("limit", text, default=DEFAULT_LIMIT)
    if limit > MAX_LIMIT:
        raise FetcherError(
            "FET-0406", "Pagination Limit Exceeded", f"limit must be at most {MAX_LIMIT}"
        )
    return limit


def _within(
    seconds: float, handler: Callable[[], Awaitable[Response]]
) -> Callable[[], Awaitable[Response]]:
    """The handler with one deadline over all that it waits for."""

    async def bounded() -> Response:
        with trio.move_on_after(seconds):
            return await handler()
        raise PortUnavailable("what was asked for was not told in time")

    return bounded


def look(
    what: str,
    summary: str,
    handler: Callable[[], Awaitable[Response]],
    model: type[Answer],
    *parameters: Parameter,
    refusals: Sequence[str] = (),
    action: str = "get",
) -> Route:
    return Route(
        method="GET",
        path=f"{ROOT}/{what}",
        name=f"operations_{what.replace('-', '_')}",
        summary=summary,
        tag="Operations",
        resource="operations",
        action=action,
        handler=_within(LOOK_SECONDS, handler),
        parameters=parameters,
        refusals=[*refusals, *(["FET-0405", "FET-0406"] if parameters else [])],
        successes={200: Success(description="As it is now", model=model)},
    )
