"""Control characters of a foreign text are seen, not obeyed."""

import json

from hypothesis import given
from hypothesis import strategies as st

from fetcher.domain.visible_text import visible, visible_in_json

ANY_TEXT = st.text(alphabet=st.characters(exclude_categories=()))


def test_control_characters_are_shown_as_they_are_written() -> None:
    assert visible("a\x1b[2J\u202eb\r\tc\nd\x9b") == "a\\x1b[2J\\u202eb\\r\tc\nd\\x9b"
    assert visible("Größe ☃ \U0001f4a5 [bold]\\") == "Größe ☃ \U0001f4a5 [bold]\\"


@given(ANY_TEXT)
def test_whatever_is_shown_can_be_written_and_moves_no_cursor(text: str) -> None:
    for shown in (visible(text), visible_in_json(json.dumps(text, ensure_ascii=False))):
        assert not {c for c in shown if c not in "\t\n" and (c < " " or "\x7f" <= c <= "\x9f")}
        shown.encode()


@given(ANY_TEXT)
def test_json_stays_the_same_json(text: str) -> None:
    document = {"a": [text], text: 1}
    written = json.dumps(document, ensure_ascii=False)
    assert json.loads(visible_in_json(written)) == document
