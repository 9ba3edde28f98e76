"""The statement of one page of jobs: names are ours, values are bound."""

from fetcher.adapters.sqlite import rows
from fetcher.adapters.sqlite.times import to_ms
from fetcher.domain.job_store import JobQuery


def list_statement(query: JobQuery) -> tuple[str, rows.Values]:
    """Rows of jobs in the query's order; one more than it asks for, where there is one."""
    # CROSS JOIN: SQLite then reads the left table first, whose key has the list's order.
    sources = "job_source CROSS JOIN job ON job.id = job_source.job_id"
    table = "job" if query.config_name is None else sources
    place = "job.created_at, job.id"
    if query.config_name is not None:
        place = "job_source.created_at, job_source.job_id"
    time = place.partition(",")[0]
    after = query.after
    statuses = {f"status_{n}": status.value for n, status in enumerate(sorted(query.statuses))}
    conditions = {
        "job_source.config_name = :config_name": query.config_name is not None,
        f"job.status IN ({', '.join(f':{name}' for name in statuses)})": bool(statuses),
        "job.product = :product": query.product_name is not None,
        f"{time} >= :created_from": query.created_from is not None,
        f"{time} < :created_until": query.created_until is not None,
        f"({place}) {'>' if query.ascending else '<'} (:after_time, :after_id)": after is not None,
    }
    wanted = " AND ".join(condition for condition, is_asked in conditions.items() if is_asked)
    order = place if query.ascending else place.replace(",", " DESC,") + " DESC"
    values: rows.Values = {
        "config_name": query.config_name,
        "product": None if query.product_name is None else rows.product_key(query.product_name),
        "created_from": to_ms(query.created_from),
        "created_until": to_ms(query.created_until),
        "after_time": to_ms(after.created_at) if after else None,
        "after_id": after.job_id.bytes if after else None,
        "limit": query.limit + 1,
        **statuses,
    }
    statement = f"SELECT job.* FROM {table} WHERE {wanted or 'TRUE'} ORDER BY {order} LIMIT :limit"  # noqa: S608  # our names
    return statement, values
