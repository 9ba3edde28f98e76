"""``/v1/fetcher`` (spec rest-api 9; events: design section 8)."""

import trio
from quart import Response, request

from fetcher.api.asgi import request_id_of
from fetcher.api.connection_routes import request_tenant
from fetcher.api.event_stream import EventStreams
from fetcher.api.models.jobs import CreateJobAnswer, CreateJobRequest, JobAnswer
from fetcher.api.path_ids import job_id
from fetcher.api.payloads import read_payload
from fetcher.api.product_header import HEADER, optional_product
from fetcher.api.routing import Parameter, Route, Success, answer
from fetcher.api.services import ApiServices
from fetcher.commands.create_job import CreateJob, JobRules
from fetcher.commands.preflight import Preflight
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.jobs import Job
from fetcher.queries.get_job import get_job

ROOT = "/v1/fetcher"
INLINE_VALUES = 5000
"""A job with more filter values than these is written out in a thread."""

_writers = trio.CapacityLimiter(2)


class JobRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices) -> None:
        self._jobs = services.jobs
        self._create = CreateJob(
            resolve=ResolveSources(internal=services.internal_sources, stored=services.connections),
            jobs=services.jobs,
            preflight=Preflight(services.sources),
            hint=services.hint,
            now=services.now,
            rules=JobRules(
                ceilings=services.ceilings,
                options_enabled=services.settings.options_enabled,
                preflight_test=services.settings.preflight_test,
                keeps_default_schema=services.settings.keeps_default_schema,
            ),
        )
        self._streams = EventStreams(
            jobs=services.jobs,
            stopping=services.stopping,
            at_most=services.settings.max_event_streams,
        )

    async def create(self) -> Response:
        request_id = request_id_of(request.scope)
        judged = await read_payload(
            request,
            CreateJobRequest,
            lambda payload: self._create.judge(payload.to_command(request_id=request_id)),
        )
        created = await self._create(judged, tenant=request_tenant())
        status = 202 if created.is_new else 200
        location = {"Location": f"{ROOT}/{created.job.id}"}
        return answer(CreateJobAnswer.of(created), status, headers=location)

    async def get(self, id: str) -> Response:  # noqa: A002 - the route template's name
        job = await get_job(self._jobs, job_id(id))
        if _count_of_values(job) <= INLINE_VALUES:
            return answer(JobAnswer.of(job))
        return await trio.to_thread.run_sync(lambda: answer(JobAnswer.of(job)), limiter=_writers)

    async def events(self) -> Response:
        return await self._streams.open(
            last_event_id=request.headers.get("Last-Event-ID"),
            product_name=optional_product(request),
            head_only=request.method == "HEAD",
        )


def _count_of_values(job: Job) -> int:
    return sum(
        len(values)
        for tables in job.filters.values()
        for fields in tables.values()
        for condition in fields.values()
        for values in condition.values()
    )


def job_routes(services: ApiServices) -> list[Route]:
    routes = JobRoutes(services)
    return [
        Route(
            method="POST",
            path=ROOT,
            name="create_job",
            summary="Ask for an extraction",
            tag="Fetcher",
            resource="fetcher",
            action="post",
            handler=routes.create,
            request=CreateJobRequest,
            successes={
                202: Success(
                    description="Stored, will be run", model=CreateJobAnswer, headers=["Location"]
                ),
                200: Success(
                    description="A repeat: the job that the same request made before",
                    model=CreateJobAnswer,
                    headers=["Location"],
                ),
            },
        ),
        Route(
            method="GET",
            path=f"{ROOT}/events",
            name="job_events",
            summary="Server-sent events of jobs that have ended",
            tag="Fetcher",
            resource="fetcher",
            action="get",
            handler=routes.events,
            parameters=[
                Parameter(name=HEADER, place="header", description="Only jobs of this product"),
                Parameter(
                    name="Last-Event-ID",
                    place="header",
                    description="Go on after this event; without it, from now on",
                ),
            ],
            successes={
                200: Success(description="The stream", media_type="text/event-stream"),
            },
        ),
        Route(
            method="GET",
            path=f"{ROOT}/{{id}}",
            name="get_job",
            summary="Show a job",
            tag="Fetcher",
            resource="fetcher",
            action="get",
            handler=routes.get,
            successes={200: Success(description="The job", model=JobAnswer)},
        ),
    ]
