"""``/v1/fetcher/validate``: a job is tried, and none is made."""

from quart import Response, request

from fetcher.api.asgi import request_id_of
from fetcher.api.job_routes import ROOT
from fetcher.api.models.job_validation import ValidJobAnswer
from fetcher.api.models.jobs import CreateJobRequest
from fetcher.api.models.schema_validation import SchemaMismatchAnswer
from fetcher.api.payloads import read_payload
from fetcher.api.refusals import ASKED_JOB, BODY
from fetcher.api.request_tenant import request_tenant, tenant_limiter
from fetcher.api.routing import Route, Success, answer
from fetcher.api.services import ApiServices
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.queries.fresh_looks import FreshLooks
from fetcher.queries.validate_job import ValidateJob


class JobValidationRoutes:
    """Decode, call the use case, answer."""

    def __init__(self, services: ApiServices, fresh_looks: FreshLooks) -> None:
        self._tenant = services.tenant
        self._validate = ValidateJob(
            resolve=ResolveSources(internal=services.internal_sources, stored=services.connections),
            sources=services.sources,
            limiter=tenant_limiter(services),
            ceilings=services.ceilings,
            fresh_looks=fresh_looks,
            options_enabled=services.settings.options_enabled,
            keeps_default_schema=services.settings.keeps_default_schema,
        )

    async def validate(self) -> Response:
        request_id = request_id_of(request.scope)
        judged = await read_payload(
            request,
            CreateJobRequest,
            lambda payload: self._validate.judge(payload.to_command(request_id=request_id)),
        )
        tried = await self._validate(judged, tenant=request_tenant(self._tenant))
        if tried.mismatches:
            return answer(SchemaMismatchAnswer.of(tried.mismatches), 422)
        return answer(ValidJobAnswer.of(tried))


def job_validation_routes(services: ApiServices, fresh_looks: FreshLooks) -> list[Route]:
    routes = JobValidationRoutes(services, fresh_looks)
    return [
        Route(
            method="POST",
            path=f"{ROOT}/validate",
            name="validate_job",
            summary="Try a request for an extraction: what it would read, nothing stored",
            tag="Fetcher",
            resource="fetcher",
            action="post",
            handler=routes.validate,
            request=CreateJobRequest,
            refusals=[*BODY, *ASKED_JOB, "FET-0402", "rate_limit_exceeded"],
            successes={
                200: Success(description="What the job would read", model=ValidJobAnswer),
                422: Success(description="What does not fit", model=SchemaMismatchAnswer),
            },
        ),
    ]
