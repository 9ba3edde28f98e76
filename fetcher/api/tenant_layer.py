"""The request's tenant: entered before its body is read, held until its answer has been sent."""

from collections import Counter
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Final

import structlog
import trio
from hypercorn.typing import ASGISendEvent, HTTPScope, Scope, WWWScope
from quart import Response, request

from fetcher.api.asgi import ROUTE, TENANT, AsgiApp, Receive, Send, header, note
from fetcher.api.authorization import challenged
from fetcher.api.incoming import Incoming, incoming_of, refuse
from fetcher.api.observation import crash_facts
from fetcher.api.problems import problem_of
from fetcher.api.route_finder import RouteFinder
from fetcher.api.routing import Route
from fetcher.api.tenancy import (
    EnteredTenant,
    TenantGate,
    not_entered,
    tenant_of,
    too_many_requests,
    unavailable,
)
from fetcher.domain.errors import FetcherError, PortError
from fetcher.domain.tenants import TenantContextRequired

log = structlog.get_logger(__name__)

_ENTERED: Final = "fetcher.entered_tenant"
"""Scope key: the tenant that the request has entered."""


def through_tenant(route: Route) -> Route:
    """The route as the handler of the request's own tenant serves it. Outside of a tenant it raises
    TenantContextRequired: no shared place stands in (spec configuration 11.3)."""
    name = route.name

    async def serve(**path_parameters: str) -> Response:
        return await _entered(request.scope).handlers[name](**path_parameters)

    return replace(route, handler=serve)


class TenantLayer:
    """Between authorization and the body's limits (spec rest-api 2.1).

    Each tenant may have so many requests under way at once, event streams among them: those beyond
    are refused, and no other tenant's wait for them. Requests of a tenant that is cut off end: with
    503 where nothing was sent yet, else with their connection.
    """

    def __init__(
        self, app: AsgiApp, *, finder: RouteFinder, gate: TenantGate, max_requests: int
    ) -> None:
        self._app = app
        self._finder = finder
        self._gate = gate
        self._max_requests = max_requests
        self._under_way: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        route = self._finder.product_route(scope) if scope["type"] == "http" else None
        if scope["type"] != "http" or route is None:
            await self._app(scope, receive, send)
            return
        note(scope, ROUTE, route.path)
        incoming = incoming_of(scope, receive)
        try:
            tenant_id = _named(scope)
            note(scope, TENANT, tenant_id)
            with structlog.contextvars.bound_contextvars(tenant_id=tenant_id):
                await self._in_turn(tenant_id, scope, incoming, send)
        except _NotServed as refused:
            await refuse(challenged(problem_of(refused.error)), incoming, send)

    async def _in_turn(
        self, tenant_id: str, scope: HTTPScope, incoming: Incoming, send: Send
    ) -> None:
        if self._under_way[tenant_id] >= self._max_requests:
            raise _NotServed(too_many_requests(self._max_requests))
        self._under_way[tenant_id] += 1
        try:
            async with AsyncExitStack() as held:
                entered = await self._enter(tenant_id, held)
                scope[_ENTERED] = entered  # type: ignore[typeddict-unknown-key] # open for extensions
                await _Uncut(self._app, entered.cut).serve(scope, incoming, send)
        finally:
            self._under_way[tenant_id] -= 1
            if not self._under_way[tenant_id]:
                del self._under_way[tenant_id]

    async def _enter(self, tenant_id: str, held: AsyncExitStack) -> EnteredTenant:
        """Raise _NotServed."""
        try:
            return await held.enter_async_context(self._gate.enter(tenant_id))
        except PortError as error:
            refused = not_entered(error)
            if problem_of(refused).status >= 500:
                log.error("tenant_not_entered", code=error.code, why=str(error))
        except Exception as error:  # noqa: BLE001 - opening one tenant is a boundary: spec 11.2 has an answer for anything
            refused = not_entered(error)
            log.error("tenant_not_entered", **crash_facts(error))
        raise _NotServed(refused)


def _named(scope: HTTPScope) -> str:
    """Raise _NotServed."""
    try:
        return tenant_of(header(scope, b"authorization")).id
    except FetcherError as error:
        raise _NotServed(error) from None


class _NotServed(Exception):
    """The request ends here, with ``error`` as its answer; nothing was sent yet."""

    def __init__(self, error: FetcherError) -> None:
        super().__init__(error.code)
        self.error = error


class _Uncut:
    """One request, as long as its tenant is not cut off."""

    def __init__(self, app: AsgiApp, cut: trio.Event) -> None:
        self._app = app
        self._cut = cut
        self._has_begun = self._has_ended = False

    async def serve(self, scope: HTTPScope, receive: Receive, send: Send) -> None:
        """Raise _NotServed where the tenant was cut off before anything was sent."""

        async def send_noted(event: ASGISendEvent) -> None:
            # The outermost layer holds the head back until the body's first piece.
            self._has_begun |= event["type"] == "http.response.body"
            await send(event)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._watch, nursery.cancel_scope)
            await self._app(scope, receive, send_noted)
            self._has_ended = True
            nursery.cancel_scope.cancel()
        if self._has_ended:
            return
        log.warning("request_cut", has_begun=self._has_begun)
        if not self._has_begun:
            raise _NotServed(unavailable())

    async def _watch(self, scope: trio.CancelScope) -> None:
        await self._cut.wait()
        scope.cancel()


def _entered(scope: WWWScope) -> EnteredTenant:
    entered: EnteredTenant | None = scope.get(_ENTERED)  # type: ignore[assignment] # open for extensions
    if entered is None:
        raise TenantContextRequired
    return entered
