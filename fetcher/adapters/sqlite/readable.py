"""One record that cannot be read must not keep anybody from the others."""

from collections.abc import Callable, Iterable
from sqlite3 import Row
from typing import TypeVar

import structlog

from fetcher.adapters.sqlite.damaged_texts import check_texts
from fetcher.domain.errors import RecordCorrupt

log = structlog.get_logger(__name__)

T = TypeVar("T")


def readable(found: Iterable[Row], read: Callable[[Row], T]) -> list[T]:
    """What ``read`` makes of each row, but for those, told in the log, that it calls corrupt."""
    records = []
    for row in found:
        try:
            check_texts(row)
            records.append(read(row))
        except RecordCorrupt as corrupt:
            log.error("record_corrupt", what=str(corrupt), record_id=row["id"].hex())
    return records
