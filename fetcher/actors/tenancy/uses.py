"""Who uses a running tenant, counted without a channel hop: a request enters it and leaves it."""

from collections.abc import Iterator
from contextlib import contextmanager

import trio


class TenantClosed(Exception):
    """The tenant is being stopped, or was: ask for it anew."""


class TenantUses:
    """To be made inside trio's run; times are on trio's clock. One owner closes it, once and for
    all; what was entered before may go on."""

    def __init__(self) -> None:
        self.count = 0
        """How many use it now."""
        self.last_used_at = trio.current_time()
        """When it was entered or left last; when it was made, where it never was."""
        self._closed = False
        self._unused = trio.Event()
        self._unused.set()

    @property
    def is_closed(self) -> bool:
        return self._closed

    @contextmanager
    def enter(self) -> Iterator[None]:
        """Use it for the length of the context. Raise TenantClosed, before anything was used."""
        if self._closed:
            raise TenantClosed
        if self.count == 0:
            self._unused = trio.Event()
        self.count += 1
        self.last_used_at = trio.current_time()
        try:
            yield
        finally:
            self.count -= 1
            self.last_used_at = trio.current_time()
            if self.count == 0:
                self._unused.set()

    def idle_seconds(self) -> float:
        """For how long nobody has used it: 0 while somebody does."""
        return 0.0 if self.count else trio.current_time() - self.last_used_at

    def close(self) -> None:
        """Let nobody enter any more."""
        self._closed = True

    async def until_unused(self) -> None:
        """Wait until nobody uses it. The caller bounds the wait, and has closed it before."""
        await self._unused.wait()
