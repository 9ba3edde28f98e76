"""When a file that only grows is set aside, under which name, and how many of those are kept."""

import os
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

import structlog

from fetcher.domain.set_aside_names import set_aside_name, set_aside_place

log = structlog.get_logger(__name__)

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileTurnover:
    """When a file is set aside, and how many are kept; 0 of anything: no such bound.

    A file holds lines of one stretch of ``max_days`` days at most; stretches are counted from 1970,
    in UTC, so that a restart moves none.
    """

    max_bytes: int
    max_days: int
    kept: int
    now: Callable[[], datetime]

    def is_due(self, facts: os.stat_result, *, growth: int) -> bool:
        """Whether these bytes belong into a new file; an empty one is never set aside."""
        if facts.st_size == 0:
            return False
        if self.max_bytes and facts.st_size + growth > self.max_bytes:
            return True
        written = datetime.fromtimestamp(facts.st_mtime, UTC)
        return self.max_days > 0 and self._stretch(written) != self._stretch(self.now())

    def set_aside(self, path: Path) -> Path:
        """Rename it; its new name. Raises OSError."""
        time, number = self.now(), 1
        while (aside := path.with_name(set_aside_name(path.name, time, number=number))).exists():
            number += 1
        path.rename(aside)
        return aside

    def prune(self, path: Path) -> None:
        """Remove the oldest of those set aside, all but ``kept``. What fails is told and left."""
        if not self.kept:
            return
        for old in set_aside_files(path)[: -self.kept]:
            try:
                old.unlink(missing_ok=True)
            except OSError as error:
                log.warning("old_file_kept", file=old.name, reason=os.strerror(error.errno or 0))
            else:
                log.info("old_file_removed", file=old.name)

    def _stretch(self, time: datetime) -> int:
        return (time - _EPOCH) // timedelta(days=self.max_days)


def set_aside_files(path: Path) -> list[Path]:
    """What was set aside of this file, oldest first; none where the folder cannot be read.

    A name that :meth:`FileTurnover.set_aside` never gives is somebody else's file.
    """
    found: list[tuple[tuple[str, int], Path]] = []
    with suppress(OSError):
        for entry in path.parent.iterdir():
            place = set_aside_place(path.name, entry.name)
            if place is not None:
                found.append((place, entry))
    return [entry for _, entry in sorted(found)]
