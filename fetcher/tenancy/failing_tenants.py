"""Tenants that the Tenant Manager cannot tell of, while it can of others: each is left alone by
itself, so that one of them keeps nobody else's question from being asked."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress

from fetcher.adapters.breaker import CircuitBreaker
from fetcher.domain.errors import PortUnavailable


class OfOneTenant(Exception):
    """An answer that is a failure, about a tenant of whom that is known already. It is no
    PortUnavailable: the breaker of all leaves it out."""

    def __init__(self, problem: str) -> None:
        super().__init__(problem)
        self.problem = problem


class FailingTenants:
    """Remembers ``at_most`` so many, the latest; ``new_breaker`` is one tenant's own."""

    def __init__(self, new_breaker: Callable[[], CircuitBreaker], *, at_most: int) -> None:
        self._new_breaker = new_breaker
        self._at_most = at_most
        self._breakers: dict[str, CircuitBreaker] = {}
        self._since_success: set[str] = set()

    def failure(self, tenant_id: str, problem: str) -> PortUnavailable | OfOneTenant:
        """As the breaker of all is to see it: so many different tenants since its last success are
        a manager that fails, one again and again is not."""
        if tenant_id in self._since_success:
            return OfOneTenant(problem)
        self._since_success.add(tenant_id)
        if tenant_id not in self._breakers:
            self._remember(tenant_id)
        return PortUnavailable(problem)

    def success(self, tenant_id: str) -> None:
        """The manager is well, and can tell of this tenant; empty where it was asked for all."""
        self._since_success.clear()
        self._breakers.pop(tenant_id, None)

    @contextmanager
    def asking(self, tenant_id: str) -> Iterator[None]:
        """Around one question. Raise PortUnavailable, without asking, while this tenant is left
        alone; OfOneTenant out of it becomes one."""
        with self._attempt(tenant_id):
            problem = ""
            try:
                yield
            except OfOneTenant as failure:
                problem = failure.problem
            if problem:
                raise PortUnavailable(problem)

    def _attempt(self, tenant_id: str) -> AbstractContextManager[None]:
        known = self._breakers.get(tenant_id)
        return nullcontext() if known is None else known.attempt()

    def _remember(self, tenant_id: str) -> None:
        while len(self._breakers) >= self._at_most:
            del self._breakers[next(iter(self._breakers))]
        breaker = self._breakers[tenant_id] = self._new_breaker()
        with suppress(PortUnavailable), breaker.attempt():
            raise PortUnavailable("its first failure")
