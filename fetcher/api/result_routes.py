"""``/v1/fetcher/{id}/result`` (decisions, "Result over HTTP")."""

import structlog
from quart import Response, request

from fetcher.api.asgi import caller_of
from fetcher.api.list_parameters import invalid_parameter, last_values, truth_of
from fetcher.api.models.results import PreviewAnswer, preview_json
from fetcher.api.path_ids import job_id
from fetcher.api.problems import TOO_MANY_STREAMS
from fetcher.api.refusals import ID
from fetcher.api.result_stream import CONTENT_TYPE, HMAC, KEY_VERSION, SIZE, ResultStreams
from fetcher.api.routing import JSON, Parameter, Route, Success, no_content, query_parameter
from fetcher.api.services import ApiServices
from fetcher.commands.audit import Deed
from fetcher.commands.delete_result import DeleteResult
from fetcher.domain.audit import AuditAction
from fetcher.domain.errors import FetcherError
from fetcher.domain.ids import JobId
from fetcher.queries.preview_result import PreviewResult
from fetcher.queries.stored_result import StoredResult, stored_result

log = structlog.get_logger(__name__)

RESULT = "/v1/fetcher/{id}/result"
DEFAULT_ROWS = 100
MAX_ROWS = 1000
REDIRECT_SECONDS = 60
REDIRECT = "redirect"


class ResultRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices) -> None:
        settings = services.settings
        self._audit = services.audit
        self._jobs = services.jobs
        self._objects = services.objects
        self._redirects = settings.result_redirect
        self._previews = settings.result_preview
        self._streams = ResultStreams(services.result_places())
        self._preview = PreviewResult(
            jobs=services.jobs,
            objects=services.objects,
            keys=services.keys,
            now=services.now,
            turns=services.stream_rooms.previews,
            tenant=services.tenant,
        )
        self._delete = DeleteResult(jobs=services.jobs, objects=services.objects, now=services.now)

    async def get(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id = job_id(id)
        redirects = truth_of(request.args, REDIRECT, default=True) and self._redirects
        if request.method == "HEAD":
            stored = await stored_result(self._jobs, self._objects, found_id)
            return await self._redirect(stored, redirects) or self._streams.head(stored)
        async with self._deed(AuditAction.RESULT_DOWNLOADED, found_id) as deed:
            stored = await stored_result(self._jobs, self._objects, found_id)
            deed.product = stored.job.product_name
            redirect = await self._redirect(stored, redirects)
            return redirect or self._streams.open(stored, deed.hand_on())

    async def _redirect(self, stored: StoredResult, is_wanted: bool) -> Response | None:
        """None where none is wanted, or the store has no addresses of its own."""
        if not is_wanted:
            return None
        address = await stored.objects.temporary_address(
            stored.facts.path, seconds=REDIRECT_SECONDS
        )
        if address is None:
            return None
        headers = {"Location": address, "Cache-Control": "no-store"}
        return Response(b"", status=307, headers=headers, content_type=CONTENT_TYPE)

    async def preview(self, id: str) -> Response:  # noqa: A002 - the route template's name
        wanted = job_id(id)
        rows = preview_rows(last_values(request.args).get("rows"))
        async with self._deed(AuditAction.RESULT_PREVIEWED, wanted) as deed:
            if not self._previews:
                raise FetcherError(
                    "FET-0007",
                    "Forbidden",
                    "previews are switched off here (RESULT_PREVIEW_ENABLED)",
                )
            preview = await self._preview(wanted, rows=rows)
            deed.product = preview.job.product_name
            body = preview_json(wanted, preview.tables, limit=rows)
        log.info(
            "result_previewed", job_id=str(wanted), product=preview.job.product_name, rows=rows
        )
        return Response(body, content_type=JSON, headers={"Cache-Control": "no-store"})

    async def delete(self, id: str) -> Response:  # noqa: A002 - the route template's name
        found_id = job_id(id)
        async with self._deed(AuditAction.RESULT_DELETED, found_id):
            await self._delete(found_id)
        return no_content()

    def _deed(self, action: AuditAction, target: JobId) -> Deed:
        return self._audit.deed(action, caller_of(request.scope), target=str(target))


def preview_rows(text: str | None) -> int:
    """How many rows of each table are asked for. Raise ``FET-0405``."""
    if text is None:
        return DEFAULT_ROWS
    if not (text.isascii() and text.isdecimal() and len(text) <= 4 and 1 <= int(text) <= MAX_ROWS):
        raise invalid_parameter("rows", f"must be a whole number from 1 to {MAX_ROWS}")
    return int(text)


def result_routes(services: ApiServices) -> list[Route]:
    routes = ResultRoutes(services)
    return [
        Route(
            method="GET",
            path=RESULT,
            name="get_job_result",
            summary="Fetch the stored result, sealed as it is",
            tag="Fetcher",
            resource="fetcher",
            action="get",
            handler=routes.get,
            parameters=[
                query_parameter(
                    REDIRECT, "With false the bytes come from here in any case", type="boolean"
                )
            ],
            refusals=["FET-0405", *ID, "FET-0005", "FET-1024", TOO_MANY_STREAMS],
            successes={
                200: Success(
                    description="The sealed bytes: base64 of nonce, ciphertext and tag",
                    media_type=CONTENT_TYPE,
                    headers=[SIZE],
                    optional_headers=[HMAC, KEY_VERSION],
                ),
                307: Success(
                    description="With RESULT_REDIRECT: an address of the store, good for 60 s",
                    media_type=None,
                    headers=["Location"],
                ),
            },
        ),
        Route(
            method="GET",
            path=f"{RESULT}/preview",
            name="preview_job_result",
            summary="Show the first rows of each table",
            tag="Fetcher",
            resource="fetcher",
            action="preview",
            handler=routes.preview,
            parameters=[
                Parameter(
                    name="rows",
                    place="query",
                    description="Rows of each table",
                    schema={
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_ROWS,
                        "default": DEFAULT_ROWS,
                    },
                )
            ],
            refusals=[*ID, "FET-0005", "FET-0007", "FET-0405", "FET-1024", "FET-1026", "FET-1027"],
            # the document of a service that refuses it to everybody promises no rows
            successes={200: Success(description="The first rows", model=PreviewAnswer)}
            if services.settings.result_preview
            else {},
        ),
        Route(
            method="DELETE",
            path=RESULT,
            name="delete_job_result",
            summary="Delete the stored result",
            tag="Fetcher",
            resource="fetcher",
            action="delete",
            handler=routes.delete,
            refusals=[*ID, "FET-1021", "FET-1024"],
            successes={204: Success(description="Deleted", media_type=None)},
        ),
    ]
