"""What each operation asks of a caller: rest-api 1.1, and the decisions for the new operations."""

import pytest
from quart import Response

from fetcher.api.application import manager_routes
from fetcher.api.routing import Route, Success
from tests.unit.api.harness import CONNECTIONS, JOBS, an_api

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
    ("GET", f"{JOBS}/events"): "fetcher/get",
    ("GET", NEW): "fetcher/get",
    ("GET", f"{NEW}/result"): "fetcher/get",
    ("GET", f"{NEW}/result/preview"): "fetcher/preview",
    ("DELETE", f"{NEW}/result"): "fetcher/delete",
    ("POST", f"{NEW}/cancel"): "fetcher/post",
    ("POST", f"{NEW}/rerun"): "fetcher/post",
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


async def _nothing() -> Response:
    return Response(b"")
