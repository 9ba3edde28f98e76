"""What opens a connection's database: ``/v1/management/connections`` (spec rest-api 8.7 to 8.9)."""

from typing import Final

from quart import Response, request

from fetcher.api.asgi import caller_of
from fetcher.api.connection_routes import ROOT
from fetcher.api.list_parameters import truth_of
from fetcher.api.models.connections import ConnectionSchemaAnswer, ConnectionTestAnswer
from fetcher.api.models.schema_validation import (
    SchemaMismatchAnswer,
    SchemaValidAnswer,
    ValidateSchemaRequest,
)
from fetcher.api.path_ids import connection_id
from fetcher.api.payloads import read_payload
from fetcher.api.refusals import BODY, ID, OPENED_SOURCE, SOURCE_FAILED
from fetcher.api.request_tenant import request_tenant, tenant_limiter
from fetcher.api.routing import Route, Success, answer, large_answer, query_parameter
from fetcher.api.services import ApiServices
from fetcher.commands.connection_test import ConnectionTest
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.audit import AuditAction
from fetcher.queries.find_connection import FindConnection
from fetcher.queries.fresh_looks import FreshLooks
from fetcher.queries.get_connection_schema import GetConnectionSchema
from fetcher.queries.validate_schema import ValidateSchema

DETAILS: Final = "details"


class SourceRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices, fresh_looks: FreshLooks) -> None:
        self._audit = services.audit
        self._tenant = services.tenant
        internal, stored = services.internal_sources, services.connections
        find = FindConnection(internal=internal, stored=stored, tenant=services.tenant)
        limiter, sources = tenant_limiter(services), services.sources
        self._test = ConnectionTest(
            find=find, limiter=limiter, sources=sources, recover=services.recover
        )
        self._schema = GetConnectionSchema(find=find, limiter=limiter, sources=sources)
        self._validate = ValidateSchema(
            configured=ResolveSources(internal=internal, stored=stored).configured,
            sources=sources,
            ceilings=services.ceilings,
            fresh_looks=fresh_looks,
            keeps_default_schema=services.settings.keeps_default_schema,
        )

    async def test(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id, caller = connection_id(id), caller_of(request.scope)
        async with self._audit.deed(AuditAction.CONNECTION_TESTED, caller, target=str(found_id)):
            reached = await self._test(found_id, tenant=request_tenant(self._tenant))
        return answer(ConnectionTestAnswer.of(reached))

    async def schema(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id, details = connection_id(id), truth_of(request.args, DETAILS, default=False)
        found = await self._schema(found_id, tenant=request_tenant(self._tenant))
        return await large_answer(
            lambda: ConnectionSchemaAnswer.of(found.connection, found.snapshot, details=details)
        )

    async def validate(self) -> Response:
        asked = await read_payload(
            request,
            ValidateSchemaRequest,
            lambda payload: self._validate.judge(payload.to_command()),
        )
        mismatches = await self._validate(asked, tenant=request_tenant(self._tenant))
        if mismatches:
            return answer(SchemaMismatchAnswer.of(mismatches), 422)
        return answer(SchemaValidAnswer())


def source_routes(services: ApiServices, fresh_looks: FreshLooks) -> list[Route]:
    routes = SourceRoutes(services, fresh_looks)
    return [
        Route(
            method="POST",
            path=f"{ROOT}/validate-schema",
            name="validate_schema",
            summary="Compare data sources, tables and fields with what is there",
            tag="Connections",
            resource="connections",
            action="post",
            handler=routes.validate,
            request=ValidateSchemaRequest,
            refusals=[*BODY, *OPENED_SOURCE, "FET-0401", "FET-0402", "FET-1061", "FET-1062"],
            successes={
                200: Success(description="Everything is there", model=SchemaValidAnswer),
                422: Success(description="What is not there", model=SchemaMismatchAnswer),
            },
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
            refusals=[*ID, *OPENED_SOURCE, *SOURCE_FAILED, "rate_limit_exceeded"],
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
            parameters=[
                query_parameter(
                    DETAILS, "Types, keys and estimates beside the names", type="boolean"
                )
            ],
            refusals=["FET-0405", *ID, *OPENED_SOURCE, *SOURCE_FAILED, "rate_limit_exceeded"],
            successes={200: Success(description="The schema", model=ConnectionSchemaAnswer)},
        ),
    ]
