"""``/v1/fetcher/{id}/result`` (decisions, "Result over HTTP")."""

import structlog
from quart import Response, request

from fetcher.api.list_parameters import invalid_parameter, last_values
from fetcher.api.models.results import PreviewAnswer, preview_json
from fetcher.api.path_ids import job_id
from fetcher.api.problems import TOO_MANY_STREAMS
from fetcher.api.refusals import ID
from fetcher.api.result_stream import CONTENT_TYPE, HMAC, KEY_VERSION, SIZE, ResultStreams
from fetcher.api.routing import JSON, Parameter, Route, Success, no_content
from fetcher.api.services import ApiServices
from fetcher.commands.delete_result import DeleteResult
from fetcher.domain.errors import FetcherError
from fetcher.queries.preview_result import PreviewResult
from fetcher.queries.stored_result import stored_result

log = structlog.get_logger(__name__)

RESULT = "/v1/fetcher/{id}/result"
DEFAULT_ROWS = 100
MAX_ROWS = 1000
REDIRECT_SECONDS = 60


class ResultRoutes:
    """One method an operation: decode, call the use case, answer."""

    def __init__(self, services: ApiServices) -> None:
        settings = services.settings
        self._jobs = services.jobs
        self._objects = services.objects
        self._redirects = settings.result_redirect
        self._previews = settings.result_preview
        self._streams = ResultStreams(at_most=settings.max_result_streams)
        self._preview = PreviewResult(
            jobs=services.jobs, objects=services.objects, keys=services.keys
        )
        self._delete = DeleteResult(jobs=services.jobs, objects=services.objects, now=services.now)

    async def get(self, id: str) -> Response:  # noqa: A002 - the route template's name
        stored = await stored_result(self._jobs, self._objects, job_id(id))
        if self._redirects:
            address = await stored.objects.temporary_address(
                stored.facts.path, seconds=REDIRECT_SECONDS
            )
            if address is not None:
                headers = {"Location": address, "Cache-Control": "no-store"}
                return Response(b"", status=307, headers=headers, content_type=CONTENT_TYPE)
        return self._streams.open(stored, head_only=request.method == "HEAD")

    async def preview(self, id: str) -> Response:  # noqa: A002 - the route template's name
        wanted = job_id(id)
        rows = _rows(last_values(request.args).get("rows"))
        if not self._previews:
            raise FetcherError(
                "FET-0007", "Forbidden", "previews are switched off here (RESULT_PREVIEW_ENABLED)"
            )
        preview = await self._preview(wanted, rows=rows)
        log.info(
            "result_previewed", job_id=str(wanted), product=preview.job.product_name, rows=rows
        )
        body = preview_json(wanted, preview.tables, limit=rows)
        return Response(body, content_type=JSON, headers={"Cache-Control": "no-store"})

    async def delete(self, id: str) -> Response:  # noqa: A002 - the route template's name
        await self._delete(job_id(id))
        return no_content()


def _rows(text: str | None) -> int:
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
            refusals=[*ID, "FET-0005", "FET-1024", TOO_MANY_STREAMS],
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
            successes={200: Success(description="The first rows", model=PreviewAnswer)},
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
