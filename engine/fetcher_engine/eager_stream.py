"""A stream over rows that are there already (spec 5.4)."""

from collections.abc import Iterator, Mapping, Sequence

from fetcher_engine.batches import RowBatch

_BATCH_ROWS = 256


class EagerStream:
    """For connectors whose source gives everything at once: tables in byte order, rows as given.

    The order is fixed at construction. A table without rows yields nothing; after the end and
    after :meth:`aclose`, which lets go of the rows, every call gives None.
    """

    def __init__(
        self,
        rows: Mapping[str, Sequence[Mapping[str, object]]],
        *,
        rows_per_batch: int = _BATCH_ROWS,
    ) -> None:
        """``rows_per_batch`` is all that bounds a batch; raise ValueError below 1."""
        if rows_per_batch < 1:
            raise ValueError("a batch holds one row at least")
        self._batches = _batches({t: list(rows[t]) for t in sorted(rows)}, rows_per_batch)

    async def next_batch(self) -> RowBatch | None:
        """The next rows of one table, None at the end."""
        return next(self._batches, None)

    async def aclose(self) -> None:
        """Let go of the rows. Idempotent."""
        self._batches = iter(())


def _batches(tables: dict[str, list[Mapping[str, object]]], size: int) -> Iterator[RowBatch]:
    for table, rows in tables.items():
        for start in range(0, len(rows), size):
            yield RowBatch(table, rows[start : start + size])
