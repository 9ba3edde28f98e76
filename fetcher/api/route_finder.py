"""Which route a request will reach, for the layers that judge it before the application does."""

from collections.abc import Sequence

from hypercorn.typing import HTTPScope
from werkzeug.exceptions import HTTPException
from werkzeug.routing import Map

from fetcher.api.asgi import FOUND, note, noted
from fetcher.api.routing import Route


class RouteFinder:
    """Looks once a request, by the application's own map."""

    def __init__(self, routes: Sequence[Route], url_map: Map) -> None:
        self._routes = {route.name: route for route in routes}
        self._urls = url_map.bind("")

    def product_route(self, scope: HTTPScope) -> Route | None:
        """None where the request reaches no route, or one of the system's."""
        name = noted(scope, FOUND)
        if name is None:
            name = self._found(scope)
            note(scope, FOUND, name)
        route = self._routes.get(name)
        return route if route is not None and route.permission is not None else None

    def asks_permission(self, name: str) -> bool:
        """Whether that route is one of the product's."""
        return self._routes[name].permission is not None

    def _found(self, scope: HTTPScope) -> str:
        try:
            name, _ = self._urls.match(scope["path"], method=scope["method"])
        except HTTPException:
            return ""
        return str(name)
