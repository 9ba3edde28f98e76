"""Connections as records: ``/v1/management/connections`` (spec rest-api 8.1 to 8.6).

What opens their databases is in :mod:`fetcher.api.source_routes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import structlog
from quart import Response, request

from fetcher.api.asgi import caller_of
from fetcher.api.list_parameters import MAX_PAGE, MAX_VALUE_BYTES, ListRules, connection_query
from fetcher.api.models.connections import (
    ConnectionAnswer,
    ConnectionListAnswer,
    ConnectionRequest,
    CreateConnectionRequest,
    PatchConnectionRequest,
)
from fetcher.api.path_ids import connection_id
from fetcher.api.payloads import read_payload
from fetcher.api.product_header import optional_product, product_parameter, required_product
from fetcher.api.refusals import BODY, ID, PAGE
from fetcher.api.request_tenant import request_tenant
from fetcher.api.routing import (
    Parameter,
    Route,
    Success,
    answer,
    large_answer,
    no_content,
    query_parameter,
)
from fetcher.api.services import ApiServices
from fetcher.commands.assign_connection import AssignConnection
from fetcher.commands.audit import Deed
from fetcher.commands.connection_refusals import refuse_invalid
from fetcher.commands.create_connection import CreateConnection
from fetcher.commands.delete_connection import DeleteConnection
from fetcher.commands.patch_connection import PatchConnection
from fetcher.domain.audit import AuditAction
from fetcher.domain.connections import ConnectionQuery
from fetcher.domain.errors import FetcherError, PortError
from fetcher.domain.member_paths import member
from fetcher.queries.find_connection import FindConnection
from fetcher.queries.list_connections import ListConnections

ROOT = "/v1/management/connections"
_EMPTY: Final = "empty request body: it has no member that a connection could take"

log = structlog.get_logger(__name__)

R = TypeVar("R", bound=ConnectionRequest)
T = TypeVar("T")


class ConnectionRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices) -> None:
        self._audit = services.audit
        self._tenant = services.tenant
        self._find = FindConnection(
            internal=services.internal_sources,
            stored=services.connections,
            tenant=services.tenant,
        )
        self._list = ListConnections(
            internal=services.internal_sources,
            stored=services.connections,
            on_unlisted=_tell_unlisted,
        )
        self._create = CreateConnection(
            connections=services.connections,
            cipher=services.cipher,
            now=services.now,
            sqlite_allowed=services.settings.sqlite_allowed,
            refuses_host=services.refuses_host,
        )
        self._patch = PatchConnection(
            connections=services.connections,
            jobs=services.jobs,
            cipher=services.cipher,
            forget_schemas=services.forget_schemas,
            recover=services.recover,
            now=services.now,
            sqlite_allowed=services.settings.sqlite_allowed,
            refuses_host=services.refuses_host,
        )
        self._delete = DeleteConnection(
            connections=services.connections,
            jobs=services.jobs,
            forget_schemas=services.forget_schemas,
            recover=services.recover,
            now=services.now,
        )
        self._assign = AssignConnection(connections=services.connections, now=services.now)
        self._rules = ListRules(
            max_limit=services.settings.max_page_limit,
            max_range_months=services.settings.max_date_range_months,
        )

    async def create(self) -> Response:
        product_name = required_product(request)
        new = await read_payload(
            request,
            CreateConnectionRequest,
            _judged(lambda payload: payload.to_command()),
        )
        async with self._deed(AuditAction.CONNECTION_CREATED, product=product_name) as deed:
            connection = await self._create(new, product_name=product_name)
            deed.target = str(connection.id)
        location = {"Location": f"{ROOT}/{connection.id}"}
        return answer(ConnectionAnswer.of(connection), 201, headers=location)

    async def list(self) -> Response:
        product_name = optional_product(request)
        query = connection_query(request.args, product_name=product_name, rules=self._rules)
        return await self._page(query)

    async def list_unassigned(self) -> Response:
        asked = connection_query(request.args, product_name=None, rules=self._rules)
        # the other parameters are accepted, and mean nothing here (spec 5.4)
        query = replace(
            asked, unassigned=True, type=None, host=None, database_name=None, metadata={}
        )
        return await self._page(query)

    async def get(self, id: str) -> Response:  # noqa: A002 - the route template's name
        connection = await self._find(connection_id(id))
        return answer(ConnectionAnswer.of(connection))

    async def patch(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id = connection_id(id)
        change = await read_payload(
            request,
            PatchConnectionRequest,
            _judged(lambda payload: payload.to_command()),
        )
        async with self._deed(AuditAction.CONNECTION_CHANGED, target=str(found_id)) as deed:
            connection = await self._patch(found_id, change, tenant=request_tenant(self._tenant))
            deed.product = connection.product_name
        return answer(ConnectionAnswer.of(connection))

    async def delete(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id = connection_id(id)
        async with self._deed(AuditAction.CONNECTION_DELETED, target=str(found_id)):
            await self._delete(found_id, tenant=request_tenant(self._tenant))
        return no_content()

    async def assign(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id = connection_id(id)
        product_name = required_product(request)
        async with self._deed(
            AuditAction.CONNECTION_ASSIGNED, target=str(found_id), product=product_name
        ):
            connection = await self._assign(found_id, product_name=product_name)
        return answer(ConnectionAnswer.of(connection))

    def _deed(self, action: AuditAction, *, target: str = "", product: str = "") -> Deed:
        caller = caller_of(request.scope)
        return self._audit.deed(action, caller, target=target, product=product)

    async def _page(self, query: ConnectionQuery) -> Response:
        page = await self._list(query)
        return await large_answer(
            lambda: ConnectionListAnswer.of(page, page=query.page, limit=query.limit)
        )


def _tell_unlisted(config_name: str, error: PortError) -> None:
    log.warning("internal_source_not_listed", source=config_name, code=error.code)


def _judged(then: Callable[[R], T]) -> Callable[[R], T]:
    """``then``, of a body that has something to say."""

    def judge(payload: R) -> T:
        if payload.is_empty:
            raise FetcherError("FET-0001", "Invalid payload", _EMPTY)
        unknown = {member("ssl", name): "is not known" for name in payload.unknown_ssl_members}
        refuse_invalid(unknown)
        return then(payload)

    return judge


def connection_routes(services: ApiServices) -> list[Route]:
    routes = ConnectionRoutes(services)
    of_product = product_parameter("Only connections of this product")
    owner = product_parameter("The product that owns it", required=True)
    of_page = _page_parameters(services.settings.max_page_limit)
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
            parameters=[owner],
            refusals=[*BODY, "FET-0402", "FET-0403", "FET-0414", "FET-1002"],
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
            parameters=[of_product, *of_page, *_FILTER_PARAMETERS],
            refusals=[*PAGE, "FET-0403"],
            successes={200: Success(description="One page", model=ConnectionListAnswer)},
        ),
        Route(
            method="GET",
            path=f"{ROOT}/unassigned",
            name="list_unassigned_connections",
            summary="List connections that belong to no product",
            tag="Migration",
            resource="connections",
            action="get",
            handler=routes.list_unassigned,
            parameters=of_page,
            refusals=[*PAGE],
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
            refusals=[*ID],
            successes={200: Success(description="The connection", model=ConnectionAnswer)},
        ),
        Route(
            method="PATCH",
            path=f"{ROOT}/{{id}}",
            name="patch_connection",
            summary="Change a connection that no job reads from",
            tag="Connections",
            resource="connections",
            action="patch",
            handler=routes.patch,
            request=PatchConnectionRequest,
            refusals=[*ID, *BODY, "FET-0402", "FET-0414", "FET-0004", "FET-1002", "FET-1021"],
            successes={200: Success(description="Changed", model=ConnectionAnswer)},
        ),
        Route(
            method="DELETE",
            path=f"{ROOT}/{{id}}",
            name="delete_connection",
            summary="Delete a connection that no job reads from",
            tag="Connections",
            resource="connections",
            action="delete",
            handler=routes.delete,
            refusals=[*ID, "FET-1021"],
            successes={204: Success(description="Deleted", media_type=None)},
        ),
        Route(
            method="POST",
            path=f"{ROOT}/{{id}}/assign",
            name="assign_connection",
            summary="Give a connection without a product its product, once",
            tag="Migration",
            resource="connections",
            action="post",
            handler=routes.assign,
            parameters=[owner],
            refusals=[*ID, "FET-0403", "FET-1015"],
            successes={200: Success(description="Assigned", model=ConnectionAnswer)},
        ),
    ]


def _page_parameters(max_limit: int) -> Sequence[Parameter]:
    return (
        query_parameter(
            "limit", "Items a page", type="integer", minimum=1, maximum=max_limit, default=10
        ),
        query_parameter(
            "page", "Number of the page", type="integer", minimum=1, maximum=MAX_PAGE, default=1
        ),
        query_parameter("sortOrder", "By time of creation", enum=["asc", "desc"], default="desc"),
        query_parameter("startDate", "Created on this day or later", type="string", format="date"),
        query_parameter("endDate", "Created before this day", type="string", format="date"),
    )


_VALUE = {"type": "string", "maxLength": MAX_VALUE_BYTES}
_FILTER_PARAMETERS = (
    query_parameter("type", "Type of database, in any case", **_VALUE),
    query_parameter("host", "Exact host", **_VALUE),
    query_parameter("databaseName", "Exact name of the database", **_VALUE),
)
