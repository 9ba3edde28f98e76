"""Whether a request may read from the connections that its names led to (spec rest-api 9.2)."""

from collections.abc import Mapping, Sequence

from fetcher.compat import SourceNames
from fetcher.domain.connections import Connection
from fetcher.domain.errors import FetcherError
from fetcher.domain.job_filters import (
    refuse_lost_filters,
    refuse_unanswerable_filters,
    source_names,
)
from fetcher.domain.job_order import CheckedOrder


def admitted_sources(
    asked: CheckedOrder, found: Sequence[Connection], *, keeps_default: bool
) -> Mapping[str, SourceNames]:
    """How the names of each source are read; ``found`` are the connections that there are.

    Raise a FetcherError with the code of spec 9.2's first failing step among 8 and 9:
    ``FET-1020``, then what filters cannot be, then ``FET-1014`` and ``FET-1016``.
    """
    _refuse_missing(sorted(asked.mapped_fields), found)
    sources = source_names(found, keeps_default=keeps_default)
    refuse_lost_filters(asked.filters, asked=asked.mapped_fields, sources=sources)
    refuse_unanswerable_filters(asked.filters, sources)
    for connection in found:
        if not connection.is_internal:
            _check_product(connection, asked.source)
    return sources


def _refuse_missing(names: Sequence[str], found: Sequence[Connection]) -> None:
    if not found:
        raise FetcherError(
            "FET-1020",
            "No Connections Found",
            f"none of the data sources is configured: {', '.join(names)}",
        )
    known = {connection.config_name for connection in found}
    missing = next((name for name in names if name not in known), None)
    if missing is not None:
        raise FetcherError(
            "FET-1020", "Missing Data Source", f"the data source {missing} is not configured"
        )


def _check_product(connection: Connection, source: str) -> None:
    if not connection.product_name:
        raise FetcherError(
            "FET-1014",
            "Connection Not Assigned",
            f"the connection {connection.config_name} belongs to no product",
        )
    if connection.product_name.strip().lower() != source:
        raise FetcherError(
            "FET-1016",
            "Product Mismatch",
            f"the connection {connection.config_name} belongs to another product",
        )
