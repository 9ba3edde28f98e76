"""The API of a process with tenants, each with stores in memory of its own."""

from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import trio
from quart_trio import QuartTrio

from fetcher.api.application import create_app, tenant_handlers
from fetcher.api.no_tenant import services_of_no_tenant
from fetcher.api.services import HttpSettings
from fetcher.api.tenancy import EnteredTenant
from fetcher.domain.json_text import dumps
from fetcher.domain.tenants import Tenant, TenantUnknown
from fetcher.ports import Authorizer
from fetcher_engine import Limits
from tests.unit.api.harness import Answered, Api, an_api, call_app


def a_token(**claims: object) -> str:
    """A JSON Web Token that says this; nobody signed it."""
    parts = (dumps({"alg": "none"}), dumps(claims), "s")
    return ".".join(urlsafe_b64encode(each.encode()).decode().rstrip("=") for each in parts)


def bearer(tenant_id: object) -> dict[str, str]:
    return {"Authorization": f"Bearer {a_token(tenantId=tenant_id)}"}


class Gate:
    """Whose tenants are what the test says: a failure is raised in place of entering."""

    def __init__(self, tenants: Mapping[str, EnteredTenant | Exception]) -> None:
        self.tenants = dict(tenants)
        self.asked: list[str] = []
        self.inside: list[str] = []
        self.hold = trio.Event()
        """Nobody gets in before."""
        self.hold.set()

    @asynccontextmanager
    async def enter(self, tenant_id: str) -> AsyncIterator[EnteredTenant]:
        self.asked.append(tenant_id)
        await self.hold.wait()
        found = self.tenants.get(tenant_id, TenantUnknown(tenant_id))
        if isinstance(found, Exception):
            raise found
        self.inside.append(tenant_id)
        try:
            yield found
        finally:
            self.inside.remove(tenant_id)


@dataclass
class TenantsApi:
    """One application and, by tenant, what lies behind it."""

    app: QuartTrio
    gate: Gate
    apis: Mapping[str, Api]
    ran: list[str] = field(default_factory=list)
    """Handlers that ran, as ``tenant/operation``."""

    async def call(
        self,
        method: str,
        path: str,
        body: object = None,
        *,
        tenant: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answered:
        sent = {**(bearer(tenant) if tenant is not None else {}), **(headers or {})}
        return await call_app(self.app, method, path, body, headers=sent)

    async def get(
        self, path: str, *, tenant: object = None, headers: Mapping[str, str] | None = None
    ) -> Answered:
        return await self.call("GET", path, tenant=tenant, headers=headers)

    def cut(self, tenant: str) -> None:
        entered = self.gate.tenants[tenant]
        assert isinstance(entered, EnteredTenant)
        entered.cut.set()


def tenants_api(
    *names: str,
    settings: HttpSettings | None = None,
    system: Mapping[str, Any] | None = None,
    authorizer: Authorizer | None = None,
    **replaced: Any,
) -> TenantsApi:
    """``system``: members of the system's services; ``replaced``: of every tenant's services."""
    settings = settings or HttpSettings()
    ran: list[str] = []
    apis = {
        name: an_api(settings=settings, tenant=Tenant(name), **replaced)
        for name in names or ("acme-7",)
    }
    gate = Gate({name: _entered(name, api, ran) for name, api in apis.items()})
    services = next(iter(apis.values())).services
    of_process = services_of_no_tenant(
        system=replace(services.system, **(system or {})),
        process=services.operations.process,
        ceilings=Limits.defaults(),
        authorizer=authorizer,
        tracer=services.tracer,
        settings=settings,
    )
    return TenantsApi(create_app(of_process, tenants=gate), gate, apis, ran)


def _entered(name: str, api: Api, ran: list[str]) -> EnteredTenant:
    def noting(operation: str, handler: Any) -> Any:
        async def serve(**path_parameters: str) -> Any:
            ran.append(f"{name}/{operation}")
            return await handler(**path_parameters)

        return serve

    handlers = tenant_handlers(api.services)
    return EnteredTenant(
        tenant_id=name,
        handlers={each: noting(each, handler) for each, handler in handlers.items()},
        cut=trio.Event(),
    )
