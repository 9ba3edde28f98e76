"""docs/operations.md is the one page where an operator looks for a setting."""

import re
from pathlib import Path

import pytest

from fetcher.settings import Settings

PAGE = Path(__file__).parents[3] / "docs" / "operations.md"
NAMED = frozenset(re.findall(r"`([A-Z][A-Z0-9_]+)(?:=[^`]*)?`", PAGE.read_text("utf-8")))
SETTINGS = sorted(name.upper() for name in Settings.model_fields if name != "datasource_groups")


@pytest.mark.parametrize("name", SETTINGS)
def test_operators_page_has_every_setting(name: str) -> None:
    assert name in NAMED
