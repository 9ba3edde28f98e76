"""SQLite's values as JSON. The storage class decides, not the declared type: SQLite keeps in a
column whatever was put there.

``INTEGER`` is a JSON integer, ``REAL`` the shortest number that reads back the same (infinities as
strings), ``TEXT`` a string, also where it looks like a date, a decimal or JSON, ``BLOB`` base64. A
column declared ``DECIMAL`` therefore gives numbers for what SQLite turned into numbers, and strings
for decimals that were stored as text. Both profiles are the same.
"""

from collections.abc import Callable, Sequence
from typing import Any, Final

from fetcher.datasources.texts import Texts
from fetcher.domain.jobs import JobOptions
from fetcher_engine import encode_text, encode_value

_LARGEST_SAFE: Final = 2**53


class ValueRenderer:
    def __init__(self, options: JobOptions, texts: Texts | None = None) -> None:
        self.texts = texts or Texts()
        self._by_type: dict[type, Callable[[Any], str]] = {
            int: _safe_integer if options.bigint == "string" else str,
            float: encode_value,
            str: encode_text,
            bytes: encode_value,
            type(None): encode_value,
        }

    def row_template(self, fields: Sequence[str]) -> str:
        """For ``%`` with the cells in the order of the fields."""
        members = ",".join(f"{encode_text(name).replace('%', '%%')}:%s" for name in fields)
        return f"{{{members}}}"

    def cells(self, row: Sequence[object]) -> tuple[str, ...]:
        by_type = self._by_type
        return tuple([by_type[type(value)](value) for value in row])


def _safe_integer(value: int) -> str:
    return str(value) if -_LARGEST_SAFE <= value <= _LARGEST_SAFE else f'"{value}"'
