"""Room that all tenants of a process share: bytes of bodies, places of streams."""


class FairRoom:
    """So much room in all. A tenant takes more only as long as it holds no more than stays free.

    So one that takes all it can gets half, two a third each, and whoever comes next finds room: the
    dynamic thresholds of shared-memory switches (Choudhury and Hahne, 1998) with a factor of one.
    Where there are no tenants only the total counts.
    """

    def __init__(self, total: int) -> None:
        self._free = total
        self._held: dict[str, int] = {}

    def has(self, amount: int, tenant_id: str) -> bool:
        """Whether there is room for it; ``tenant_id`` is empty for nobody's. Who takes nothing
        always finds it."""
        if not amount:
            return True
        would_hold = self._held.get(tenant_id, 0) + amount if tenant_id else 0
        return would_hold <= self._free - amount

    def take(self, amount: int, tenant_id: str) -> bool:
        """Whether there was room for it, which is taken now."""
        if not self.has(amount, tenant_id):
            return False
        self._free -= amount
        if tenant_id and amount:
            self._held[tenant_id] = self._held.get(tenant_id, 0) + amount
        return True

    def give_back(self, amount: int, tenant_id: str) -> None:
        """What was taken before; nothing more is known of a tenant that holds nothing."""
        self._free += amount
        if tenant_id in self._held:
            self._held[tenant_id] -= amount
            if not self._held[tenant_id]:
                del self._held[tenant_id]
