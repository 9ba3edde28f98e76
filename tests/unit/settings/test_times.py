"""A time in seconds has an upper bound: it is added to the clock, and no year comes after 9999."""

import pytest

from fetcher.settings import Settings
from fetcher.settings.fields import MOST_SECONDS
from tests.unit.settings.test_loading import refusals

IN_SECONDS = sorted(
    name.upper() for name, field in Settings.model_fields.items() if field.annotation is float
)


@pytest.mark.parametrize("name", IN_SECONDS)
@pytest.mark.parametrize("seconds", [f"{MOST_SECONDS + 1}", "1e300"])
def test_a_time_without_bound_refuses_the_start(name: str, seconds: str) -> None:
    problems = refusals({name: seconds})
    assert [each for each in problems if each.startswith(f"{name}: ")], problems
