"""The commands below `fetcher jobs`, and their options."""

from typing import Annotated

from cyclopts import App, Parameter

from fetcher.cli.exits import wide_console
from fetcher.cli.shared_options import RoleOption, UrlOption

jobs_app = App(name="jobs", help="Jobs of a running service, over its HTTP API.")

Statuses = Annotated[list[str] | None, Parameter(negative="")]


@jobs_app.command(name="list")
def list_(
    *,
    status: Statuses = None,
    source: str | None = None,
    connection: str | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
    sort_order: str | None = None,
    limit: int | None = None,
    cursor: str | None = None,
    product: str = "",
    url: UrlOption = None,
    json: bool = False,
    role: RoleOption = None,
) -> int:
    """List jobs, a page, the newest first. The service judges the filters.

    The token is FETCHER_TOKEN, else FETCHER_ACCESS_TOKEN of the settings, for each of these
    commands. Exit codes of all: 0; 1 the service refused or is not there; 2 settings or usage.

    Parameters
    ----------
    status
        Only these; again for another: pending, processing, completed, failed, cancelled.
    source
        The product that asked (`metadata.source`).
    connection
        Only jobs that read from this config name.
    start_date
        Created then or later: a date or an RFC 3339 time.
    end_date
        Created before then.
    sort_order
        asc or desc, by time of creation.
    limit
        So many a page.
    cursor
        Where the page before said that there is more.
    product
        The header X-Product-Name.
    json
        The service's document as it came.
    """
    from fetcher.cli.jobs import run_list
    from fetcher.cli.service_requests import target_of

    options = {
        "status": ",".join(status) if status else None,
        "source": source,
        "connection": connection,
        "startDate": start_date,
        "endDate": end_date,
        "sortOrder": sort_order,
        "limit": limit,
        "cursor": cursor,
    }
    target = target_of("jobs", url=url, role=role, as_json=json)
    return run_list(target, options, wide_console(), product=product)


@jobs_app.command
def show(
    job_id: str, /, *, url: UrlOption = None, json: bool = False, role: RoleOption = None
) -> int:
    """Show one job: what was asked, how far it is, how it ended."""
    from fetcher.cli.jobs import run_show
    from fetcher.cli.service_requests import target_of

    target = target_of("jobs", url=url, role=role, as_json=json)
    return run_show(target, job_id, wide_console())


@jobs_app.command
def cancel(
    job_id: str, /, *, url: UrlOption = None, json: bool = False, role: RoleOption = None
) -> int:
    """Ask a job to stop: one that waits is cancelled at once, else its worker is told."""
    from fetcher.cli.jobs import run_cancel
    from fetcher.cli.service_requests import target_of

    return run_cancel(target_of("jobs", url=url, role=role, as_json=json), job_id)


@jobs_app.command
def rerun(
    job_id: str, /, *, url: UrlOption = None, json: bool = False, role: RoleOption = None
) -> int:
    """Run the request of an ended job again, as a new job."""
    from fetcher.cli.jobs import run_rerun
    from fetcher.cli.service_requests import target_of

    return run_rerun(target_of("jobs", url=url, role=role, as_json=json), job_id)
