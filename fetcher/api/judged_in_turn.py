"""Questions to whoever judges callers, in turn by the tenant that each says it speaks for."""

from collections.abc import Mapping
from typing import Final

import trio

from fetcher.api.tenancy import CLAIM
from fetcher.domain.access import Permission, Verdict
from fetcher.domain.access_tokens import TokenMalformed, read_token
from fetcher.domain.errors import PortUnavailable
from fetcher.ports import Authorizer
from fetcher.queries.turns import Turns

AT_ONCE: Final = 64
SECONDS: Final = 30.0
"""For the wait and the verdict together."""

_NOBODY: Final = "-"
"""Has a line of its own, and is no tenant's id."""


class JudgedInTurn:
    """Implements :class:`fetcher.ports.Authorizer` by another one.

    A tenant with many callers, or somebody who has none of its tokens but its name, makes callers
    of another wait for a round, not for the whole line. The claim decides nothing else here.
    """

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer
        self.relays = authorizer.relays
        self._turns = Turns(AT_ONCE)

    async def judge(
        self, token: str | None, permission: Permission, *, trace: Mapping[str, str]
    ) -> Verdict:
        with trio.move_on_after(SECONDS):
            async with self._turns.turn(_line_of(token)):
                return await self._authorizer.judge(token, permission, trace=trace)
        raise PortUnavailable("no answer in time")


def _line_of(token: str | None) -> str:
    try:
        claimed = read_token(token or "").claims.get(CLAIM)
    except TokenMalformed:
        return _NOBODY
    return claimed if isinstance(claimed, str) and claimed else _NOBODY
