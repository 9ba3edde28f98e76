"""Texts of a damaged file: bytes that are no UTF-8.

Left to itself the module refuses the whole answer for one of them: a list, or a batch of jobs to
dispatch, would be kept back by a single record for ever.
"""

from sqlite3 import Row

from fetcher.domain.errors import RecordCorrupt


class DamagedText(str):
    """What can be read of it: good for the log, and for nothing that is decided."""

    __slots__ = ()


def text_of(data: bytes) -> str:
    """For a connection's ``text_factory``."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return DamagedText(data.decode(errors="replace"))


def check_texts(row: Row) -> None:
    """Raise RecordCorrupt with the name of the first column that has such a text."""
    for column in row.keys():  # noqa: SIM118 - iterating over a row gives its values
        if isinstance(row[column], DamagedText):
            raise RecordCorrupt(f"the column {column} holds something else")
