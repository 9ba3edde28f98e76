"""Every code that the API answers with is explained (docs/errors.md)."""

import re
from pathlib import Path

from fetcher.api.problems import FRAMEWORK_CODES, STATUS
from fetcher.commands.job_admission import TooManyPendingJobs
from fetcher.domain.errors import RateLimited

DOCUMENT = (Path(__file__).parents[3] / "docs" / "errors.md").read_text()
ROW = re.compile(r"^\| ((?:`[^`]+`(?:, )?)+) \| ([0-9, to]+) \|", re.MULTILINE)


def explained() -> dict[str, set[int]]:
    found: dict[str, set[int]] = {}
    for codes, statuses in ROW.findall(DOCUMENT):
        for code in re.findall(r"`([^`]+)`", codes):
            found[code] = {int(status) for status in re.findall(r"[0-9]+", statuses)}
    return found


def test_every_code_is_listed_with_its_status() -> None:
    listed = explained()
    assert {code for code, status in STATUS.items() if status not in listed.get(code, set())} == (
        set()
    )


def test_every_code_beside_a_number_is_listed_with_its_status() -> None:
    told: dict[str | None, int] = {code: status for status, code in FRAMEWORK_CODES.items()}
    told |= {TooManyPendingJobs("").error_code: 429, RateLimited(1).error_code: 429}
    listed = explained()
    assert {
        code for code, status in told.items() if status not in listed.get(str(code), set())
    } == (set())
