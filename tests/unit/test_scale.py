import pytest

from tests.scale import scaled


@pytest.mark.parametrize(
    ("scale", "expected"), [("", 25), ("1", 25), ("40", 1000), ("0.1", 2), ("0.001", 1)]
)
def test_counts_follow_the_scale_and_never_become_none(
    scale: str, expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCHER_TEST_SCALE", scale)
    assert scaled(25) == expected


@pytest.mark.parametrize("scale", ["0", "-1", "inf", "nan", "much"])
def test_a_scale_that_is_no_positive_number_stops_the_run(
    scale: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FETCHER_TEST_SCALE", scale)
    with pytest.raises(ValueError, match=scale):
        scaled(25)
