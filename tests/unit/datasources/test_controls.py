"""Control characters in rendered rows."""

import json

import pytest

from fetcher.datasources.controls import escaped, has_controls

ROW = '{"name":"héllo \u007f ~ \u0080 東京","at":"2031-03-14 09:26:53"}'.encode()


def test_a_row_without_any() -> None:
    assert not has_controls(ROW)
    assert not has_controls(b"")


@pytest.mark.parametrize("code", range(32))
@pytest.mark.parametrize("place", [0, 20, len(ROW)])
def test_each_is_found_wherever_it_stands(code: int, place: int) -> None:
    assert has_controls(ROW[:place] + bytes([code]) + ROW[place:])


def test_what_is_escaped_is_read_as_it_was() -> None:
    controls = bytes(range(32))
    text = escaped(b'["' + controls + b'", "' + ROW.replace(b'"', b"'") + b'"]')
    assert not has_controls(text)
    assert json.loads(text) == [controls.decode(), ROW.decode().replace('"', "'")]
