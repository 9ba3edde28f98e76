"""The commands below `fetcher connections`, and their options."""

from cyclopts import App

from fetcher.cli.exits import wide_console
from fetcher.cli.shared_options import RoleOption, UrlOption

connections_app = App(
    name="connections", help="Connections of a running service, over its HTTP API."
)


@connections_app.command(name="list")
def list_(
    *,
    type: str | None = None,  # noqa: A002 - the option's name is the API's
    host: str | None = None,
    database_name: str | None = None,
    start_date: str | None = None,
    end_date: str | None = None,
    sort_order: str | None = None,
    limit: int | None = None,
    page: int | None = None,
    product: str = "",
    url: UrlOption = None,
    json: bool = False,
    role: RoleOption = None,
) -> int:
    """List connections, a page, the newest first. The service judges the filters.

    No password is ever told. Token and exit codes as those of `fetcher jobs list`.

    Parameters
    ----------
    type
        Only of this type of database.
    host
        Only with this host.
    database_name
        Only of this database.
    start_date
        Created on this day or later.
    end_date
        Created before this day.
    sort_order
        asc or desc, by time of creation.
    limit
        So many a page.
    page
        Its number, from 1.
    product
        Only of this product.
    json
        The service's document as it came.
    """
    from fetcher.cli.connections import run_list
    from fetcher.cli.service_requests import target_of

    options = {
        "type": type,
        "host": host,
        "databaseName": database_name,
        "startDate": start_date,
        "endDate": end_date,
        "sortOrder": sort_order,
        "limit": limit,
        "page": page,
    }
    target = target_of("connections", url=url, role=role, as_json=json)
    return run_list(target, options, wide_console(), product=product)


@connections_app.command
def show(
    connection_id: str, /, *, url: UrlOption = None, json: bool = False, role: RoleOption = None
) -> int:
    """Show one connection, without what is secret."""
    from fetcher.cli.connections import run_show
    from fetcher.cli.service_requests import target_of

    target = target_of("connections", url=url, role=role, as_json=json)
    return run_show(target, connection_id, wide_console())


@connections_app.command(name="test")
def try_login(
    connection_id: str, /, *, url: UrlOption = None, json: bool = False, role: RoleOption = None
) -> int:
    """Let the service log in to the connection's database; a failure has its stage and reason."""
    from fetcher.cli.connections import run_test
    from fetcher.cli.service_requests import target_of

    return run_test(target_of("connections", url=url, role=role, as_json=json), connection_id)


@connections_app.command
def delete(
    connection_id: str,
    /,
    *,
    yes: bool = False,
    url: UrlOption = None,
    json: bool = False,
    role: RoleOption = None,
) -> int:
    """Delete a connection that no job reads from.

    Parameters
    ----------
    yes
        Without it nothing is deleted.
    """
    from fetcher.cli.connections import run_delete
    from fetcher.cli.service_requests import target_of

    target = target_of("connections", url=url, role=role, as_json=json)
    return run_delete(target, connection_id, is_sure=yes)
