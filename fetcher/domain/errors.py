"""The errors that cross our own boundaries.

``PortError`` is what an adapter raises, ``FetcherError`` what a use case refuses with. Each carries
a stable code; neither carries a foreign exception's text, cause or context.
"""

import math
import os
from collections.abc import Mapping, Sequence
from typing import Final

from fetcher.domain.ids import ConnectionId, JobId


class PortError(Exception):
    """An outside part failed. ``code`` is stable; ``str`` is fixed text without secrets."""

    code = "port_error"


class PortUnavailable(PortError):
    """Down, unreachable, refused or too slow: worth another try later."""

    code = "unavailable"


class OperationRefused(PortUnavailable):
    """The other side is there and said no: rights, or a state that a person must mend.

    Whoever works in the background waits as for any PortUnavailable; a caller is told of an error
    rather than to come back soon.
    """

    code = "refused"


class QueueMissing(PortUnavailable):
    """The broker is there and has no such queue or exchange: a person must declare it."""

    code = "queue_missing"


class LeftAlone(PortUnavailable):
    """It has failed often lately and was not asked: it is again in ``seconds``."""

    def __init__(self, text: str, *, seconds: float) -> None:
        super().__init__(text)
        self.seconds = seconds


class DeliveryLost(PortUnavailable):
    """The consumer that a delivery came by is gone: it cannot be settled, and comes again."""


class QueueFull(PortUnavailable):
    """The queue takes nothing more for now: whoever has work waits, nothing is wrong."""

    code = "queue_full"


class Unroutable(PortError):
    """The broker has no queue for the message: it was returned."""

    code = "unroutable"


class DuplicateActiveJob(PortError):
    """An active job with the same request hash exists."""

    code = "duplicate_active_job"


class DuplicateIdempotencyKey(PortError):
    """Another job holds the idempotency key."""

    code = "duplicate_idempotency_key"


class DuplicateConfigName(PortError):
    """A live connection with the same config name exists."""

    code = "duplicate_config_name"


class ObjectNotFound(PortError):
    """No object lies under this key."""

    code = "object_not_found"


class RecordCorrupt(PortError):
    """A stored record cannot be read as what it should be; names the field, never its value."""

    code = "record_corrupt"


class StartRefused(Exception):
    """The process must not start: ``problems`` names each setting with its rule."""

    def __init__(self, problems: Sequence[str]) -> None:
        super().__init__("; ".join(problems))
        self.problems = tuple(problems)


class OutputFailed(Exception):
    """Standard output takes nothing any more: what a command prints from now on goes nowhere."""

    def __init__(self, error: OSError) -> None:
        super().__init__(f"standard output: {os.strerror(error.errno or 0)}")
        self.is_unread = isinstance(error, BrokenPipeError)
        """Whoever read it has seen enough, as `head` has."""


class FetcherError(Exception):
    """A use case refuses. ``code`` and ``title`` are the Wire's (spec rest-api 6.2).

    ``message`` may name what the caller sent, and nothing else.
    """

    def __init__(
        self,
        code: str,
        title: str,
        message: str,
        *,
        fields: Mapping[str, str] | None = None,
        entity_type: str | None = None,
        retry_after_seconds: float | None = None,
        error_code: str | None = None,
        details: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.title = title
        self.message = message
        self.fields = dict(fields) if fields else {}
        self.entity_type = entity_type
        self.retry_after_seconds = retry_after_seconds
        self.error_code = error_code
        self.details = dict(details) if details else {}


HOST_REFUSED: Final = "host_refused"
"""A source's failure reason: its host must not be dialled (spec datasources, section 13)."""


class ForbiddenHost(FetcherError):
    """One fixed text: neither the host nor the rule is told."""

    def __init__(self) -> None:
        super().__init__(
            "FET-0414", "Forbidden Host", "Host is not a valid external database endpoint"
        )


class JobNotFound(FetcherError):
    def __init__(self, job_id: JobId) -> None:
        super().__init__("FET-1001", "Entity Not Found", f"no job has the id {job_id}")


class ConnectionNotFound(FetcherError):
    def __init__(self, connection_id: ConnectionId) -> None:
        super().__init__(
            "FET-1001", "Entity Not Found", f"no connection has the id {connection_id}"
        )


class RateLimited(FetcherError):
    """Too many tries on one connection (spec rest-api 8.7); the wait is told in whole seconds."""

    def __init__(self, wait_seconds: float) -> None:
        seconds = max(1, math.ceil(wait_seconds))
        super().__init__(
            "429",
            "Rate Limit Exceeded",
            f"Connection test limit reached. Try again in {seconds} seconds.",
            retry_after_seconds=seconds,
            error_code="rate_limit_exceeded",
        )
