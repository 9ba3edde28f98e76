"""Origins that browsers may call from: a list with commas (RFC 6454, section 6.2)."""

import re
from typing import Final

ANY: Final = "*"
_ORIGIN: Final = re.compile(
    r"https?://[A-Za-z0-9.-]+(?::[0-9]{1,5})?|https?://\[[0-9a-f:]+\](?::[0-9]{1,5})?"
)


def origins_of(text: str) -> tuple[str, ...]:
    return tuple(entry.strip() for entry in text.split(",") if entry.strip())


def checked_origins(text: str) -> str:
    """Raise ValueError for an entry that no browser sends as its origin."""
    for entry in origins_of(text):
        if entry != ANY and not _ORIGIN.fullmatch(entry):
            raise ValueError("must be * or origins like https://app.example.com, with commas")
    return text
