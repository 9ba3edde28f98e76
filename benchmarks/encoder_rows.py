"""Sets of rows that an encoder meets, the same in every run."""

from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from random import Random
from typing import Any, Final
from uuid import UUID

Row = dict[str, Any]

ROWS: Final = 2_000
"""As many as come in one or a few batches: more would measure the machine's memory."""

_WORDS: Final = [
    "lorem",
    "ipsum",
    "dolor",
    "sit",
    "amet",
    "consectetur",
    "straße",
    "naïve",
    "東京",
    "adipiscing",
    "elit",
    "sed",
    "do",
]
_START: Final = datetime(2031, 4, 5, 6, 7, 8, tzinfo=UTC)


class _Drawn:
    def __init__(self, seed: int) -> None:
        self.random = Random(seed)  # noqa: S311 - nothing secret

    def words(self, count: int) -> str:
        return " ".join(self.random.choices(_WORDS, k=count))

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def plain(self, number: int) -> Row:
        """A table of an application: numbers, short texts, booleans, nulls."""
        return {
            "id": number,
            "customer_id": self.random.randrange(10**9),
            "status": self.random.choice(["new", "paid", "sent"]),
            "name": self.words(3),
            "email": f"user{number}@example.test",
            "active": self.chance(0.5),
            "note": self.words(4) if self.chance(0.7) else None,
            "quantity": self.random.randrange(100),
            "parent_id": self.random.randrange(10**6) if self.chance(0.3) else None,
            "city": self.random.choice(_WORDS),
        }

    def mixed(self, number: int) -> Row:
        """Every type that JSON has no own form for, beside those that it has one for."""
        return {
            "id": number,
            "amount": Decimal(self.random.randrange(10**7)).scaleb(-2),
            "created_at": _START + timedelta(milliseconds=10 * self.random.randrange(10**9)),
            "day": date(2031, 1, 1) + timedelta(days=self.random.randrange(900)),
            "score": self.random.random() * 1000,
            "share": float(self.random.randrange(100)),
            "data": self.random.randbytes(24),
            "key": UUID(int=self.random.getrandbits(128)),
            "name": self.words(3),
            "active": self.chance(0.5),
            "comment": self.words(2) if self.chance(0.5) else None,
        }

    def wide_text(self, number: int) -> Row:
        """Long texts, with and without something to escape."""
        lines = [f'<p class="x">{self.words(8)}</p>' for _ in range(15)]
        return {"id": number, "body": self.words(300), "html": "\n".join(lines)}

    def nested(self, number: int) -> Row:
        """A JSON column."""
        items = [
            {"sku": f"a{self.random.randrange(999)}", "count": self.random.randrange(9)}
            for _ in range(self.random.randrange(4))
        ]
        address = {"street": self.words(2), "zip": self.random.randrange(99999), "floor": None}
        tags = self.random.choices(_WORDS, k=4)
        return {
            "id": number,
            "document": {"name": self.words(2), "tags": tags, "address": address, "items": items},
        }

    def nested_floats(self, number: int) -> Row:
        """A JSON column with places and prices in it."""
        row = self.nested(number)
        row["document"]["place"] = [self.random.random() * 90, self.random.random() * 180]
        row["document"]["price"] = self.random.randrange(9999) / 100
        return row

    def sparse(self, number: int) -> Row:
        """Documents of a collection: most fields in each, some in some, in any order."""
        row = {"_id": f"{self.random.getrandbits(96):024x}", **self.plain(number)}
        optional = ["name", "note", "parent_id", "city", "active", "quantity"]
        self.random.shuffle(optional)
        moved = {name: row.pop(name) for name in optional}
        return row | {name: value for name, value in moved.items() if self.chance(0.7)}

    def ragged(self, number: int) -> Row:
        """Hardly two rows alike: of 14 columns each has its own 60 %."""
        row: Row = {"_id": f"{self.random.getrandbits(96):024x}"}
        for field in self.random.sample(range(14), 14):
            if self.chance(0.6):
                values = [number, self.words(2), None, number % 2 == 0, number * 1.5]
                row[f"field{field}"] = values[field % 5]
        return row


def row_sets() -> dict[str, list[Row]]:
    """By name."""
    drawn = _Drawn(7)
    kinds: list[Callable[[int], Row]] = [
        *(drawn.plain, drawn.mixed, drawn.wide_text, drawn.nested, drawn.nested_floats),
        *(drawn.sparse, drawn.ragged),
    ]
    return {kind.__name__: [kind(number) for number in range(ROWS)] for kind in kinds}
