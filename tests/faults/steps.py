"""The steps of a job's way, by name: where a process may be ended, told to stop, or held up.

One table for the launcher that stops there (:mod:`tests.faults.stepping`), for the tests, and for
what they write into the docs.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final

from fetcher.domain.job_store import Claimed

FOLDER_VARIABLE: Final = "FETCHER_TEST_STEPS"
"""Names the folder in which a step is armed; it alone turns the steps on."""


class How(StrEnum):
    """What becomes of the process that comes to an armed step."""

    KILL = "kill -9"
    STOP = "SIGTERM"
    SLOW_STOP = "SIGTERM, slow step"
    """The step takes longer than the drain and the wait for jobs together."""


class Comes(StrEnum):
    """What has to happen for a job to come by."""

    ALWAYS = "always"
    ON_CANCEL = "cancelled before a worker has it"
    IN_DRAIN = "its process is told to stop"
    AFTER_DEATH = "its first worker was killed"


class Kind(StrEnum):
    BIG = "an upload of two parts"
    SLOW = "rows that take four seconds"


def _always(_answer: object) -> bool:
    return True


def _is_claimed(answer: object) -> bool:
    return isinstance(answer, Claimed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """``places`` are ``module:Class.method``, one for each technology; the process stops when the
    call begins, or once it has returned (``after``) something that ``counts``."""

    name: str
    role: str
    says: str
    places: tuple[str, ...]
    after: bool = False
    counts: Callable[[object], bool] = _always
    comes: Comes = Comes.ALWAYS
    kind: Kind = Kind.BIG
    embedded: bool = True
    """Whether the embedded default comes by."""

    @property
    def hows(self) -> tuple[How, ...]:
        """Who has been told to stop is not told again."""
        return (How.KILL,) if self.comes is Comes.IN_DRAIN else tuple(How)


_MONGO: Final = "fetcher.adapters.mongo"
_SQLITE: Final = "fetcher.adapters.sqlite"
_LOCAL: Final = "fetcher.adapters.local"
_COMMANDS: Final = "fetcher.commands"

_INSERT: Final = (
    f"{_MONGO}.job_records:MongoJobRecords.insert",
    f"{_SQLITE}.jobs:SqliteJobs.insert",
)
_SEND_WORK: Final = (f"{_COMMANDS}.send_work:SendWork.send",)
_DISPATCHED: Final = (
    f"{_MONGO}.dispatch_outbox:MongoDispatchOutbox.mark_dispatched",
    f"{_SQLITE}.dispatch:SqliteDispatch.mark_dispatched",
)
_CANCEL: Final = (
    f"{_MONGO}.job_records:MongoJobRecords.request_cancel",
    f"{_SQLITE}.jobs:SqliteJobs.request_cancel",
)
_LEASES: Final = (f"{_MONGO}.job_leases:MongoJobLeases", f"{_SQLITE}.leases:SqliteLeases")
_EXPIRED: Final = (
    f"{_MONGO}.job_leases:MongoExpiredLeases",
    f"{_SQLITE}.expired:SqliteExpiredLeases",
)
_EVENTS: Final = (f"{_MONGO}.event_outbox:MongoEventOutbox", f"{_SQLITE}.events:SqliteEvents")
_CLEANUP: Final = (
    f"{_MONGO}.object_cleanup:MongoObjectCleanup",
    f"{_SQLITE}.cleanup:SqliteCleanup",
)
_DELIVERY: Final = (
    "fetcher.adapters.amqp.consumer:AmqpDelivery",
    f"{_LOCAL}.work_queue:LocalDelivery",
)
_SEND_EVENT: Final = (f"{_COMMANDS}.send_event:SendEvent.send",)
_S3_OBJECT: Final = "fetcher.adapters.s3.multipart:S3Object"
_FOLDER_UPLOAD: Final = f"{_LOCAL}.object_folder:_FileUpload"
_COMPLETE: Final = ("fetcher.adapters.s3.upload:S3Upload.complete", f"{_FOLDER_UPLOAD}.complete")


def _of(classes: tuple[str, ...], method: str) -> tuple[str, ...]:
    return tuple(f"{each}.{method}" for each in classes)


def _manager(name: str, says: str, places: tuple[str, ...], *, after: bool = False) -> Step:
    return Step(name=name, role="manager", says=says, places=places, after=after)


def _cancel(name: str, says: str, places: tuple[str, ...], *, after: bool = False) -> Step:
    return Step(
        name=name,
        role="manager",
        says=says,
        places=places,
        after=after,
        counts=bool if "claim_due" in places[0] else _always,
        comes=Comes.ON_CANCEL,
        embedded=False,
    )


def _worker(
    name: str,
    says: str,
    places: tuple[str, ...],
    *,
    after: bool = False,
    counts: Callable[[object], bool] = _always,
    kind: Kind = Kind.BIG,
) -> Step:
    return Step(
        name=name,
        role="worker",
        says=says,
        places=places,
        after=after,
        counts=counts,
        kind=kind,
    )


def _drain(name: str, says: str, places: tuple[str, ...], *, after: bool = False) -> Step:
    return Step(
        name=name,
        role="worker",
        says=says,
        places=places,
        after=after,
        comes=Comes.IN_DRAIN,
        kind=Kind.SLOW,
    )


def _takeover(
    name: str,
    says: str,
    places: tuple[str, ...],
    *,
    after: bool = False,
    counts: Callable[[object], bool] = _always,
) -> Step:
    return Step(
        name=name,
        role="worker",
        says=says,
        places=places,
        after=after,
        counts=counts,
        comes=Comes.AFTER_DEATH,
    )


STEPS: Final = (
    _manager("job-judged", "nothing is stored yet", _INSERT),
    _manager("job-inserted", "the job is stored, its caller not answered", _INSERT, after=True),
    _manager("work-signed", "its message is about to be sent", _SEND_WORK),
    _manager(
        "work-confirmed", "the queue has it, the record does not say so", _SEND_WORK, after=True
    ),
    _manager("work-noted", "the record says so", _DISPATCHED, after=True),
    _cancel("cancel-judged", "nothing is stored yet", _CANCEL),
    _cancel("cancel-stored", "the job has ended, its caller is not answered", _CANCEL, after=True),
    _cancel("cancel-event-claimed", "its event is leased", _of(_EVENTS, "claim_due"), after=True),
    _cancel("cancel-event-confirmed", "the exchange has its event", _SEND_EVENT, after=True),
    _worker(
        "message-received",
        "it is not verified yet",
        (f"{_COMMANDS}.verify_work:VerifyWork.verify",),
    ),
    _worker("claim-asked", "nobody has the job", _of(_LEASES, "claim")),
    _worker("job-claimed", "the lease runs", _of(_LEASES, "claim"), after=True, counts=_is_claimed),
    _worker(
        "connections-found",
        "no source is open",
        (f"{_COMMANDS}.job_sources:JobSources.__call__",),
        after=True,
    ),
    _worker(
        "source-opened",
        "its schema was read, the plan stands",
        ("fetcher_engine.facade:Engine.plan_extraction",),
        after=True,
    ),
    _worker("rows-read", "the first ones are sealed", ("fetcher.crypto.sealer:ResultSealer.feed",)),
    _worker(
        "upload-begun",
        "an upload is open, or a file",
        (f"{_S3_OBJECT}.create_upload", f"{_FOLDER_UPLOAD}._flush"),
        after=True,
    ),
    _worker(
        "part-stored",
        "a part of it is there",
        (f"{_S3_OBJECT}.send_part", f"{_FOLDER_UPLOAD}._flush"),
        after=True,
    ),
    _worker(
        "progress-noted",
        "the record tells of rows",
        _of(_LEASES, "note_progress"),
        after=True,
        kind=Kind.SLOW,
    ),
    _worker("lease-renewed", "it runs anew", _of(_LEASES, "renew"), after=True, kind=Kind.SLOW),
    _worker(
        "last-bytes-sealed", "all rows were read", ("fetcher.crypto.sealer:ResultSealer.finish",)
    ),
    _worker("upload-ending", "the last part is not stored", _COMPLETE),
    _worker(
        "parts-stored",
        "all of it is there, and not visible",
        (f"{_S3_OBJECT}.complete_upload", f"{_LOCAL}.object_folder:FolderObjectStore._publish"),
    ),
    _worker("object-visible", "the record says nothing of it", _COMPLETE, after=True),
    _worker("end-judged", "the terminal state is about to be written", _of(_LEASES, "finish")),
    _worker(
        "end-stored", "with the event, which nobody knows of", _of(_LEASES, "finish"), after=True
    ),
    _worker(
        "attempts-tidied",
        "lost attempts have no object",
        (f"{_COMMANDS}.run_job:RunJob.tidy",),
        after=True,
    ),
    _worker("event-claimed", "it is leased", _of(_EVENTS, "claim_due"), after=True, counts=bool),
    _worker("event-signed", "it is about to be sent", _SEND_EVENT),
    _worker(
        "event-confirmed",
        "the exchange has it, the record does not say so",
        _SEND_EVENT,
        after=True,
    ),
    _worker("event-noted", "the record says so", _of(_EVENTS, "mark_published"), after=True),
    _worker("message-ending", "the job's message is unacknowledged", _of(_DELIVERY, "ack")),
    _worker("message-ended", "it is acknowledged", _of(_DELIVERY, "ack"), after=True),
    _drain("release-asked", "the attempt has ended, its lease runs", _of(_LEASES, "release")),
    _drain("job-released", "it is pending again", _of(_LEASES, "release"), after=True),
    _drain("message-returning", "the message is still held", _of(_DELIVERY, "requeue")),
    _drain("message-returned", "it is in the queue again", _of(_DELIVERY, "requeue"), after=True),
    _takeover("lease-ran-out", "the reaper has seen it", _of(_EXPIRED, "requeue")),
    _takeover(
        "job-taken-back",
        "the dead one's job is pending",
        _of(_EXPIRED, "requeue"),
        after=True,
        counts=bool,
    ),
    _takeover(
        "lost-attempt-noted",
        "what it left is to be deleted",
        _of(_CLEANUP, "note"),
        after=True,
    ),
    _takeover("left-object-deleted", "the note still stands", _of(_CLEANUP, "clear")),
    _takeover("left-object-settled", "the note is worked off", _of(_CLEANUP, "clear"), after=True),
)
BY_NAME: Final = {step.name: step for step in STEPS}


@dataclass(frozen=True, slots=True)
class Met:
    """Which process came to the step, and when, in seconds since 1970."""

    pid: int
    at: float


class Armory:
    """A folder in which one process at most finds each armed step."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def arm(self, step: Step, how: How) -> None:
        (self.folder / step.name).write_text(how)

    def take(self, name: str) -> How | None:
        """Whoever is first; a step that is not armed costs one look for a file."""
        taken = self.folder / f"{name}.{os.getpid()}"
        try:
            (self.folder / name).rename(taken)
        except FileNotFoundError:
            return None
        return How(taken.read_text())

    def note(self, name: str, at: float) -> None:
        noted = self.folder / f"{name}.noted"
        noted.write_text(f"{os.getpid()} {at}")
        noted.rename(self.folder / f"{name}.met")

    def met(self, step: Step) -> Met | None:
        """And forget it."""
        try:
            pid, at = (self.folder / f"{step.name}.met").read_text().split()
        except FileNotFoundError:
            return None
        for file in self.folder.glob(f"{step.name}.*"):
            file.unlink()
        return Met(int(pid), float(at))
