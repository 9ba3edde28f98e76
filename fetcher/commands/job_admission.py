"""How many jobs may wait: a queue that only grows helps nobody who stands in it."""

import math
from collections import OrderedDict
from copy import copy
from dataclasses import dataclass

import trio

from fetcher.domain.errors import FetcherError, PortUnavailable
from fetcher.ports import JobRecords

FRESH_SECONDS = 1.0
"""How old a count may be; what this process has admitted since is added to it."""
ROOMY_SECONDS = 5.0
"""The same while less than half of the limit is taken: counting is dear, and what others admit in
this time does not fill the other half."""
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

    def is_roomy(self, *, limit: int) -> bool:
        return self.waiting * 2 < limit or not limit

    def is_fresh(self, *, limit: int, times: int = 1) -> bool:
        good_for = ROOMY_SECONDS if self.is_roomy(limit=limit) else FRESH_SECONDS
        return trio.current_time() - self.counted_at < good_for * times


class JobAdmission:
    """Refuses new jobs while too many are pending: of all products, or of the one that asks.

    0 is no limit. The limits are soft by what other processes admit while a count is fresh.
    """

    def __init__(self, jobs: JobRecords, *, max_pending: int, max_pending_of_product: int) -> None:
        self._jobs = jobs
        self._max_pending = max_pending
        self._max_of_product = max_pending_of_product
        self._all = _Count()
        self._products: OrderedDict[str, _Count] = OrderedDict()
        self._counting = trio.Lock()
        self._failure: PortUnavailable | None = None
        self._failed_at = -math.inf

    async def admit(self, product_name: str) -> None:
        """Count one more job of this product as waiting. Raise TooManyPendingJobs."""
        if not self._max_pending and not self._max_of_product:
            return
        # Without a limit of their own, products share the count of all.
        product = product_name if self._max_of_product else ""
        own = self._products.get(product)
        if not self._is_known(own) and not (self._counting.locked() and self._is_good_enough(own)):
            await self._be_counted(product)
        own = self._products[product]
        if self._max_pending and self._all.waiting >= self._max_pending:
            raise TooManyPendingJobs(f"{self._max_pending} jobs wait already")
        if self._max_of_product and own.waiting >= self._max_of_product:
            raise TooManyPendingJobs(f"{self._max_of_product} jobs of this product wait already")
        self._all.waiting += 1
        own.waiting += 1

    async def _be_counted(self, product: str) -> None:
        """Who waited while somebody else's count failed shares its failure."""
        asked_at = trio.current_time()
        async with self._counting:
            if self._failure is not None and self._failed_at > asked_at:
                raise copy(self._failure)
            try:
                if self._is_known(self._products.get(product)):
                    return
                if not await self._count(product):
                    # nobody is let in, so that this one is certain
                    await self._count(product)
            except PortUnavailable as failure:
                self._failure, self._failed_at = failure, trio.current_time()
                raise

    def _is_known(self, own: _Count | None) -> bool:
        return (
            own is not None
            and own.is_fresh(limit=self._max_of_product)
            and self._all.is_fresh(limit=self._max_pending)
        )

    def _is_good_enough(self, own: _Count | None) -> bool:
        """While somebody else counts: then one request waits for it, and not all that come."""
        return own is not None and all(
            each.is_roomy(limit=limit) and each.is_fresh(limit=limit, times=2)
            for each, limit in ((own, self._max_of_product), (self._all, self._max_pending))
        )

    async def _count(self, product: str) -> bool:
        """Whether the number is certain enough to refuse somebody.

        It is as old as the answer: one that took its time would be too old when it comes.
        """
        before = self._all.waiting, self._waiting_of(product)
        counts = await self._jobs.pending_counts(product_name=product)
        # who was let in meanwhile was perhaps counted and perhaps not
        since = self._all.waiting - before[0], self._waiting_of(product) - before[1]
        now = trio.current_time()
        self._all = _Count(counts.total + since[0], now)
        own = self._products[product] = _Count(counts.of_product + since[1], now)
        is_certain = not any(since) or (
            self._all.is_roomy(limit=self._max_pending) and own.is_roomy(limit=self._max_of_product)
        )
        if not is_certain:
            # nobody is refused for what may have been counted twice: now all wait for a new count
            self._all.counted_at = -math.inf
        self._products.move_to_end(product)
        if len(self._products) > REMEMBERED_PRODUCTS:
            self._products.popitem(last=False)
        return is_certain

    def _waiting_of(self, product: str) -> int:
        known = self._products.get(product)
        return known.waiting if known is not None else 0
