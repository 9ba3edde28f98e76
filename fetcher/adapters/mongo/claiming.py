"""Taking documents, for work that does no harm when it is done twice."""

from collections.abc import Sequence

from fetcher.adapters.mongo.document_fields import Document, id_forms
from fetcher.adapters.mongo.server import Collection
from fetcher.domain.ids import JobId


async def claim_together(
    jobs: Collection,
    due: Document,
    lease: Document,
    *,
    order: Sequence[tuple[str, int]],
    job_ids: Sequence[JobId] | None,
    limit: int,
) -> list[Document]:
    """Set ``lease`` in the first ``limit`` of what is ``due``, in ``order``, as they then are.

    Runs on the asyncio side. Two calls for documents that are known by ``job_ids``, else three,
    however many they are. Nobody else is given a document meanwhile, unless he asks in the same
    millisecond.
    """
    ids = None if job_ids is None else id_forms(job_ids)
    if job_ids is None or len(job_ids) > limit:
        among: Document = due if ids is None else {**due, "_id": {"$in": ids}}
        found = jobs.find(among, projection=["_id"]).sort(list(order)).limit(limit)
        ids = [document["_id"] async for document in found]
    if not ids:
        return []
    chosen: Document = {"_id": {"$in": ids}}
    written = await jobs.update_many({**chosen, **due}, {"$set": lease})
    if not written.matched_count:
        return []
    return await claimed_with(jobs, {**chosen, **lease}, order=order, limit=limit)


async def claimed_with(
    jobs: Collection, lease: Document, *, order: Sequence[tuple[str, int]], limit: int
) -> list[Document]:
    """What has exactly this lease: also where nobody was told whether it was set.

    Runs on the asyncio side.
    """
    claimed = jobs.find(lease).sort(list(order)).limit(limit)
    return [document async for document in claimed]
