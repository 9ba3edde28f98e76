"""One record that cannot be read must not keep anybody from the others."""

from collections.abc import Callable
from typing import TypeVar

import structlog

from fetcher.adapters.mongo.document_fields import Document
from fetcher.domain.errors import RecordCorrupt

log = structlog.get_logger(__name__)

T = TypeVar("T")


def readable(document: Document, read: Callable[[Document], T]) -> T | None:
    """What ``read`` makes of it; None, and a word in the log, where it raises RecordCorrupt."""
    try:
        return read(document)
    except RecordCorrupt as corrupt:
        record_id = document.get("_id")
        shown = record_id.hex() if isinstance(record_id, bytes) else type(record_id).__name__
        log.error("record_corrupt", what=str(corrupt), record_id=shown)
        return None
