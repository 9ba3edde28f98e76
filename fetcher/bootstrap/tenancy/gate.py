"""Where requests come to their tenants: one channel hop to open one, none while it is open."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

import trio

from fetcher.actors.channels import Channel, ReplyLost
from fetcher.actors.messages import TenantWanted
from fetcher.actors.tenancy.uses import TenantClosed
from fetcher.api.tenancy import EnteredTenant
from fetcher.bootstrap.tenancy.tenant import OpenTenant
from fetcher.domain.errors import PortUnavailable

ENTER_SECONDS: Final = 30.0
TRIES: Final = 3
"""One that closes between its answer and its use is asked for anew."""


class OpenTenantGate:
    """Implements :class:`fetcher.api.tenancy.TenantGate` over the ``tenants`` actor, which owns
    the tenants: what is known here goes with them."""

    def __init__(self, wants: Channel[TenantWanted[OpenTenant]]) -> None:
        self._wants = wants
        self._known: WeakValueDictionary[str, OpenTenant] = WeakValueDictionary()

    @asynccontextmanager
    async def enter(self, tenant_id: str) -> AsyncIterator[EnteredTenant]:
        async with self.using(tenant_id) as tenant:
            yield EnteredTenant(tenant_id=tenant_id, handlers=tenant.handlers, cut=tenant.cut)

    @asynccontextmanager
    async def using(self, tenant_id: str) -> AsyncIterator[OpenTenant]:
        """As :meth:`enter`, for who looks at the tenant itself."""
        for _ in range(TRIES):
            tenant = await self._open(tenant_id)
            with ExitStack() as using:
                try:
                    using.enter_context(tenant.uses.enter())
                except TenantClosed:
                    continue
                yield tenant
                return
        raise PortUnavailable("the tenant is being closed")

    async def _open(self, tenant_id: str) -> OpenTenant:
        known = self._known.get(tenant_id)
        if known is not None and not known.uses.is_closed:
            return known
        tenant = self._known[tenant_id] = await self._asked_for(tenant_id)
        return tenant

    async def _asked_for(self, tenant_id: str) -> OpenTenant:
        wanted: TenantWanted[OpenTenant] = TenantWanted(tenant_id=tenant_id)
        with trio.move_on_after(ENTER_SECONDS):
            await self._wants.send(wanted)
            try:
                answer = await wanted.reply.get()
            except ReplyLost:
                raise PortUnavailable("the tenant could not be opened") from None
            if isinstance(answer, OpenTenant):
                return answer
            # Others raise the same one: each would add the frames of its request to the last one's.
            raise answer.with_traceback(None)
        raise PortUnavailable("the tenant did not open in time: timeout")
