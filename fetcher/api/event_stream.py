"""Server-sent events of jobs that have ended (design section 8).

The format is that of the HTML standard, section 9.2. An event's id is its place in the order of
ended jobs: milliseconds of ``completed_at``, a dash, the job's id.
"""

import re
from collections import deque
from datetime import UTC, datetime, timedelta
from uuid import UUID

import trio
from quart import Response

from fetcher.api.models.job_answers import EndedJobEvent
from fetcher.api.stream_places import StreamPlaces
from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import EndedCursor
from fetcher.domain.jobs import Job
from fetcher.domain.json_text import dumps
from fetcher.ports import JobRecords
from fetcher.queries.ended_jobs import EndedJobs, cursor_of

POLL_SECONDS = 0.5
COMMENT_SECONDS = 15.0
CONTENT_TYPE = "text/event-stream"

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
EVENT_ID = r"([0-9]{1,14})-([0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12})"
_ID = re.compile(EVENT_ID, re.ASCII)


def event_id(job: Job) -> str:
    """The place of an ended job as text; :func:`parse_event_id` reads it back."""
    place = cursor_of(job)
    milliseconds = (place.completed_at - _EPOCH) // timedelta(milliseconds=1)
    return f"{milliseconds}-{place.job_id}"


def parse_event_id(text: str) -> EndedCursor:
    """Raise ``FET-0403`` for what is no id of an event."""
    match = _ID.fullmatch(text.strip())
    if match is None:
        raise FetcherError("FET-0403", "Invalid header", "Last-Event-ID is no id of an event")
    completed_at = _EPOCH + timedelta(milliseconds=int(match[1]))
    return EndedCursor(completed_at=completed_at, job_id=JobId(UUID(match[2])))


def event_text(job: Job) -> bytes:
    data = dumps(EndedJobEvent.of(job).to_json())
    return f"id: {event_id(job)}\nevent: job.{job.status}\ndata: {data}\n\n".encode()


class EventStreams:
    """Opens streams, as many at a time as there are places."""

    def __init__(self, *, jobs: JobRecords, stopping: trio.Event, places: StreamPlaces) -> None:
        self._jobs = jobs
        self._stopping = stopping
        self._places = places

    async def open(
        self, *, last_event_id: str | None, product_name: str | None, head_only: bool
    ) -> Response:
        """A response without end, or ``FET-0403``, or TooManyStreams."""
        start = parse_event_id(last_event_id) if last_event_id else None
        self._places.check()
        headers = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
        if head_only:
            return Response(b"", content_type=CONTENT_TYPE, headers=headers)
        if start is not None:
            reader = EndedJobs.after(self._jobs, start, product_name=product_name)
        else:
            reader = await EndedJobs.from_now(self._jobs, product_name=product_name)
        stream = _EventStream(reader, self._places, stopping=self._stopping)
        response = Response(stream, content_type=CONTENT_TYPE, headers=headers)
        # The framework's own limit is for answers that end.
        response.timeout = None
        return response


class _EventStream:
    """The bytes of one stream. It ends when the server stops; it reads on only as fast as the
    client takes what it is sent, so that a slow client holds at most one page of events."""

    def __init__(self, reader: EndedJobs, places: StreamPlaces, *, stopping: trio.Event) -> None:
        self._reader = reader
        self._places = places
        self._stopping = stopping
        self._ready: deque[bytes] = deque()
        self._comment_due = 0.0
        self._entered = False

    def __aiter__(self) -> "_EventStream":
        return self

    async def __anext__(self) -> bytes:
        if not self._entered:
            # Counted from here on, where aclose() is certain to follow.
            self._places.take()
            self._entered = True
            return self._due_again(b"retry: 1000\n\n")
        while not self._stopping.is_set():
            if not self._ready:
                self._ready.extend(await self._poll())
            if self._ready:
                return self._due_again(self._ready.popleft())
            if trio.current_time() >= self._comment_due:
                return self._due_again(b": still here\n\n")
            with trio.move_on_after(POLL_SECONDS):
                await self._stopping.wait()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Called by the framework at the end, however it comes."""
        if self._entered:
            self._entered = False
            self._places.leave()

    async def _poll(self) -> list[bytes]:
        try:
            return [event_text(job) for job in await self._reader.next()]
        except PortUnavailable:
            # The stream outlives a record store that is away: the next look finds what ended.
            return []

    def _due_again(self, text: bytes) -> bytes:
        self._comment_due = trio.current_time() + COMMENT_SECONDS
        return text
