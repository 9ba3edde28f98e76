"""What is written where."""

from pathlib import Path

from fetcher.settings import Role
from scripts.settings_document.examples import example
from scripts.settings_document.page import page

ROOT = Path(__file__).parents[2]


def written() -> dict[Path, str]:
    """The text of each file."""
    examples = {ROOT / "config" / f"{role.value}.env.example": example(role) for role in Role}
    return {ROOT / "docs" / "settings.md": page(), **examples}
