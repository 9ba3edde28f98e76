"""What a decoder is, and what those of several groups need."""

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

FOLDERS: Final[list[Path]] = []
"""To be removed by whoever ran the decoders."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """``decode`` may raise ``refusals`` and nothing else."""

    seeds: Sequence[bytes]
    decode: Callable[[bytes], object]
    refusals: tuple[type[BaseException], ...] = ()


def text_of(data: bytes) -> str:
    """Any bytes as a text of as many characters."""
    return data.decode("latin-1")


def in_file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    """``read`` finds the bytes under the name in its folder."""
    folder = Path(tempfile.mkdtemp(prefix="fetcher-fuzz-"))
    FOLDERS.append(folder)

    def decode(data: bytes) -> object:
        (folder / name).write_bytes(data)
        return read(folder)

    return decode
