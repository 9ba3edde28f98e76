"""docs/types.md, and what it is made of."""

from pathlib import Path

import pytest

from scripts.types_document import golden
from scripts.types_document.families import FAMILIES, left_out
from scripts.types_document.golden import Number, exact_json, matrix
from scripts.types_document.page import page

PAGE = Path(__file__).parents[3] / "docs" / "types.md"


def test_page_is_what_the_code_says() -> None:
    """Else: ``make docs``."""
    assert PAGE.read_text(encoding="utf-8") == page()


@pytest.mark.parametrize("database", FAMILIES)
def test_every_type_that_a_connector_tells_apart_is_in_the_matrix(database: str) -> None:
    types = frozenset(each.name for each in matrix(database).types)
    assert left_out(database, types) == frozenset()
    # and the check itself finds what is missing
    dropped = next(iter(types & {"bigint", "NUMBER", "int64", "INTEGER"}))
    assert len(left_out(database, types - {dropped})) == 1


@pytest.mark.parametrize("database", FAMILIES)
def test_every_type_has_values_and_every_family_words(database: str) -> None:
    families = FAMILIES[database]
    for each in matrix(database).types:
        assert any(value.is_shown for value in each.values), each.name
        assert families.words[families.of(each.name)]


@pytest.mark.parametrize("database", FAMILIES)
def test_what_a_family_is_said_to_be_its_values_are(database: str) -> None:
    families = FAMILIES[database]
    for each in matrix(database).types:
        if families.words[families.of(each.name)].startswith("string"):
            texts = [value.expected["json"] for value in each.values]
            assert any(text == "null" or text.startswith('"') for text in texts), each.name


def test_what_nobody_reads_in_a_matrix_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(golden, "FOLDER", tmp_path)
    row = "[[type]]\nname = 'a'\nvalues = [{ sql = '1', json = '1', naturall = '2' }]\n"
    (tmp_path / "x.toml").write_text(row)
    with pytest.raises(ValueError, match="naturall"):
        matrix("x")
    (tmp_path / "x.toml").write_text("prepare = []\n" + row.replace(", naturall = '2'", ""))
    with pytest.raises(ValueError, match="prepare"):
        matrix("x")


def test_numbers_are_compared_by_their_digits() -> None:
    assert exact_json('[1.10, "1.10"]') == [Number("1.10"), "1.10"]
    assert exact_json("1.1") != exact_json("1.10")
    with pytest.raises(ValueError, match="NaN"):
        exact_json("NaN")
