"""Who may call an operation: judged before anything of its path, headers or body is read.

Spec rest-api 2.1 and 3. The answers are plain text, as old clients know them, unless a client asks
for JSON by name.
"""

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Final, assert_never

import structlog
from hypercorn.typing import HTTPScope, WWWScope

from fetcher.api.asgi import ADMITTED, ROUTE, SUBJECT, header, note, noted, sent_trace
from fetcher.api.problems import Problem, problem_of
from fetcher.api.route_finder import RouteFinder
from fetcher.domain.access import Granted, Refusal, Refused, Relayed
from fetcher.domain.access_tokens import token_in
from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.domain.trace_context import current_trace
from fetcher.ports import Authorizer

log = structlog.get_logger(__name__)

CHALLENGE: Final = "Bearer"

_NOT_ACCEPTED = re.compile(r"\s*q\s*=\s*0(\.0*)?\s*", re.IGNORECASE | re.ASCII)

_REFUSALS: Final[Mapping[Refusal, FetcherError]] = {
    Refusal.MISSING_TOKEN: FetcherError("FET-0006", "Unauthorized", "Missing Token"),
    Refusal.UNAUTHORIZED: FetcherError("FET-0006", "Unauthorized", "Unauthorized"),
    Refusal.FORBIDDEN: FetcherError("FET-0007", "Forbidden", "Forbidden"),
}
_NOBODY_TO_ASK: Final = FetcherError("FET-0003", "Service Unavailable", "Service Unavailable")


class Authorization:
    """Asks for the permission of each product route; without an authorizer everybody has it.

    Requests that reach no route, and system routes, are not judged.
    """

    def __init__(self, finder: RouteFinder, authorizer: Authorizer | None) -> None:
        self._finder = finder
        self._authorizer = authorizer

    async def admit(self, scope: HTTPScope) -> Problem | None:
        """The answer to a caller who is not let in, None for one who is."""
        if self._authorizer is None:
            return None
        route = self._finder.product_route(scope)
        if route is None or route.permission is None:
            return None
        note(scope, ROUTE, route.path)
        token = token_in(header(scope, b"authorization"))
        try:
            verdict = await self._authorizer.judge(
                token, route.permission, trace=_trace_headers(scope)
            )
        except PortUnavailable as failure:
            log.error("authorization_unavailable", why=str(failure))
            return _told(_NOBODY_TO_ASK, scope)
        match verdict:
            case Granted(subject):
                note(scope, ADMITTED, route.name)
                note(scope, SUBJECT, subject)
                return None
            case Refused(reason):
                return _told(_REFUSALS[reason], scope)
            case Relayed():
                return _relayed(verdict)
            case _:
                assert_never(verdict)

    def confirm(self, scope: WWWScope, endpoint: str) -> None:
        """Raise RuntimeError where the application is about to run an operation that the caller
        was not judged for: it finds its routes by itself, and must find the same ones."""
        is_open = self._authorizer is None or not self._finder.asks_permission(endpoint)
        if not is_open and noted(scope, ADMITTED) != endpoint:
            raise RuntimeError(f"{endpoint} was reached without authorization")


def _told(error: FetcherError, scope: HTTPScope) -> Problem:
    problem = challenged(problem_of(error))
    return problem if _asks_for_json(scope) else replace(problem, text=error.message)


def _relayed(refusal: Relayed) -> Problem:
    body = {**refusal.body, "errorCode": refusal.body["code"]}
    return challenged(Problem(status=refusal.status, body=body))


def challenged(problem: Problem) -> Problem:
    """A 401 says how to do better (RFC 9110, 15.5.2)."""
    if problem.status != 401:
        return problem
    return replace(problem, headers={**problem.headers, "WWW-Authenticate": CHALLENGE})


def _asks_for_json(scope: HTTPScope) -> bool:
    """Whether ``Accept`` names JSON itself; a wildcard is what every old client sends."""
    for key, value in scope["headers"]:
        if key.lower() != b"accept":
            continue
        for accepted in value.decode("latin-1").split(","):
            media_type, *parameters = accepted.split(";")
            refused = any(_NOT_ACCEPTED.fullmatch(each) for each in parameters)
            if media_type.strip().lower() == "application/json" and not refused:
                return True
    return False


def _trace_headers(scope: HTTPScope) -> dict[str, str]:
    """The caller's trace (W3C Trace Context), for those who are asked on its behalf."""
    trace = current_trace() or sent_trace(scope)
    return trace.headers() if trace is not None else {}
