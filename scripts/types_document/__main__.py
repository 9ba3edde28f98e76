"""Write docs/types.md."""

from pathlib import Path

from scripts.types_document.page import page

PATH = Path(__file__).parents[2] / "docs" / "types.md"

if __name__ == "__main__":
    PATH.write_text(page(), encoding="utf-8")
