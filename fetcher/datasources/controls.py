"""Whether rendered rows hold control characters, which JSON has inside of strings only escaped."""

from typing import Final

_CONTROLS: Final = [bytes([code]) for code in range(32)]


def has_controls(data: bytes) -> bool:
    """Sought one after the other, in a bit more than half of the time of ``bytes.translate``: the C
    library looks at many bytes at once. Rows mostly have none.
    """
    return any(map(data.__contains__, _CONTROLS))
