"""Options that commands share, and whose settings they read."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from fetcher.domain.tenants import NO_TENANT, Tenant, is_tenant_id
from fetcher.log_secrets import live_secrets
from fetcher.settings import (
    ProcessEnvironment,
    Role,
    SettingNotes,
    Settings,
    SettingsRefused,
    load_settings,
    notes_on,
    process_environment,
    secrets_of,
)

if TYPE_CHECKING:
    from fetcher.bootstrap.command_target import CommandTarget

RoleName = Literal["manager", "worker", "all"]
ROLES: Final = (Role.ALL, Role.MANAGER, Role.WORKER)
ActorsOption = Annotated[RoleName, Parameter(help="Which actors this process runs.")]
CheckedRoleOption = Annotated[RoleName, Parameter(help="Whose settings to check.")]
RoleOption = Annotated[
    RoleName | None,
    Parameter(
        help="Whose settings to read; by default the first of all, manager, worker they fit."
    ),
]
TenantOption = Annotated[
    str | None, Parameter(help="The tenant's id, with MULTI_TENANT_ENABLED=true.")
]
UrlOption = Annotated[
    str | None,
    Parameter(
        help="Of the service, http://host:port; by default where one with these settings listens."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedSettings:
    settings: Settings
    notes: SettingNotes
    role: Role


def environment_here() -> ProcessEnvironment:
    """This process's environment and, beneath it, its folder's `.env`.

    With the ``problems`` of that file, which are the caller's to tell.
    """
    return process_environment(os.environ, Path.cwd())


def variables_here() -> Mapping[str, str]:
    """The same for what needs no settings. Raise SettingsRefused for a file that cannot be read."""
    environment = environment_here()
    if environment.problems:
        raise SettingsRefused(list(environment.problems))
    return environment.variables


def settings_for(role: RoleName | None) -> Settings:
    """Raise SettingsRefused."""
    return loaded_for(role).settings


def target_for(role: RoleName | None, tenant: str | None) -> "CommandTarget":
    """For whom a command works that opens one tenant's stores, where there are tenants.

    Raise SettingsRefused: also for a tenant that is not named, or named where there are none.
    """
    from fetcher.bootstrap.command_target import CommandTarget

    loaded = loaded_for(role)
    chosen = chosen_tenant(loaded.settings, tenant)
    if loaded.settings.multi_tenant_enabled and not chosen.id:
        raise SettingsRefused(["--tenant: required with MULTI_TENANT_ENABLED=true: whose is it?"])
    return CommandTarget(settings=loaded.settings, tenant=chosen, role=loaded.role)


def chosen_tenant(settings: Settings, tenant: str | None) -> Tenant:
    """Raise SettingsRefused for one that is named where there are none, or that cannot be."""
    if tenant is None:
        return NO_TENANT
    if not settings.multi_tenant_enabled:
        problem = "--tenant: there are no tenants: MULTI_TENANT_ENABLED is not true"
    elif not is_tenant_id(tenant):
        problem = "--tenant: no tenant can have this id"
    else:
        return Tenant(tenant)
    raise SettingsRefused([problem])


def loaded_for(role: RoleName | None) -> LoadedSettings:
    """Of that role, or of the first that they fit: what only looks needs no part of another's.

    Their secrets are masked in logs from then on. Raise SettingsRefused, whose last line says as
    whose they were checked where another role is told less.
    """
    environment = environment_here()
    asked = Role(role) if role is not None else None
    refusals: dict[Role, SettingsRefused] = {}
    for each in sorted(ROLES, key=lambda one: one is not asked):
        try:
            settings = load_settings(environment.variables, each, found_before=environment.problems)
        except SettingsRefused as refused:
            refusals[each] = refused
            continue
        if asked not in (None, each):
            raise _told(refusals, asked, fitting=each)
        live_secrets.hold(secrets_of(settings))
        notes = notes_on(settings, environment, now=datetime.now(UTC))
        return LoadedSettings(settings=settings, notes=notes, role=each)
    raise _told(refusals, asked, fitting=None)


def _told(
    refusals: Mapping[Role, SettingsRefused], asked: Role | None, *, fitting: Role | None
) -> SettingsRefused:
    if asked is not None:
        hint = f"(checked as role {asked}; try --role={fitting})" if fitting else ""
        problems = refusals[asked].problems
    else:
        # The first of those with the fewest: what is wrong whatever the role is among them.
        nearest = min(refusals, key=lambda each: len(refusals[each].problems))
        problems = refusals[nearest].problems
        is_other = nearest is not Role.ALL
        hint = f"(checked as role {nearest}; --role chooses another)" if is_other else ""
    return SettingsRefused([*problems, hint] if hint else problems)
