"""What the result operations answer."""

from collections.abc import Mapping

from fetcher.api.models.connections import Answer, AnyJson, Id
from fetcher.domain.ids import JobId
from fetcher.domain.json_text import dumps
from fetcher.domain.result_rows import TableHead


class PreviewAnswer(Answer):
    """The first rows of each table; written by :func:`preview_json`, described by this."""

    job_id: Id
    limit: int
    row_counts: Mapping[str, Mapping[str, int]]
    rows: Mapping[str, Mapping[str, list[AnyJson]]]


def preview_json(
    job_id: JobId, tables: Mapping[str, Mapping[str, TableHead]], *, limit: int
) -> bytes:
    """The rows go in as they were stored, byte by byte: no number passes through a parser."""
    counts = {
        config: {table: head.row_count for table, head in heads.items()}
        for config, heads in tables.items()
    }
    rows = _object(
        {
            config: _object(
                {table: b"[" + b",".join(head.rows) + b"]" for table, head in heads.items()}
            )
            for config, heads in tables.items()
        }
    )
    return _object(
        {
            "jobId": dumps(str(job_id)).encode(),
            "limit": dumps(limit).encode(),
            "rowCounts": dumps(counts).encode(),
            "rows": rows,
        }
    )


def _object(members: Mapping[str, bytes]) -> bytes:
    return b"{" + b",".join(dumps(n).encode() + b":" + text for n, text in members.items()) + b"}"
