"""What attempts leave in the store: deleted where it can be, noted for the reaper where not."""

from collections.abc import Sequence

import trio

from fetcher.domain.errors import PortError
from fetcher.domain.job_store import Lease
from fetcher.domain.jobs import Job
from fetcher.domain.result_keys import attempt_keys, result_key
from fetcher.ports import ObjectCleanup, ObjectStore, Upload

TIDY_SECONDS = 10.0
NOTE_SECONDS = 5.0


class LeftObjects:
    """Objects and unfinished uploads of attempts that did not win. No method raises a PortError.

    A deletion right after a failure is not enough where a request had no answer: the store may
    still carry it out. The note, which the reaper works off, brings a second look.
    """

    def __init__(self, *, objects: ObjectStore, cleanup: ObjectCleanup, key_prefix: str) -> None:
        self._objects = objects
        self._cleanup = cleanup
        self._key_prefix = key_prefix
        self._unnoted: set[str] = set()

    def key(self, job: Job, attempt: int) -> str:
        return result_key(self._key_prefix, job.id, attempt)

    def keys(self, job: Job) -> list[str]:
        """Where the attempts so far may have left something."""
        return attempt_keys(self._key_prefix, job.id, job.attempt)

    async def note_lost_attempts(self, job: Job, lease: Lease) -> None:
        """What the attempts before this one may have left is deleted by the reaper: also where this
        process is killed after its record is written and before it has tidied up itself."""
        lost = attempt_keys(self._key_prefix, job.id, lease.attempt - 1)
        if lost:
            # Where that fails, tidying at the end deletes the same, as long as this process lives.
            await self._note(job, lost)

    async def note_failed_upload(self, job: Job, key: str, upload: Upload) -> None:
        """Before anything is said of the attempt's end, which may be the last of this process."""
        if upload.may_appear_late and not await self._shielded_note(job, [key]):
            self._unnoted.add(key)

    async def delete(self, job: Job, keys: Sequence[str]) -> None:
        """Shielded, and at most 15 s."""
        if not keys:
            return
        with trio.CancelScope(shield=True):
            left = list(keys)
            with trio.move_on_after(TIDY_SECONDS):
                for key in keys:
                    try:
                        await self._objects.delete(key)
                        left.remove(key)
                    except PortError:
                        continue
            left += [key for key in keys if key in self._unnoted and key not in left]
            # Both stores are away: the bucket's lifecycle rule is the last resort.
            if not left or await self._shielded_note(job, left):
                self._unnoted.difference_update(keys)

    async def _shielded_note(self, job: Job, keys: Sequence[str]) -> bool:
        with trio.move_on_after(NOTE_SECONDS, shield=True):
            return await self._note(job, keys)
        return False

    async def _note(self, job: Job, keys: Sequence[str]) -> bool:
        try:
            await self._cleanup.note(job.id, keys)
        except PortError:
            return False
        return True
