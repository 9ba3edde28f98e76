"""``/v1/fetcher`` (spec rest-api 9; events: design section 8)."""

from contextlib import AbstractContextManager

from quart import Response, request

from fetcher.api.asgi import caller_of, request_id_of
from fetcher.api.event_stream import EVENT_ID, EventStreams
from fetcher.api.idempotency_header import IDEMPOTENCY_KEY, sent_idempotency_key
from fetcher.api.job_list_parameters import cursor_text, job_list_request, list_parameters
from fetcher.api.list_parameters import ListRules
from fetcher.api.models.job_answers import (
    CancelJobAnswer,
    CreateJobAnswer,
    JobAnswer,
    JobListAnswer,
    JobSummary,
)
from fetcher.api.models.jobs import CreateJobRequest
from fetcher.api.path_ids import job_id
from fetcher.api.payloads import read_payload
from fetcher.api.problems import TOO_MANY_STREAMS
from fetcher.api.product_header import optional_product, product_parameter
from fetcher.api.refusals import BODY, ID, NEW_JOB, PAGE
from fetcher.api.request_tenant import request_tenant, tenant_attributes
from fetcher.api.routing import Parameter, Route, Success, answer, large_answer
from fetcher.api.services import ApiServices
from fetcher.commands.audit import Deed
from fetcher.commands.cancel_job import CancelJob
from fetcher.commands.create_job import CreatedJob, CreateJob, JobRules
from fetcher.commands.job_admission import JobAdmission
from fetcher.commands.preflight import Preflight
from fetcher.commands.rerun_job import RerunJob
from fetcher.commands.resolve_sources import ResolveSources
from fetcher.domain.audit import AuditAction, AuditOutcome
from fetcher.domain.job_store import JobPage
from fetcher.domain.jobs import Job
from fetcher.ports import Span
from fetcher.queries.get_job import get_job
from fetcher.queries.list_jobs import list_jobs

ROOT = "/v1/fetcher"
CREATE_SPAN = "service.create_fetcher_job"
INLINE_VALUES = 5000
"""A job with more filter values than these is written out in a thread."""


class JobRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices) -> None:
        settings = services.settings
        self._audit = services.audit
        self._tenant = services.tenant
        self._jobs = services.jobs
        self._list_rules = ListRules(
            max_limit=settings.max_page_limit, max_range_months=settings.max_date_range_months
        )
        self._create = CreateJob(
            resolve=ResolveSources(internal=services.internal_sources, stored=services.connections),
            jobs=services.jobs,
            preflight=Preflight(services.sources, services.operations.breakers),
            admission=JobAdmission(
                services.jobs,
                max_pending=settings.jobs_max_pending,
                max_pending_of_product=settings.jobs_max_pending_per_product,
            ),
            hint=services.hint,
            now=services.now,
            rules=JobRules(
                ceilings=services.ceilings,
                options_enabled=services.settings.options_enabled,
                preflight_test=services.settings.preflight_test,
                keeps_default_schema=services.settings.keeps_default_schema,
                path=ROOT,
            ),
        )
        self._tracer = services.tracer
        self._rerun = RerunJob(jobs=services.jobs, create=self._create)
        self._cancel = CancelJob(
            jobs=services.jobs,
            cleanup=services.cleanup,
            hint=services.hint_event,
            now=services.now,
            key_prefix=services.key_prefix,
        )
        self._streams = EventStreams(
            jobs=services.jobs, stopping=services.stopping, places=services.event_places()
        )

    async def create(self) -> Response:
        key = sent_idempotency_key(request)
        request_id = request_id_of(request.scope)
        judged = await read_payload(
            request,
            CreateJobRequest,
            lambda payload: self._create.judge(payload.to_command(request_id=request_id)),
        )
        async with self._audit.deed(AuditAction.JOB_CREATED, caller_of(request.scope)) as deed:
            with self._create_span() as span:
                created = await self._create(judged, tenant=request_tenant(self._tenant), key=key)
                tell_created(span, created)
            _tell(deed, created)
        return _created(created)

    async def list(self) -> Response:
        product_name = optional_product(request)
        asked = job_list_request(request.args, product_name=product_name, rules=self._list_rules)
        page = JobPage(items=(), next=None)
        if not asked.names_two_products:
            page = await list_jobs(self._jobs, asked.query)
        return await large_answer(
            lambda: JobListAnswer(
                items=[JobSummary.of(job) for job in page.items],
                next_cursor=cursor_text(page.next) if page.next is not None else None,
                limit=asked.query.limit,
            )
        )

    async def cancel(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id, caller = job_id(id), caller_of(request.scope)
        async with self._audit.deed(
            AuditAction.JOB_CANCELLED, caller, target=str(found_id)
        ) as deed:
            cancelled = await self._cancel(found_id)
            deed.product = cancelled.job.product_name
        return answer(CancelJobAnswer.of(cancelled), 200 if cancelled.has_ended else 202)

    async def rerun(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id, caller = job_id(id), caller_of(request.scope)
        async with self._audit.deed(AuditAction.JOB_RERUN, caller, target=str(found_id)) as deed:
            with self._create_span() as span:
                created = await self._rerun(
                    found_id,
                    tenant=request_tenant(self._tenant),
                    request_id=request_id_of(request.scope),
                )
                tell_created(span, created)
            _tell(deed, created)
            deed.target = str(found_id)
        return _created(created)

    def _create_span(self) -> AbstractContextManager[Span]:
        return self._tracer.span(CREATE_SPAN, attributes=tenant_attributes(self._tenant))

    async def get(self, id: str) -> Response:  # noqa: A002 - the route template's name
        job = await get_job(self._jobs, job_id(id))
        if _count_of_values(job) <= INLINE_VALUES:
            return answer(JobAnswer.of(job))
        return await large_answer(lambda: JobAnswer.of(job))

    async def events(self) -> Response:
        return await self._streams.open(
            last_event_id=request.headers.get("Last-Event-ID"),
            product_name=optional_product(request),
            head_only=request.method == "HEAD",
        )


def _tell(deed: Deed, created: CreatedJob) -> None:
    deed.target = str(created.job.id)
    deed.product = created.job.product_name
    if not created.is_new:
        deed.outcome = AuditOutcome.REPEATED


def tell_created(span: Span, created: CreatedJob) -> None:
    span.note("fetcher.job.id", str(created.job.id))
    span.note("fetcher.job.is_new", created.is_new)


def _created(created: CreatedJob) -> Response:
    status = 202 if created.is_new else 200
    location = {"Location": f"{ROOT}/{created.job.id}"}
    return answer(CreateJobAnswer.of(created), status, headers=location)


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
            parameters=[
                Parameter(
                    name=IDEMPOTENCY_KEY,
                    place="header",
                    description="The same key and request answer with the same job for 24 hours",
                    schema={"type": "string", "pattern": "^[!-~]{1,255}$"},
                )
            ],
            refusals=[*BODY, *NEW_JOB, "FET-0402", "FET-0403", "FET-1025"],
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
            path=ROOT,
            name="list_jobs",
            summary="List jobs",
            tag="Fetcher",
            resource="fetcher",
            action="get",
            handler=routes.list,
            parameters=[
                product_parameter("Only jobs of this product"),
                *list_parameters(services.settings.max_page_limit),
            ],
            refusals=[*PAGE, "FET-0403"],
            successes={200: Success(description="One page", model=JobListAnswer)},
        ),
        Route(
            method="POST",
            path=f"{ROOT}/{{id}}/cancel",
            name="cancel_job",
            summary="Ask a job to stop",
            tag="Fetcher",
            resource="fetcher",
            action="post",
            handler=routes.cancel,
            refusals=[*ID, "FET-1022"],
            successes={
                200: Success(description="It is cancelled", model=CancelJobAnswer),
                202: Success(description="Its worker was asked to stop", model=CancelJobAnswer),
            },
        ),
        Route(
            method="POST",
            path=f"{ROOT}/{{id}}/rerun",
            name="rerun_job",
            summary="Run the request of an ended job again",
            tag="Fetcher",
            resource="fetcher",
            action="post",
            handler=routes.rerun,
            refusals=[*ID, *NEW_JOB, "FET-1023"],
            successes={
                202: Success(description="A new job", model=CreateJobAnswer, headers=["Location"]),
                200: Success(
                    description="The job that runs with the same request",
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
                product_parameter("Only jobs of this product"),
                Parameter(
                    name="Last-Event-ID",
                    place="header",
                    description="Go on after this event; without it, from now on",
                    schema={"type": "string", "pattern": f"^{EVENT_ID}$"},
                ),
            ],
            refusals=["FET-0403", TOO_MANY_STREAMS],
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
            refusals=[*ID],
            successes={200: Success(description="The job", model=JobAnswer)},
        ),
    ]
