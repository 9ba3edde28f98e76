"""The documents that MongoDB's figures are measured on, as raw batches a server would send."""

import uuid
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

import bson
from bson import Binary, Decimal128, Int64, ObjectId

BATCH_DOCUMENTS: Final = 4000
_START: Final = datetime(2031, 1, 1, 0, 0, 0, 123_000, tzinfo=UTC)
_NAMESPACE: Final = uuid.UUID(int=7)

Document = Mapping[str, Any]


def mixed(number: int) -> Document:
    """The ten columns of the relational figures."""
    return {
        "_id": ObjectId(f"{number:024x}"),
        "big": Int64(9007199254740993 + number),
        "amount": Decimal128(Decimal(number % 1_000_000 + 50) / 100),
        "name": f'customer number {number} "quoted" héllo',
        "created": _START + number * timedelta(seconds=1.5),
        "active": number % 3 == 0,
        "uid": Binary(uuid.uuid5(_NAMESPACE, str(number)).bytes, 4),
        "doc": {"k": number, "tags": ["a", "b"], "v": number * 1.1},
        "score": number**0.5 if number % 10 else None,
        "day": datetime(2031, 1, 1, tzinfo=UTC) + timedelta(days=number % 3650),
    }


def sparse(number: int) -> Document:
    """Each field but the id is missing in a fifth of the documents."""
    fields = mixed(number)
    return {
        name: value
        for place, (name, value) in enumerate(fields.items())
        if not place or (number * 7919 + place * 104_729) % 5
    }


def orders(number: int) -> Document:
    """Nested arrays of documents of changing length."""
    return {
        "_id": ObjectId(f"{number:024x}"),
        "at": _START + number * timedelta(seconds=1.5),
        "note": None if number % 3 else "please ring twice",
        "items": [
            {"sku": f"s{number}-{place}", "qty": place + 1, "price": place * 1.25}
            for place in range(number % 6)
        ],
        "tags": ["x", "y", "z"][: number % 4],
    }


def shapeless(number: int) -> Document:
    """Fields whose names are values: no two documents are alike, and the walker reads them all."""
    return {"_id": number} | {f"k{number}_{place}": number for place in range(9)}


COLLECTIONS: Final[Mapping[str, Callable[[int], Document]]] = {
    "mixed": mixed,
    "sparse": sparse,
    "orders": orders,
    "shapeless": shapeless,
}


def batches(make: Callable[[int], Document], count: int) -> Iterator[bytes]:
    for first in range(0, count, BATCH_DOCUMENTS):
        numbers = range(first, min(first + BATCH_DOCUMENTS, count))
        yield b"".join(bson.encode(make(number)) for number in numbers)
