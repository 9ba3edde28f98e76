"""What each operation asks of a caller: rest-api 1.1, and the decisions for the new operations."""

import re
from collections.abc import Mapping
from pathlib import Path

import pytest
import trio
from hypothesis import given, settings
from hypothesis import strategies as st
from quart import Response

from fetcher.api.application import manager_routes
from fetcher.api.asgi import ROUTE, noted
from fetcher.api.route_finder import RouteFinder
from fetcher.api.routing import Route, Success
from fetcher.domain.access import Permission, Refusal, Refused, Verdict
from tests.unit.api.asgi_client import a_scope, answer_of
from tests.unit.api.harness import CONNECTIONS, JOBS, an_api

SECURITY = Path(__file__).parents[3] / "docs" / "security.md"
NEW = f"{JOBS}/{{id}}"
PERMISSIONS = {
    ("POST", CONNECTIONS): "connections/post",
    ("GET", CONNECTIONS): "connections/get",
    ("POST", f"{CONNECTIONS}/validate-schema"): "connections/post",
    ("GET", f"{CONNECTIONS}/unassigned"): "connections/get",
    ("POST", f"{CONNECTIONS}/{{id}}/assign"): "connections/post",
    ("GET", f"{CONNECTIONS}/{{id}}"): "connections/get",
    ("POST", f"{CONNECTIONS}/{{id}}/test"): "connections/post",
    ("GET", f"{CONNECTIONS}/{{id}}/schema"): "connections/get",
    ("PATCH", f"{CONNECTIONS}/{{id}}"): "connections/patch",
    ("DELETE", f"{CONNECTIONS}/{{id}}"): "connections/delete",
    ("POST", JOBS): "fetcher/post",
    ("GET", JOBS): "fetcher/get",
    ("POST", f"{JOBS}/validate"): "fetcher/post",
    ("GET", f"{JOBS}/events"): "fetcher/get",
    ("GET", NEW): "fetcher/get",
    ("GET", f"{NEW}/result"): "fetcher/get",
    ("GET", f"{NEW}/result/preview"): "fetcher/preview",
    ("DELETE", f"{NEW}/result"): "fetcher/delete",
    ("POST", f"{NEW}/cancel"): "fetcher/post",
    ("POST", f"{NEW}/rerun"): "fetcher/post",
    ("GET", "/v1/operations/jobs"): "operations/get",
    ("GET", "/v1/operations/audit"): "operations/audit",
    ("POST", "/v1/operations/dead-letters/redrive"): "operations/post",
}


async def test_every_product_route_names_what_it_asks_and_no_system_route_does() -> None:
    routes = manager_routes(an_api().services)
    assert {route.tag for route in routes if route.permission is None} == {"System"}
    for route in routes:
        if route.permission is None:
            assert not route.path.startswith("/v1/")
            continue
        asked = f"{route.permission.resource}/{route.permission.action}"
        assert PERMISSIONS.get((route.method, route.path), asked) == asked, route.name
        assert route.permission.resource in {"connections", "fetcher", "operations"}


async def test_security_page_names_every_permission_that_is_asked() -> None:
    routes = manager_routes(an_api().services)
    asked = {
        (route.permission.resource, route.permission.action) for route in routes if route.permission
    }
    page = SECURITY.read_text(encoding="utf-8")
    assert set(re.findall(r"`(\w+)` / `(\w+)`", page)) == asked


async def test_the_walk_sees_the_routes_that_are_served() -> None:
    api = an_api()
    served = {rule.endpoint for rule in api.app.url_map.iter_rules()}
    assert served == {route.name for route in manager_routes(api.services)} | {"openapi"}


@pytest.mark.parametrize(
    ("path", "resource", "action"),
    [
        ("/v1/anything", "", ""),
        ("/v1/anything", "fetcher", ""),
        ("/v1/anything", "", "get"),
        ("/elsewhere", "fetcher", ""),
        ("/elsewhere", "", "get"),
    ],
)
def test_product_route_without_a_permission_is_refused(
    path: str, resource: str, action: str
) -> None:
    with pytest.raises(ValueError, match="the route open_to_all must name its resource and action"):
        Route(
            method="GET",
            path=path,
            name="open_to_all",
            summary="",
            tag="Fetcher",
            handler=_nothing,
            successes={200: Success(description="")},
            resource=resource,
            action=action,
        )


class _Asked:
    """Counts who asks, and lets nobody in."""

    relays = False

    def __init__(self) -> None:
        self.count = 0

    async def judge(
        self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
    ) -> Verdict:
        self.count += 1
        return Refused(Refusal.FORBIDDEN)


# Most paths are plain and right, so that most examples reach a route.
BEFORE = st.sampled_from([*[""] * 12, "/", "//", "/.", "http://elsewhere.test", "http://", "*"])
ROOTS = st.sampled_from(
    [*[CONNECTIONS, JOBS] * 4, "/v1", "/V1/fetcher", "/v1/%66etcher", "/health"]
)
WITHIN = st.sampled_from(
    ["", "/", "/x", "/events", "/unassigned", "/test", "/schema", "//", "/.", "/..", "%2f", ";a"]
)
METHODS = st.sampled_from(
    [*["GET", "POST"] * 4, "HEAD", "PUT", "PATCH", "DELETE", "OPTIONS", "get"]
)


@settings(max_examples=80, deadline=None)
@given(before=BEFORE, root=ROOTS, within=st.lists(WITHIN, max_size=2), method=METHODS)
def test_whatever_reaches_a_product_route_is_judged_first(
    before: str, root: str, within: list[str], method: str
) -> None:
    path = (before + root + "".join(within)).encode()

    async def reached(asked: _Asked) -> tuple[str | None, int | None]:
        scope = a_scope(method, path)
        talk, _ = await answer_of(an_api(authorizer=asked).app, scope)
        return noted(scope, ROUTE), talk.status

    async def compare() -> None:
        asked = _Asked()
        judged = await reached(asked)
        with pytest.MonkeyPatch.context() as patch:
            # A blind gate: the application alone says what it would have run.
            patch.setattr(RouteFinder, "product_route", lambda *_: None)
            run = await reached(_Asked())
        is_product = run[0] is not None and run[0].startswith("/v1/")
        assert judged[0] == run[0]
        assert (judged[1], asked.count) == ((403, 1) if is_product else (run[1], 0))
        assert not is_product or run[1] == 500

    trio.run(compare)


async def _nothing() -> Response:
    return Response(b"")
