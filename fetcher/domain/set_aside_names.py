"""Names of files that were set aside, for whoever makes, removes, reads or copies such files."""

import re
from datetime import datetime
from pathlib import PurePath
from typing import Final

_STAMP: Final = re.compile(r"(\d{8}T\d{9}Z)(?:\.(\d{3,9}))?", re.ASCII)


def set_aside_name(file: str, time: datetime, *, number: int) -> str:
    """``events.jsonl`` becomes ``events-20260131T235959123Z.jsonl``, and a second of the same
    moment ``events-20260131T235959123Z.002.jsonl``. ``time`` is in UTC."""
    stamp = f"{time:%Y%m%dT%H%M%S}{time.microsecond // 1000:03}Z"
    # Zero-padded, so that names stand in the order of time.
    numbered = f".{number:03}" if number > 1 else ""
    path = PurePath(file)
    return f"{path.stem}-{stamp}{numbered}{path.suffix}"


def set_aside_place(file: str, name: str) -> tuple[str, int] | None:
    """Its place in the order of those that were set aside of ``file``; None for any other name."""
    path = PurePath(file)
    start, end = f"{path.stem}-", path.suffix
    if not (name.startswith(start) and name.endswith(end)):
        return None
    found = _STAMP.fullmatch(name, len(start), len(name) - len(end))
    return (found[1], int(found[2] or 1)) if found is not None else None
