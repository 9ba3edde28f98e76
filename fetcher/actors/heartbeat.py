"""How late this process is: whoever holds its one thread for long delays everybody in it."""

import trio

from fetcher.actors.metrics import ActorMetrics

BEAT_SECONDS = 0.25


class Heartbeat:
    """Sleeps for a quarter of a second, for ever, and notes how late it wakes."""

    name = "heartbeat"

    def __init__(self, *, metrics: ActorMetrics) -> None:
        self._lateness = metrics.lateness

    async def run(self, *, task_status: "trio.TaskStatus[None]" = trio.TASK_STATUS_IGNORED) -> None:
        task_status.started()
        while True:
            due_at = trio.current_time() + BEAT_SECONDS
            await trio.sleep_until(due_at)
            self._lateness.observe(trio.current_time() - due_at)
