"""Names, requests and snapshots as the contract with existing users wants them (spec engine 17)."""

from fetcher.compat.names import SourceNames, normalized_field, normalized_table
from fetcher.compat.requests import normalized_request
from fetcher.compat.snapshots import prepared_snapshot
from fetcher.compat.system_tables import is_system_table

__all__ = [
    "SourceNames",
    "is_system_table",
    "normalized_field",
    "normalized_request",
    "normalized_table",
    "prepared_snapshot",
]
