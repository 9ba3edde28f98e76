"""Write the golden statements of verify-sources anew: ``python -m tests.verify.golden``."""

from pathlib import Path
from typing import Final

from fetcher.domain.connections import SourceType
from tests.verify.tables import golden_text

UNSEEN: Final = (SourceType.SQL_SERVER, SourceType.ORACLE)
"""Databases that do not run here."""


def golden_file(kind: SourceType) -> Path:
    return Path(__file__).parents[1] / "golden" / "verify" / f"{kind.lower()}.txt"


def main() -> None:
    for kind in UNSEEN:
        golden_file(kind).parent.mkdir(parents=True, exist_ok=True)
        golden_file(kind).write_text(golden_text(kind), encoding="utf-8")


if __name__ == "__main__":
    main()
