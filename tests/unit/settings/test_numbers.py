"""Numbers are strict: plain digits of ASCII, whatever Python would read besides."""

import pytest

from fetcher.settings import Settings
from tests.unit.settings.test_loading import load, refusals

NUMBERS = {
    name.upper(): field.annotation
    for name, field in Settings.model_fields.items()
    if field.annotation in (int, float, int | None, float | None)
}


@pytest.mark.parametrize("name", sorted(NUMBERS))
@pytest.mark.parametrize("text", ["1_000", "١", "1_0.5"])  # noqa: RUF001 - a digit, not of ASCII
def test_a_number_that_only_python_reads_is_refused(name: str, text: str) -> None:
    problems = refusals({name: text})
    assert f"{name}: must be a number in plain digits" in problems, problems


def test_a_plain_number_is_read_with_blanks_around_it() -> None:
    assert load(JOBS_MAX_PENDING=" 1000 ").jobs_max_pending == 1000
    assert load(ENGINE_TIMEOUT_SEC="1e2").engine_timeout_sec == 100
