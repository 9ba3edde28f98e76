"""``/v1/management/connections`` (spec rest-api 8)."""

from quart import Response, request

from fetcher.api.asgi import request_id_of
from fetcher.api.list_parameters import ListRules, connection_query
from fetcher.api.models.connections import (
    ConnectionAnswer,
    ConnectionListAnswer,
    ConnectionSchemaAnswer,
    ConnectionTestAnswer,
    CreateConnectionRequest,
)
from fetcher.api.path_ids import connection_id
from fetcher.api.payloads import read_payload
from fetcher.api.product_header import HEADER, optional_product, required_product
from fetcher.api.routing import Parameter, Route, Success, answer
from fetcher.api.services import ApiServices
from fetcher.commands.connection_test import ConnectionTest
from fetcher.commands.create_connection import CreateConnection, NewConnection
from fetcher.domain.errors import FetcherError
from fetcher.queries.get_connection import get_connection
from fetcher.queries.get_connection_schema import GetConnectionSchema
from fetcher.queries.list_connections import list_connections
from fetcher_engine import TenantContext

ROOT = "/v1/management/connections"
SINGLE_TENANT_ID = "default"


def request_tenant() -> TenantContext:
    """On whose behalf the request runs: one tenant only, as long as there are no others."""
    return TenantContext.new(SINGLE_TENANT_ID).with_request_id(request_id_of(request.scope))


class ConnectionRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices) -> None:
        self._connections = services.connections
        self._create = CreateConnection(
            connections=services.connections,
            cipher=services.cipher,
            now=services.now,
            sqlite_allowed=services.settings.sqlite_allowed,
            refuses_host=services.refuses_host,
        )
        self._test = ConnectionTest(
            connections=services.connections, limiter=services.limiter, sources=services.sources
        )
        self._schema = GetConnectionSchema(
            connections=services.connections, limiter=services.limiter, sources=services.sources
        )
        self._rules = ListRules(
            max_limit=services.settings.max_page_limit,
            max_range_months=services.settings.max_date_range_months,
        )

    async def create(self) -> Response:
        product_name = required_product(request)
        new = await read_payload(request, CreateConnectionRequest, _new_connection)
        connection = await self._create(new, product_name=product_name)
        location = {"Location": f"{ROOT}/{connection.id}"}
        return answer(ConnectionAnswer.of(connection), 201, headers=location)

    async def list(self) -> Response:
        product_name = optional_product(request)
        query = connection_query(request.args, product_name=product_name, rules=self._rules)
        page = await list_connections(self._connections, query)
        return answer(ConnectionListAnswer.of(page, page=query.page, limit=query.limit))

    async def get(self, id: str) -> Response:  # noqa: A002 - the route template's name
        connection = await get_connection(self._connections, connection_id(id))
        return answer(ConnectionAnswer.of(connection))

    async def test(self, id: str) -> Response:  # noqa: A002 - the route template's name
        reached = await self._test(connection_id(id), tenant=request_tenant())
        return answer(ConnectionTestAnswer.of(reached))

    async def schema(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found = await self._schema(connection_id(id), tenant=request_tenant())
        return answer(ConnectionSchemaAnswer.of(found.connection, found.snapshot))


def _new_connection(payload: CreateConnectionRequest) -> NewConnection:
    if payload.is_empty:
        raise FetcherError("FET-0001", "Invalid payload", "empty request body")
    return payload.to_command()


def connection_routes(services: ApiServices) -> list[Route]:
    routes = ConnectionRoutes(services)
    product = Parameter(name=HEADER, place="header", description="The product that owns it")
    return [
        Route(
            method="POST",
            path=ROOT,
            name="create_connection",
            summary="Register a connection",
            tag="Connections",
            resource="connections",
            action="post",
            handler=routes.create,
            request=CreateConnectionRequest,
            parameters=[
                Parameter(
                    name=HEADER, place="header", description=product.description, required=True
                )
            ],
            successes={
                201: Success(description="Registered", model=ConnectionAnswer, headers=["Location"])
            },
        ),
        Route(
            method="GET",
            path=ROOT,
            name="list_connections",
            summary="List connections",
            tag="Connections",
            resource="connections",
            action="get",
            handler=routes.list,
            parameters=[product, *_LIST_PARAMETERS],
            successes={200: Success(description="One page", model=ConnectionListAnswer)},
        ),
        Route(
            method="GET",
            path=f"{ROOT}/{{id}}",
            name="get_connection",
            summary="Show a connection",
            tag="Connections",
            resource="connections",
            action="get",
            handler=routes.get,
            successes={200: Success(description="The connection", model=ConnectionAnswer)},
        ),
        Route(
            method="POST",
            path=f"{ROOT}/{{id}}/test",
            name="test_connection",
            summary="Try to reach the connection's database",
            tag="Connections",
            resource="connections",
            action="post",
            handler=routes.test,
            successes={200: Success(description="Reached", model=ConnectionTestAnswer)},
        ),
        Route(
            method="GET",
            path=f"{ROOT}/{{id}}/schema",
            name="get_connection_schema",
            summary="Read the tables and fields of the connection's database",
            tag="Connections",
            resource="connections",
            action="get",
            handler=routes.schema,
            successes={200: Success(description="The schema", model=ConnectionSchemaAnswer)},
        ),
    ]


def _query(name: str, description: str, **schema: object) -> Parameter:
    return Parameter(
        name=name,
        place="query",
        description=description,
        schema=schema or {"type": "string"},
    )


_LIST_PARAMETERS = (
    _query("limit", "Items a page", type="integer", minimum=1, default=10),
    _query("page", "Number of the page", type="integer", minimum=1, default=1),
    _query("sortOrder", "By time of creation", type="string", enum=["asc", "desc"], default="desc"),
    _query("startDate", "Created on this day or later", type="string", format="date"),
    _query("endDate", "Created before this day", type="string", format="date"),
    _query("type", "Type of database, in any case"),
    _query("host", "Exact host"),
    _query("databaseName", "Exact name of the database"),
)
