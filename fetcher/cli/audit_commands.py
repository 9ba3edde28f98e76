"""The commands below `fetcher audit`, and their options."""

from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from fetcher.cli.exits import EXIT_SETTINGS, wide_console
from fetcher.cli.printing import complain
from fetcher.cli.shared_options import RoleOption, TenantOption, target_for
from fetcher.domain.audit import AuditAction, AuditQuery

audit_app = App(name="audit", help="Who created, changed, tested, cancelled, downloaded what.")

Limit = Annotated[int, Parameter(validator=Number(gte=1, lte=10_000), help="At most so many.")]


@audit_app.command(name="list")
def list_(
    *,
    actor: str | None = None,
    action: str | None = None,
    target: str | None = None,
    before: str | None = None,
    limit: Limit = 100,
    json: bool = False,
    role: RoleOption = None,
    tenant: TenantOption = None,
) -> int:
    """List entries of the audit trail, the newest first; also beside the running service.

    Parameters
    ----------
    actor
        Only what this caller did: the subject of a token, `anonymous`, `access-token` or `local`.
    action
        Only what was done in this way, such as `result.downloaded`.
    target
        Only what was done to the connection or job with this id.
    before
        Only older ones: `TIME/ID` of an entry as this command prints it, or a time alone.
    json
        A line of JSON for each entry.
    """
    from fetcher.cli.audit_list import parse_place, run_list

    if action is not None and action not in frozenset(AuditAction):
        complain(f"audit: --action: must be one of {', '.join(AuditAction)}")
        return EXIT_SETTINGS
    chosen = AuditAction(action) if action is not None else None
    place = parse_place(before) if before is not None else None
    if before is not None and place is None:
        complain("audit: --before: must be a time with its zone (RFC 3339), or TIME/ID of an entry")
        return EXIT_SETTINGS
    query = AuditQuery(actor=actor, action=chosen, target=target, before=place, limit=limit)
    return run_list(target_for(role, tenant), query, wide_console(), as_json=json)
