"""The servers behind a name of ``mongodb+srv``, as the driver finds them."""

from typing import Final

import dns.exception
import dns.resolver
import trio

SECONDS: Final = 5.0
SERVICE: Final = "_mongodb._tcp"

_THREADS: Final = trio.CapacityLimiter(8)
"""Of their own: a resolver that hangs must not starve the process of threads."""


async def srv_hosts(name: str) -> tuple[str, ...]:
    """Their names, without ports; none where nobody tells them in time."""

    def ask() -> tuple[str, ...]:
        try:
            answer = dns.resolver.resolve(f"{SERVICE}.{name}", "SRV", lifetime=SECONDS)
        except (dns.exception.DNSException, OSError, ValueError):
            return ()
        return tuple(each.target.to_text(omit_final_dot=True) for each in answer)

    with trio.move_on_after(SECONDS + 1):
        return await trio.to_thread.run_sync(ask, abandon_on_cancel=True, limiter=_THREADS)
    return ()
