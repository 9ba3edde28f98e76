"""From a connection's settings to a logged-in link (spec datasources 2, 4, 5).

The name is resolved once, judged, dialled here, and given to TLS and login as it is. The step at
which time runs out is known.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Final

import trio

from fetcher.datasources.addresses import resolve
from fetcher.datasources.dialing import dial
from fetcher.datasources.driver_thread import DriverThread
from fetcher.datasources.sqlserver.errors import TIMEOUT
from fetcher.datasources.sqlserver.link import Link, Redirection
from fetcher.datasources.sqlserver.tls import TlsPlan, tls_plan
from fetcher.datasources.sqlserver.wire import Wire
from fetcher.datasources.targets import Target
from fetcher.datasources.threads import ThreadKind
from fetcher_engine import SourceFailure, Stage

TOTAL_SECONDS: Final = 10.0
PHASE_SECONDS: Final = 5.0
MAX_CHARS: Final = 128
"""Of a user, a password or a database (MS-TDS, LOGIN7)."""

CALLS: Final = ThreadKind(64)
"""For all sessions of this driver in the process."""


async def connect(target: Target, *, max_row_bytes: int) -> Link:
    """Resolve, dial, encrypt and log in within 10 seconds; the caller closes the link.

    A server may send us on to another one, once: its address is judged like the first. Raise
    SourceFailure. Cancelled or failed, nothing stays open.
    """
    _check(target)
    plan = tls_plan(target)
    stage = [Stage.DNS]
    with trio.move_on_after(TOTAL_SECONDS):
        found = await _log_in(target, plan, stage, max_row_bytes)
        if isinstance(found, Redirection):
            there = replace(target, host=found.host, port=found.port)
            found = await _log_in(there, plan, stage, max_row_bytes)
        if isinstance(found, Link):
            return found
        raise SourceFailure(Stage.SESSION, "redirected")
    raise SourceFailure(stage[0], TIMEOUT)


async def _log_in(
    target: Target, plan: TlsPlan, stage: list[Stage], max_row_bytes: int
) -> Link | Redirection:
    stage[0] = Stage.DNS
    addresses = await resolve(target.host, target.port, judge=target.judge, threads=target.threads)
    stage[0] = Stage.TCP
    wire = Wire(await dial(addresses, target.port))
    link = Link(wire, max_row_bytes=max_row_bytes)
    thread = DriverThread(target.threads.of(CALLS), link.shut)
    ready = False
    try:
        await _phase(thread, lambda: link.encrypt(plan, target.host), stage, Stage.TLS)
        redirection = await _phase(thread, lambda: link.log_in(target), stage, Stage.AUTH)
        if redirection is not None:
            return redirection
        ready = True
        return link
    finally:
        if not ready:
            link.close()


async def _phase(
    thread: DriverThread,
    work: Callable[[], Redirection | None],
    stage: list[Stage],
    now: Stage,
) -> Redirection | None:
    stage[0] = now
    with trio.move_on_after(PHASE_SECONDS):
        return await thread.run(work)
    raise SourceFailure(now, TIMEOUT)


def _check(target: Target) -> None:
    """What no login can hold: the driver counts characters where the protocol counts code units."""
    for text in (target.user, target.password, target.database):
        if len(text) > MAX_CHARS or "\0" in text or any(_is_no_unit(char) for char in text):
            raise SourceFailure(Stage.SESSION, "invalid_setting")


def _is_no_unit(character: str) -> bool:
    return character > "\uffff" or "\ud800" <= character <= "\udfff"
