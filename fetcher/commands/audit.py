"""Records who did what (decision 039)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from uuid import uuid4

import trio

from fetcher.domain.audit import AuditAction, AuditEntry, AuditOutcome, plain
from fetcher.domain.cancellation import (
    is_cancellation,
    is_interruption,
    output_failure,
    sole_failure,
)
from fetcher.domain.errors import FetcherError, PortError
from fetcher.domain.times import cut_to_milliseconds
from fetcher.ports import AuditTrail, UtcNow
from fetcher_engine import EngineError

AUDIT_SECONDS = 3.0
"""How long an answer may wait for its entry."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    actor: str
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """``tell`` says each entry in the log, ``unrecorded`` that the store did not take one."""

    trail: AuditTrail
    now: UtcNow
    tell: Callable[[AuditEntry], None]
    unrecorded: Callable[[AuditEntry, str], None]

    def deed(
        self, action: AuditAction, caller: Caller, *, target: str = "", product: str = ""
    ) -> "Deed":
        return Deed(audit=self, action=action, caller=caller, target=target, product=product)

    async def record(self, entry: AuditEntry) -> None:
        """The entry's failure is told, never raised: what was done is done, and its answer counts.

        The caller's cancellation waits.
        """
        self.tell(entry)
        why = "timeout"
        with trio.CancelScope(shield=True), trio.move_on_after(AUDIT_SECONDS):
            try:
                await self.trail.append(entry)
            except PortError as failure:
                why = failure.code
            else:
                return
        self.unrecorded(entry, why)


@dataclass(slots=True, kw_only=True)
class Deed:
    """What is being done, from its start to its end: ``async with audit.deed(…) as deed``.

    ``target`` and ``product`` may be filled in when they are known. Every end is recorded, also a
    refusal; what was raised goes on. One that was handed on ends with the next block that enters
    it, or is dropped.
    """

    audit: Audit
    action: AuditAction
    caller: Caller
    target: str
    product: str
    outcome: str = field(default=AuditOutcome.SUCCEEDED)
    _is_handed_on: bool = field(default=False, init=False)

    def hand_on(self) -> Self:
        """What is left of it is done after this block, by whoever is given it: an answer that is
        still to be opened may yet be refused."""
        self._is_handed_on = True
        return self

    async def drop(self) -> None:
        """Nobody is there any more to do what is left of one that was handed on."""
        self.outcome = AuditOutcome.INTERRUPTED
        await self.__aexit__(None, None, None)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        is_handed_on, self._is_handed_on = self._is_handed_on, False
        if error is not None:
            self.outcome = _outcome_of(error)
        elif is_handed_on:
            return
        await self.audit.record(
            AuditEntry(
                id=uuid4(),
                time=cut_to_milliseconds(self.audit.now()),
                actor=plain(self.caller.actor),
                action=self.action,
                target=plain(self.target),
                product=plain(self.product),
                request_id=plain(self.caller.request_id),
                outcome=str(self.outcome),
            )
        )


def _outcome_of(error: BaseException) -> str:
    if is_cancellation(error) or is_interruption(error) or output_failure(error) is not None:
        return AuditOutcome.INTERRUPTED
    error = sole_failure(error)
    match error:
        case FetcherError():
            return error.error_code or error.code
        case PortError():
            return str(error.code)
        case EngineError():
            return str(error.category)
        case _:
            return AuditOutcome.CRASHED
