"""Consumes the work queue, verifies, hands jobs to extractors, settles (design section 4)."""

from typing import Protocol

import structlog
import trio

from fetcher.actors.channels import Channel, ReplyLost
from fetcher.actors.lifecycle import Lifecycle
from fetcher.actors.messages import ExtractOrder, Settlement, StoreAway
from fetcher.actors.worker_metrics import WorkerMetrics
from fetcher.domain.backoff import CONSUMER_BACKOFF, Backoff, full_jitter
from fetcher.domain.errors import DeliveryLost, PortError, PortUnavailable
from fetcher.domain.work_message import WorkMessage
from fetcher.fair_places import Places
from fetcher.ports import Deliveries, Delivery, JobLeases, RejectReason, WorkConsumer

log = structlog.get_logger(__name__)

REJECTIONS = {
    Settlement.REJECT_UNKNOWN: RejectReason.UNKNOWN_JOB,
    Settlement.REJECT_UNREADABLE: RejectReason.UNREADABLE_JOB,
}
STORE_SECONDS = 10.0
"""Deadline of one question to the record store."""
STEADY_SECONDS = 60.0
"""A consumer that held this long starts the back-off anew."""

DEGRADED_AFTER = 3
"""Failures in a row after which the log has it as an error (spec configuration 11.8)."""


class WorkVerifier(Protocol):
    def verify(self, delivery: Delivery) -> WorkMessage | RejectReason:
        """What a genuine message asks for, or why it goes to the dead letters."""
        ...


class Intake:
    """Works on a delivery only when it has a place; a lost connection is waited out.

    What waits for a place, since others have them, is put back once it waited for ``hold_seconds``
    (the broker takes a consumer away that neither works nor puts back), and at once when nothing
    more is consumed: another worker may have a place for it.

    While the record store is away nothing is consumed; extractors hold what is in hand. A consumer
    that goes on would get at once what was put back, and the broker counts how often.
    """

    name = "intake"

    def __init__(
        self,
        *,
        consumer: WorkConsumer,
        verifier: WorkVerifier,
        orders: Channel[ExtractOrder],
        leases: JobLeases,
        store_away: Channel[StoreAway],
        places: Places,
        prefetch: int,
        hold_seconds: float,
        lifecycle: Lifecycle,
        metrics: WorkerMetrics,
        backoff: Backoff = CONSUMER_BACKOFF,
    ) -> None:
        self._consumer = consumer
        self._verifier = verifier
        self._orders = orders
        self._leases = leases
        self._store_away = store_away
        self._places = places
        self._prefetch = prefetch
        self._hold_seconds = hold_seconds
        self._lifecycle = lifecycle
        self._metrics = metrics
        self._backoff = backoff
        self._waits: set[trio.CancelScope] = set()
        self._in_hand = 0
        self._all_settled = trio.Event()

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        """End once the process drains and every delivery in hand is settled."""
        task_status.started()
        tries = 0
        async with trio.open_nursery() as handlers:
            while not self._lifecycle.draining.is_set():
                started_at = trio.current_time()
                try:
                    async with self._consumer.consume(prefetch=self._prefetch) as deliveries:
                        log.info("consumer_started", places=self._prefetch)
                        lost = await self._take(deliveries, handlers)
                except PortUnavailable as failure:
                    lost = failure
                if lost is not None:
                    tries = 1 if trio.current_time() - started_at > STEADY_SECONDS else tries + 1
                    await self._wait_out(lost, tries)

    async def _wait_out(self, lost: PortUnavailable, tries: int) -> None:
        log.warning("consumer_lost", code=lost.code, why=str(lost), tries=tries)
        if tries >= DEGRADED_AFTER:
            log.error("consumer_degraded", tries=tries)
        await self._until_drain(self._backoff.pause_seconds(tries))

    async def _pause(self, tries: int) -> None:
        await self._until_drain(full_jitter(tries, base_seconds=0.5, cap_seconds=30.0))

    async def _until_drain(self, seconds: float) -> None:
        with trio.move_on_after(seconds):
            await self._lifecycle.draining.wait()

    async def _take(self, deliveries: Deliveries, handlers: trio.Nursery) -> PortUnavailable | None:
        """Hand on deliveries until the drain or a lost connection, which is the answer.

        Jobs in hand outlive a lost connection: their claim decides, not their message. After a stop
        they are waited for, since their deliveries must be settled before the consumer is left.
        None is also the answer once the record store is back after an outage.
        """
        async with trio.open_nursery() as watch:
            watch.start_soon(self._stop_on_drain, deliveries)
            watch.start_soon(self._stop_on_outage, deliveries)
            try:
                async for delivery in deliveries:
                    try:
                        self._places.acquire_nowait()
                    except trio.WouldBlock:
                        wait = trio.CancelScope(deadline=trio.current_time() + self._hold_seconds)
                        # Here: it may have to end before its task has run.
                        self._waits.add(wait)
                        watch.start_soon(self._wait_for_place, delivery, wait, handlers)
                    else:
                        self._take_in_hand(delivery, handlers)
            except PortUnavailable as failure:
                watch.cancel_scope.cancel()
                return failure
            for wait in self._waits:
                wait.cancel()
            await self._until_the_store_answers()
            if self._lifecycle.draining.is_set() and self._in_hand:
                await self._all_settled.wait()
            watch.cancel_scope.cancel()
        return None

    def _take_in_hand(self, delivery: Delivery, handlers: trio.Nursery) -> None:
        """It has a place."""
        if self._in_hand == 0:
            self._all_settled = trio.Event()
        self._in_hand += 1
        handlers.start_soon(self._handle, delivery)

    async def _wait_for_place(
        self, delivery: Delivery, wait: trio.CancelScope, handlers: trio.Nursery
    ) -> None:
        with wait:
            try:
                await self._places.acquire()
            finally:
                self._waits.discard(wait)
            self._take_in_hand(delivery, handlers)
            return
        log.info("delivery_put_back", why="no place was free")
        try:
            await delivery.requeue()
        except PortError as failure:
            log.warning("settle_failed", code=failure.code)

    async def _until_the_store_answers(self) -> None:
        """Or until the drain."""
        tries = 0
        while not (self._lifecycle.draining.is_set() or await self._store_answers()):
            await self._pause(tries)
            tries += 1
        # Told before it answered.
        self._store_away.receive_waiting(limit=1)

    async def _store_answers(self) -> bool:
        try:
            with trio.fail_after(STORE_SECONDS):
                await self._leases.check([])
        except (PortUnavailable, trio.TooSlowError):
            return False
        return True

    async def _stop_on_outage(self, deliveries: Deliveries) -> None:
        await self._store_away.receive()
        log.warning("consumer_stopped", why="the record store is away")
        await self._stop(deliveries)

    async def _stop_on_drain(self, deliveries: Deliveries) -> None:
        await self._lifecycle.draining.wait()
        await self._stop(deliveries)

    async def _stop(self, deliveries: Deliveries) -> None:
        try:
            await deliveries.stop()
        except PortUnavailable:
            log.warning("consumer_stop_failed")

    async def _handle(self, delivery: Delivery) -> None:
        try:
            verdict = self._verifier.verify(delivery)
            if isinstance(verdict, RejectReason):
                await self._reject(delivery, verdict)
            else:
                order = ExtractOrder(
                    job_id=verdict.job_id, request_id=verdict.request_id, trace=verdict.trace
                )
                await self._settle(delivery, await self._settlement(order))
        except PortError as failure:
            log.warning("settle_failed", code=failure.code)
        finally:
            self._places.release()
            self._in_hand -= 1
            if self._in_hand == 0:
                self._all_settled.set()

    async def _settlement(self, order: ExtractOrder) -> Settlement:
        if not await self._orders.send_until(order, self._lifecycle.releasing):
            # Extractors end once jobs are released: no other takes it.
            return Settlement.REQUEUE
        try:
            return await order.reply.get()
        except ReplyLost:
            # The extractor crashed: another try is safe, the claim decides who works.
            return Settlement.REQUEUE

    async def _settle(self, delivery: Delivery, settlement: Settlement) -> None:
        if settlement is Settlement.ACK:
            await delivery.ack()
        elif settlement is Settlement.REQUEUE:
            await delivery.requeue()
        else:
            await self._reject(delivery, REJECTIONS[settlement])

    async def _reject(self, delivery: Delivery, reason: RejectReason) -> None:
        log.warning("delivery_rejected", reason=reason.value)
        self._metrics.rejected.labels(reason=reason.value).inc()
        with self._metrics.rejected_waiting.track_inprogress():
            await self._dead_letter(delivery, reason)

    async def _dead_letter(self, delivery: Delivery, reason: RejectReason) -> None:
        """Until they take it (decisions, row DLQ). Its place stays taken: a queue whose messages
        have nowhere to go is not consumed for long."""
        tries = 0
        while not await self._try_to_dead_letter(delivery, reason, tries):
            await self._pause(tries)
            tries += 1

    async def _try_to_dead_letter(
        self, delivery: Delivery, reason: RejectReason, tries: int
    ) -> bool:
        try:
            await delivery.reject(reason)
        except DeliveryLost:
            raise
        except PortUnavailable as failure:
            if self._lifecycle.draining.is_set():
                raise
            log.warning("dead_letters_away", reason=reason.value, code=failure.code, tries=tries)
            return False
        return True
