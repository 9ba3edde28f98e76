"""The process's way down, as events that actors wait for (design section 2, shutdown)."""

import trio


class Lifecycle:
    """One-way signals. Actors read them; the supervisor and the health actor set them."""

    def __init__(self) -> None:
        self.draining = trio.Event()
        """Readiness is 503, no delivery is taken any more; requests are still served."""
        self.closing = trio.Event()
        """The drain window is over: stop accepting requests, finish those that run."""
        self.releasing = trio.Event()
        """The wait for jobs is over: give back those that still run."""
        self.last_round = trio.Event()
        """Jobs are settled: publish what is due once more, then end."""
        self.failure: str | None = None
        """Why the process will exit with a failure; None after a clean run."""

    def drain(self) -> None:
        self.draining.set()

    def fail(self, why: str) -> None:
        """Drain, and exit non-zero afterwards; the first reason stands."""
        if self.failure is None:
            self.failure = why
        self.draining.set()
