"""The applications: routes, problem mapping and middlewares, assembled here and nowhere else."""

from collections.abc import Sequence

import structlog
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from fetcher.api.asgi import OF_SOURCE, ROUTE, AsgiApp, note
from fetcher.api.authorization import Authorization
from fetcher.api.connection_routes import connection_routes
from fetcher.api.cors import Cors
from fetcher.api.job_routes import job_routes
from fetcher.api.job_validation_routes import job_validation_routes
from fetcher.api.metrics import HttpMetrics
from fetcher.api.observation import Observed, crash_facts
from fetcher.api.openapi import openapi_document
from fetcher.api.problems import problem_of
from fetcher.api.request_limits import RequestLimits
from fetcher.api.result_routes import result_routes
from fetcher.api.routing import Route, json_response
from fetcher.api.security_headers import SecurityHeaders
from fetcher.api.services import ApiServices, HttpSettings
from fetcher.api.source_routes import source_routes
from fetcher.api.swagger_page import swagger_routes
from fetcher.api.system_routes import document_route, system_routes
from fetcher.domain.json_text import dumps
from fetcher.ports import Authorizer

__all__ = ["ApiServices", "assembled", "create_app"]

log = structlog.get_logger(__name__)

_TOLD = ("errorCode", "stage", "reason", "source")
"""What of a source's failure the caller and the log are both told."""


def create_app(services: ApiServices) -> QuartTrio:
    """The Manager's API with the system routes. Its OpenAPI document is made once, here."""
    routes = manager_routes(services)
    document = b""
    routes.append(document_route(lambda: document))
    described = [route for route in routes if route.in_document]
    authorizer = services.authorizer
    document = dumps(
        openapi_document(
            described,
            services.settings.document,
            asks_for_token=authorizer is not None,
            relays=authorizer is not None and authorizer.relays,
        )
    ).encode()
    return assembled(
        routes,
        metrics=services.system.http_metrics,
        settings=services.settings,
        authorizer=authorizer,
    )


def manager_routes(services: ApiServices) -> list[Route]:
    """Every route of the Manager but that of the document, which is made from them."""
    return [
        *system_routes(services.system),
        *connection_routes(services),
        *source_routes(services),
        *job_routes(services),
        *job_validation_routes(services),
        *result_routes(services),
        *swagger_routes(),
    ]


def assembled(
    routes: Sequence[Route],
    *,
    metrics: HttpMetrics,
    settings: HttpSettings,
    authorizer: Authorizer | None = None,
) -> QuartTrio:
    """An application with these routes behind the middlewares, in the order of spec rest-api 2.1:
    observation with the guard against crashes, headers for browsers, cross-origin rules, the head's
    size, authorization, the body's limits, routing."""
    app = QuartTrio(__name__, static_folder=None)
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    templates = {}
    for route in routes:
        app.add_url_rule(route.rule, route.name, route.handler, methods=[route.method])
        templates[route.name] = route.path

    authorization = Authorization(routes, app.url_map, authorizer)

    async def note_route() -> None:
        if request.endpoint is not None:
            note(request.scope, ROUTE, templates[request.endpoint])
            authorization.confirm(request.scope, request.endpoint)

    async def explain(error: Exception) -> Response:
        problem = problem_of(
            error, operation=request.endpoint, path=f"{request.method} {request.path}"
        )
        if problem.is_of_source:
            note(request.scope, OF_SOURCE, "yes")
            told = {name: problem.body[name] for name in _TOLD if name in problem.body}
            log.info("source_failed", operation=request.endpoint, **told)
        elif problem.status >= 500:
            facts = {} if isinstance(error, HTTPException) else crash_facts(error)
            log.error("request_failed", operation=request.endpoint, **facts)
        return json_response(problem.body, problem.status, headers=problem.headers)

    app.before_request(note_route)
    app.register_error_handler(Exception, explain)
    inner: AsgiApp = app.asgi_app
    limited = RequestLimits(inner, admit=authorization.admit, body_seconds=settings.body_seconds)
    app.asgi_app = Observed(  # type: ignore[method-assign] # quart's documented way of wrapping
        SecurityHeaders(Cors(limited, origins=settings.cors_origins)), metrics=metrics
    )
    return app
