"""The applications: routes, problem mapping and middlewares, assembled here and nowhere else."""

from collections.abc import Mapping, Sequence

import structlog
from quart import Response, request
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException

from fetcher.api.asgi import OF_SOURCE, ROUTE, AsgiApp, note
from fetcher.api.audit_routes import audit_routes
from fetcher.api.authorization import Authorization
from fetcher.api.connection_routes import connection_routes
from fetcher.api.console_page import console_routes
from fetcher.api.cors import Cors
from fetcher.api.http_exchange import NO_TIMEOUT, HttpExchange
from fetcher.api.job_routes import job_routes
from fetcher.api.job_validation_routes import job_validation_routes
from fetcher.api.judged_in_turn import JudgedInTurn
from fetcher.api.metrics import HttpMetrics
from fetcher.api.observation import Observed, crash_facts
from fetcher.api.openapi import openapi_document
from fetcher.api.operations_routes import operations_routes
from fetcher.api.problems import problem_of
from fetcher.api.request_limits import RequestBodies, RequestHeads
from fetcher.api.result_routes import result_routes
from fetcher.api.route_finder import RouteFinder
from fetcher.api.routing import Handler, Route, json_response
from fetcher.api.security_headers import SecurityHeaders
from fetcher.api.services import ApiServices, HttpSettings
from fetcher.api.source_routes import source_routes
from fetcher.api.swagger_page import swagger_routes
from fetcher.api.system_routes import document_route, system_routes
from fetcher.api.tenancy import TenantGate
from fetcher.api.tenant_layer import TenantLayer, through_tenant
from fetcher.domain.json_text import dumps
from fetcher.ports import UNTRACED, Authorizer, Tracer
from fetcher.queries.fresh_looks import FreshLooks

__all__ = ["ApiServices", "assembled", "create_app", "tenant_handlers"]

log = structlog.get_logger(__name__)

_TOLD = ("errorCode", "stage", "reason", "source")
"""What of a source's failure the caller and the log are both told."""


def create_app(services: ApiServices, *, tenants: TenantGate | None = None) -> QuartTrio:
    """The Manager's API with the system routes. Its OpenAPI document is made once, here.

    With ``tenants`` every product operation is served by the handlers of the request's own tenant
    (spec configuration 11.2); ``services`` are :func:`fetcher.api.no_tenant.services_of_no_tenant`
    then, since the application itself acts for nobody.
    """
    routes = manager_routes(services)
    if tenants is not None:
        routes = [through_tenant(route) if route.permission else route for route in routes]
    document = b""
    routes.append(document_route(lambda: document))
    described = [route for route in routes if route.in_document]
    authorizer = services.authorizer
    document = dumps(
        openapi_document(
            described,
            services.settings.document,
            ceilings=services.ceilings,
            asks_for_token=authorizer is not None,
            relays=authorizer is not None and authorizer.relays,
            has_tenants=tenants is not None,
        )
    ).encode()
    return assembled(
        routes,
        metrics=services.system.http_metrics,
        settings=services.settings,
        authorizer=authorizer,
        tracer=services.tracer,
        tenants=tenants,
    )


def tenant_handlers(services: ApiServices) -> Mapping[str, Handler]:
    """What serves one tenant's product operations, by the name of the route: the tenant's part of
    an application that was made with a gate."""
    return {route.name: route.handler for route in _product_routes(services)}


def manager_routes(services: ApiServices) -> list[Route]:
    """Every route of the Manager but that of the document, which is made from them."""
    pages = [*swagger_routes(), *(console_routes() if services.settings.console else ())]
    return [*system_routes(services.system), *_product_routes(services), *pages]


def _product_routes(services: ApiServices) -> list[Route]:
    fresh_looks = FreshLooks(services.forget_schemas)
    return [
        *connection_routes(services),
        *source_routes(services, fresh_looks),
        *job_routes(services),
        *job_validation_routes(services, fresh_looks),
        *result_routes(services),
        *operations_routes(services),
        *audit_routes(services),
    ]


def assembled(
    routes: Sequence[Route],
    *,
    metrics: HttpMetrics,
    settings: HttpSettings,
    authorizer: Authorizer | None = None,
    tracer: Tracer = UNTRACED,
    tenants: TenantGate | None = None,
) -> QuartTrio:
    """An application with these routes behind the middlewares, in the order of spec rest-api 2.1:
    observation with the guard against crashes, headers for browsers, cross-origin rules, the head's
    size, authorization, the tenant where there are ``tenants``, the body's limits, routing."""
    app = QuartTrio(__name__, static_folder=None)
    app.asgi_http_class = HttpExchange
    app.config["RESPONSE_TIMEOUT"] = NO_TIMEOUT
    app.config["PROVIDE_AUTOMATIC_OPTIONS"] = False
    app.url_map.strict_slashes = False
    app.url_map.merge_slashes = False
    templates = {}
    for route in routes:
        app.add_url_rule(route.rule, route.name, route.handler, methods=[route.method])
        templates[route.name] = route.path

    finder = RouteFinder(routes, app.url_map)
    if authorizer is not None and tenants is not None:
        authorizer = JudgedInTurn(authorizer)
    authorization = Authorization(finder, authorizer)

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
    inner: AsgiApp = RequestBodies(app.asgi_app, body_seconds=settings.body_seconds)
    if tenants is not None:
        inner = TenantLayer(
            inner, finder=finder, gate=tenants, max_requests=settings.max_tenant_requests
        )
    limited = RequestHeads(inner, admit=authorization.admit)
    app.asgi_app = Observed(  # type: ignore[method-assign] # quart's documented way of wrapping
        SecurityHeaders(Cors(limited, origins=settings.cors_origins)),
        metrics=metrics,
        tracer=tracer,
        trusts_sent_trace=settings.trusts_sent_trace,
    )
    return app
