"""What an answer of the Tenant Manager means, by its status (the table of spec configuration 11.4).

A status of 500 or more is a failure like no answer at all, and is not judged here.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from fetcher.adapters.http_client import HttpAnswer
from fetcher.domain.errors import PortError
from fetcher.domain.tenants import (
    TenantAnswerUnreadable,
    TenantDenied,
    TenantError,
    TenantsUnavailable,
    TenantSuspended,
    TenantUnknown,
)
from fetcher.tenancy.manager_answers import ActiveTenants, active_tenants, suspension_in

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Value(Generic[T]):
    value: T


@dataclass(frozen=True, slots=True)
class Word:
    """What it says on a tenant; with a ``problem`` an answer that says nothing of use."""

    error: PortError
    problem: str = ""
    shows_health: bool = True
    """Whether the breaker takes it for a success; else it stays as it is."""


def active_in(answer: HttpAnswer) -> Value[ActiveTenants] | Word:
    """To the question who is active. Any other status than 200 is no word on anybody."""
    if answer.status != 200:
        problem = status_text(answer.status)
        return Word(TenantsUnavailable(problem), problem=problem)
    return _body_in(answer, active_tenants)


def connections_in(
    answer: HttpAnswer, tenant_id: str, read: Callable[[bytes], T]
) -> Value[T] | Word:
    """To the question where a tenant's things lie."""
    match answer.status:
        case 200:
            return _body_in(answer, read)
        case 404:
            return Word(TenantUnknown(tenant_id))
        case 403:
            status = suspension_in(answer.body)
            return Word(TenantSuspended(status) if status else TenantDenied())
    problem = status_text(answer.status)
    error = TenantsUnavailable(f"{problem} for tenant {tenant_id}")
    return Word(error, problem=problem, shows_health=False)


def _body_in(answer: HttpAnswer, read: Callable[[bytes], T]) -> Value[T] | Word:
    unreadable = TenantAnswerUnreadable()
    try:
        return Value(read(answer.body))
    except TenantAnswerUnreadable:
        return Word(unreadable, problem=str(unreadable), shows_health=False)
    except TenantError as word:
        return Word(word.with_traceback(None))


def status_text(status: int) -> str:
    return f"tenant manager returned status {status}"
