"""The commands below `fetcher dlq`, and their options."""

from pathlib import Path
from typing import Annotated

from cyclopts import App, Parameter
from cyclopts.validators import Number

from fetcher.cli.exits import wide_console
from fetcher.cli.shared_options import RoleOption, TenantOption, target_for

dlq_app = App(name="dlq", help="Dead letters: messages that nobody could work on.")

Limit = Annotated[int, Parameter(validator=Number(gte=1), help="At most so many.")]
Reason = Annotated[str | None, Parameter(help="Only those that were rejected for this reason.")]
Rate = Annotated[float, Parameter(validator=Number(gt=0, lte=10_000), help="Jobs a second.")]


@dlq_app.command(name="list")
def list_(
    *,
    limit: Limit = 100,
    reason: Reason = None,
    role: RoleOption = None,
    tenant: TenantOption = None,
    json: bool = False,
) -> int:
    """List dead letters; they stay where they are."""
    from fetcher.cli.dead_letters import run_list
    from fetcher.commands.dead_letters import Choice

    choice = Choice(reason=reason, limit=limit)
    return run_list(target_for(role, tenant), choice, wide_console(), as_json=json)


@dlq_app.command
def show(
    which: str, /, *, role: RoleOption = None, tenant: TenantOption = None, json: bool = False
) -> int:
    """Show one dead letter with headers and body.

    Parameters
    ----------
    which
        Its position in the list, or the id of its job.
    """
    from fetcher.cli.dead_letters import run_show

    return run_show(target_for(role, tenant), which, wide_console(), as_json=json)


@dlq_app.command
def export(
    file: Path,
    /,
    *,
    limit: Limit = 10_000,
    reason: Reason = None,
    role: RoleOption = None,
    tenant: TenantOption = None,
    json: bool = False,
) -> int:
    """Save dead letters, with headers and bodies, in a new file; they stay where they are.

    Parameters
    ----------
    file
        A line of JSON for each letter; for its owner alone. It must not be there yet.
    """
    from fetcher.cli.dead_letters import run_export
    from fetcher.commands.dead_letters import Choice

    choice = Choice(reason=reason, limit=limit)
    return run_export(target_for(role, tenant), choice, file, as_json=json)


@dlq_app.command
def redrive(
    *,
    limit: Limit = 10_000,
    reason: Reason = None,
    rate: Rate = 200.0,
    role: RoleOption = None,
    tenant: TenantOption = None,
    json: bool = False,
) -> int:
    """Dispatch the jobs of genuine letters anew, from their records; those letters are removed.

    Jobs that have ended, are worked on or wait are skipped and told. Of the message only the job's
    id counts. With the embedded queue the service must be stopped.
    """
    from fetcher.cli.dead_letters import run_redrive
    from fetcher.commands.dead_letters import Choice

    choice = Choice(reason=reason, limit=limit)
    return run_redrive(target_for(role, tenant), choice, jobs_a_second=rate, as_json=json)


@dlq_app.command
def purge(
    *,
    limit: Limit = 10_000,
    reason: Reason = None,
    listed: Path | None = None,
    yes: bool = False,
    role: RoleOption = None,
    tenant: TenantOption = None,
    json: bool = False,
) -> int:
    """Throw dead letters away, for good. With the embedded queue the service must be stopped.

    Parameters
    ----------
    listed
        A file that `export` wrote: only what it holds is thrown away.
    yes
        Without it nothing is thrown away.
    """
    from fetcher.cli.dead_letters import run_purge
    from fetcher.commands.dead_letters import Choice

    choice = Choice(reason=reason, limit=limit)
    return run_purge(target_for(role, tenant), choice, listed=listed, is_sure=yes, as_json=json)
