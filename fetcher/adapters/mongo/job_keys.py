"""The idempotency keys of a job: in its record a text or, of several, an array of texts.

One unique index serves both, since MongoDB indexes each element of an array; and a look for one key
finds it in either.
"""

from collections.abc import Callable
from typing import Final, TypeAlias

from pymongo.errors import DuplicateKeyError

from fetcher.adapters.mongo.document_fields import Document, id_filter
from fetcher.adapters.mongo.job_changes import CHANGES_TOO_OFTEN, TRIES
from fetcher.adapters.mongo.server import Turn
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.ids import JobId
from fetcher.domain.job_store import MOST_IDEMPOTENCY_KEYS

FIELD: Final = "idempotency_key"
Keys: TypeAlias = tuple[str, ...]


async def give_key(turn: Turn, job_id: JobId, key: str) -> bool | None:
    """Whether the job holds the key now; None where another one does."""

    def added(keys: Keys) -> Keys | None:
        if key in keys:
            return keys
        return (*keys, key) if len(keys) < MOST_IDEMPOTENCY_KEYS else None

    # By its first element: what stands in the field is an array, and of texts.
    open_array: Document = {
        f"{FIELD}.0": {"$type": "string"},
        f"{FIELD}.{MOST_IDEMPOTENCY_KEYS - 1}": {"$exists": False},
    }
    at_once = (open_array, {"$addToSet": {FIELD: key}})
    try:
        return await _change(turn, job_id, added, at_once=at_once)
    except DuplicateKeyError:
        return None


async def forget_key(turn: Turn, job_id: JobId, key: str) -> None:
    # Of three, two are left: never an empty array, of which the index would allow one only.
    long_array: Document = {f"{FIELD}.2": {"$exists": True}}
    at_once = (long_array, {"$pull": {FIELD: key}})
    await _change(
        turn, job_id, lambda keys: tuple(each for each in keys if each != key), at_once=at_once
    )


async def _change(
    turn: Turn,
    job_id: JobId,
    change: Callable[[Keys], Keys | None],
    *,
    at_once: tuple[Document, Document],
) -> bool:
    """False where there is no such job, or ``change`` is against it.

    ``at_once`` is a condition and the same change where that holds: it needs no second try, however
    many change the keys together. Else by compare-and-set: its losers soon find an array, or find
    it full.
    """
    condition, without_reading = at_once
    for _ in range(TRIES):
        together = {**id_filter(job_id), **condition}
        if (await turn.jobs.update_one(together, without_reading)).matched_count == 1:
            return True
        document = await turn.jobs.find_one(id_filter(job_id), projection=[FIELD])
        if document is None:
            return False
        stored = document.get(FIELD)
        keys = _keys_of(stored)
        changed = change(keys) if keys is not None else None
        if changed is None or changed == keys:
            return changed is not None
        # An array matches its own elements too, of which a text has none.
        is_text: Document = {f"{FIELD}.0": {"$exists": False}} if isinstance(stored, str) else {}
        unchanged: Document = {**id_filter(job_id), FIELD: stored, **is_text}
        # Without a key there is no field: of an empty array the index would allow one only.
        value = changed[0] if len(changed) == 1 else list(changed)
        update: Document = {"$set": {FIELD: value}} if changed else {"$unset": {FIELD: ""}}
        if (await turn.jobs.update_one(unchanged, update)).matched_count == 1:
            return True
    raise PortUnavailable(CHANGES_TOO_OFTEN)


def _keys_of(stored: object) -> Keys | None:
    """None for what is neither a text nor texts."""
    if stored is None:
        return ()
    values = stored if isinstance(stored, list) else [stored]
    if all(isinstance(value, str) for value in values):
        return tuple(values)
    return None
