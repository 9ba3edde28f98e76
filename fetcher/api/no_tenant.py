"""The services of a process whose tenants have their own: they serve nobody."""

from typing import Any, Final, NoReturn

from fetcher.api.services import ApiServices, HttpSettings, OperationsServices, SystemServices
from fetcher.commands.audit import Audit
from fetcher.domain.tenants import TenantContextRequired
from fetcher.ports import UNTRACED, Authorizer, ProcessFacts, Tracer
from fetcher_engine import Limits


class _Nobodys:
    """Stands where a tenant's port would (spec configuration 11.3)."""

    def __getattr__(self, name: str) -> NoReturn:
        raise TenantContextRequired

    def __call__(self, *_: object, **__: object) -> NoReturn:
        raise TenantContextRequired


_NOBODYS: Final[Any] = _Nobodys()
"""Any port and any callable: whoever uses it raises TenantContextRequired."""


def services_of_no_tenant(
    *,
    system: SystemServices,
    process: ProcessFacts,
    ceilings: Limits,
    settings: HttpSettings,
    authorizer: Authorizer | None = None,
    tracer: Tracer = UNTRACED,
) -> ApiServices:
    """What an application with a gate is made of: what the process has once, and behind every port
    a refusal. Routes and the API document can be made of them; an operation that runs by them all
    the same ends as TenantContextRequired and has touched nothing."""
    return ApiServices(
        system=system,
        operations=OperationsServices(
            process=process,
            dependencies=_NOBODYS,
            actors=_NOBODYS,
            adapter_breakers=_NOBODYS,
            queues=_NOBODYS,
            letters=_NOBODYS,
            statistics=_NOBODYS,
            breakers=_NOBODYS,
            events=_NOBODYS,
            dispatch=_NOBODYS,
        ),
        connections=_NOBODYS,
        internal_sources=_NOBODYS,
        jobs=_NOBODYS,
        sources=_NOBODYS,
        cipher=_NOBODYS,
        limiter=_NOBODYS,
        hint=_NOBODYS,
        hint_event=_NOBODYS,
        cleanup=_NOBODYS,
        audit=Audit(trail=_NOBODYS, now=_NOBODYS, tell=_NOBODYS, unrecorded=_NOBODYS),
        keys=_NOBODYS,
        now=_NOBODYS,
        stopping=_NOBODYS,
        ceilings=ceilings,
        objects=_NOBODYS,
        refuses_host=_NOBODYS,
        authorizer=authorizer,
        forget_schemas=_NOBODYS,
        recover=_NOBODYS,
        tracer=tracer,
        settings=settings,
    )
