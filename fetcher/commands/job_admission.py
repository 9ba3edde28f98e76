"""How many jobs may wait: a queue that only grows helps nobody who stands in it."""

import math
from collections import OrderedDict
from dataclasses import dataclass

import trio

from fetcher.domain.errors import FetcherError
from fetcher.ports import JobRecords

FRESH_SECONDS = 1.0
"""How old a count may be; what this process has admitted since is added to it."""
RETRY_SECONDS = 10.0
REMEMBERED_PRODUCTS = 1000


class TooManyPendingJobs(FetcherError):
    def __init__(self, message: str) -> None:
        super().__init__(
            "429",
            "Too Many Pending Jobs",
            message,
            retry_after_seconds=RETRY_SECONDS,
            error_code="too_many_pending_jobs",
        )


@dataclass(slots=True)
class _Count:
    waiting: int = 0
    counted_at: float = -math.inf

    @property
    def is_fresh(self) -> bool:
        return trio.current_time() - self.counted_at < FRESH_SECONDS


class JobAdmission:
    """Refuses new jobs while too many are pending: of all products, or of the one that asks.

    0 is no limit. The limits are soft by what other processes admit within a second.
    """

    def __init__(self, jobs: JobRecords, *, max_pending: int, max_pending_of_product: int) -> None:
        self._jobs = jobs
        self._max_pending = max_pending
        self._max_of_product = max_pending_of_product
        self._all = _Count()
        self._products: OrderedDict[str, _Count] = OrderedDict()
        self._counting = trio.Lock()

    async def admit(self, product_name: str) -> None:
        """Count one more job of this product as waiting. Raise TooManyPendingJobs."""
        if not self._max_pending and not self._max_of_product:
            return
        # Without a limit of their own, products share the count of all.
        product = product_name if self._max_of_product else ""
        async with self._counting:
            own = self._products.get(product)
            if own is None or not own.is_fresh or not self._all.is_fresh:
                own = await self._count(product)
        if self._max_pending and self._all.waiting >= self._max_pending:
            raise TooManyPendingJobs(f"{self._max_pending} jobs wait already")
        if self._max_of_product and own.waiting >= self._max_of_product:
            raise TooManyPendingJobs(f"{self._max_of_product} jobs of this product wait already")
        self._all.waiting += 1
        own.waiting += 1

    async def _count(self, product: str) -> _Count:
        asked_at = trio.current_time()
        counts = await self._jobs.pending_counts(product_name=product)
        self._all = _Count(counts.total, asked_at)
        own = self._products[product] = _Count(counts.of_product, asked_at)
        self._products.move_to_end(product)
        if len(self._products) > REMEMBERED_PRODUCTS:
            self._products.popitem(last=False)
        return own
