"""Before something is said not to be there, the source itself is asked, not what is remembered."""

from collections import OrderedDict
from typing import Final

import trio

from fetcher.ports import ForgetSchemas
from fetcher_engine import TenantContext

SECONDS_BETWEEN: Final = 5.0
REMEMBERED_SOURCES: Final = 10_000


class FreshLooks:
    """Bounded: a source whose callers go on asking for what it lacks is looked at anew only every
    5 seconds, in each process."""

    def __init__(self, forget_schemas: ForgetSchemas) -> None:
        self._forget_schemas = forget_schemas
        self._last: OrderedDict[tuple[str, str], float] = OrderedDict()

    async def due(self, tenant: TenantContext, config_name: str) -> bool:
        """Whether to ask again; what was remembered of the source's schema is gone then."""
        key, now = (tenant.tenant_id, config_name), trio.current_time()
        if now - self._last.get(key, float("-inf")) < SECONDS_BETWEEN:
            return False
        self._last[key] = now
        self._last.move_to_end(key)
        if len(self._last) > REMEMBERED_SOURCES:
            self._last.popitem(last=False)
        await self._forget_schemas(tenant, config_name)
        return True
