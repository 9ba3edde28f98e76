"""Reading the fields of one stored document, strictly and without its values in any error."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias
from uuid import UUID

from bson import Binary

from fetcher.domain.errors import RecordCorrupt

Document: TypeAlias = dict[str, Any]
"""As pymongo reads and writes it: the foreign edge."""

UUID_SUBTYPES = (0, 4)
"""Ids are written with subtype 0, as the reference does; both are read (decisions)."""


FIRST_TIME: Final = datetime.min.replace(tzinfo=UTC)
LAST_TIME: Final = datetime(9999, 12, 31, tzinfo=UTC)
"""BSON holds times beyond these, which no ``datetime`` does: no measure is to come upon one."""


def id_filter(record_id: UUID) -> Document:
    return {"_id": {"$in": id_forms([record_id])}}


def id_forms(record_ids: Iterable[UUID]) -> list[Binary]:
    return [Binary(each.bytes, subtype) for each in record_ids for subtype in UUID_SUBTYPES]


def time_has_come(*names: str, now: datetime) -> Document:
    """The condition that each of these fields has no time, or one that is not after ``now``.

    Not by ``$or``: beside one, not every server looks a known ``_id`` up by its index.
    """
    return {name: {"$not": {"$gt": now}} for name in names}


class DocumentFields:
    """A document with the name under which its corruption is reported.

    An absent field and a null one are the same to every method; a value of another type raises
    RecordCorrupt, which names the field.
    """

    def __init__(self, record: str, document: Mapping[str, Any]) -> None:
        self._record = record
        self._document = document

    def corrupt(self, name: str) -> RecordCorrupt:
        return RecordCorrupt(f"{self._record}: {name}")

    def record_id(self) -> UUID:
        value = self._document.get("_id")
        # pymongo reads subtype 0 as bytes, every other one as its own type.
        known = not isinstance(value, Binary) or value.subtype in UUID_SUBTYPES
        if isinstance(value, bytes) and len(value) == 16 and known:
            return UUID(bytes=bytes(value))
        raise self.corrupt("_id")

    def text(self, name: str) -> str:
        value = self._document.get(name)
        if value is None:
            return ""
        if isinstance(value, str):
            return value
        raise self.corrupt(name)

    def optional_text(self, name: str) -> str | None:
        return self.text(name) if self._document.get(name) is not None else None

    def count(self, name: str) -> int:
        """A whole number, 0 where there is none; a double with a whole value counts as one."""
        value = self._document.get(name)
        if value is None:
            return 0
        if isinstance(value, float) and value.is_integer():
            return int(value)
        if isinstance(value, int) and not isinstance(value, bool):
            return int(value)
        raise self.corrupt(name)

    def optional_time(self, name: str) -> datetime | None:
        value = self._document.get(name)
        if value is None:
            return None
        # Years beyond Python's come as DatetimeMS.
        if isinstance(value, datetime):
            return value.astimezone(UTC)
        raise self.corrupt(name)

    def time(self, name: str) -> datetime:
        value = self.optional_time(name)
        if value is None:
            raise self.corrupt(name)
        return value

    def optional_bytes(self, name: str) -> bytes | None:
        value = self._document.get(name)
        if value is None or isinstance(value, bytes):
            return None if value is None else bytes(value)
        raise self.corrupt(name)

    def document(self, name: str) -> Mapping[str, Any]:
        value = self._document.get(name)
        if value is None:
            return {}
        if isinstance(value, Mapping):
            return value
        raise self.corrupt(name)

    def items(self, name: str) -> list[Any]:
        value = self._document.get(name)
        if value is None:
            return []
        if isinstance(value, list):
            return value
        raise self.corrupt(name)
