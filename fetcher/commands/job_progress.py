"""What an attempt has read so far, and how the record hears of it."""

from collections.abc import Callable
from typing import Final

import trio

from fetcher.domain.errors import PortError
from fetcher.domain.job_store import Lease
from fetcher.domain.jobs import Progress, TableProgress
from fetcher.ports import JobLeases

NOTE_SECONDS: Final = 2.0
"""The least time between two notes of one job, and the deadline of one."""


class ProgressBoard:
    """Rows and bytes of each table: the Engine's ``Progress``, so it only counts."""

    def __init__(self, count: Callable[[int, int], None]) -> None:
        """``count`` hears how many rows and bytes more there are."""
        self._tables: dict[tuple[str, str], tuple[int, int]] = {}
        self._count = count

    def __call__(self, config_name: str, table: str, rows: int, size_bytes: int, /) -> None:
        rows_before, bytes_before = self._tables.get((config_name, table), (0, 0))
        self._count(rows - rows_before, size_bytes - bytes_before)
        self._tables[config_name, table] = rows, size_bytes

    def snapshot(self) -> Progress:
        progress: dict[str, dict[str, TableProgress]] = {}
        for (config_name, table), (rows, size_bytes) in self._tables.items():
            progress.setdefault(config_name, {})[table] = TableProgress(rows=rows, bytes=size_bytes)
        return progress


async def keep_noted(board: ProgressBoard, *, leases: JobLeases, lease: Lease) -> None:
    """Write what is new into the record, until cancelled or the lease is lost.

    A note that fails is left out: the next one says more, and the terminal write says all.
    """
    noted: Progress = {}
    while True:
        await trio.sleep(NOTE_SECONDS)
        progress = board.snapshot()
        if progress == noted:
            continue
        with trio.move_on_after(NOTE_SECONDS):
            try:
                if not await leases.note_progress(lease, progress):
                    return
            except PortError:
                continue
            noted = progress
