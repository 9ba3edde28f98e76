"""Taking documents one after another, each by one atomic step."""

from collections.abc import AsyncGenerator, Sequence

from pymongo import ReturnDocument

from fetcher.adapters.mongo.document_fields import Document, id_forms
from fetcher.adapters.mongo.server import Collection
from fetcher.domain.ids import JobId


async def claim_each(
    jobs: Collection,
    due: Document,
    lease: Document,
    *,
    order: Sequence[tuple[str, int]],
    job_ids: Sequence[JobId] | None,
) -> AsyncGenerator[Document, None]:
    """Set ``lease`` in what is ``due``, the first in ``order`` first; each document as it then is.

    Runs on the asyncio side. No document comes twice, however short its lease; ``job_ids`` limits
    the choice. Asking for no more than is wanted is up to the caller, since asking takes.
    """
    chosen: Document = {} if job_ids is None else {"$in": id_forms(job_ids)}
    left = None if job_ids is None else len(set(job_ids))
    taken: list[object] = []
    while left is None or len(taken) < left:
        document = await jobs.find_one_and_update(
            {**due, "_id": {**chosen, "$nin": taken}},
            {"$set": lease},
            sort=list(order),
            return_document=ReturnDocument.AFTER,
        )
        if document is None:
            return
        taken.append(document["_id"])
        yield document
