"""JOB_RETENTION_DAYS, RESULT_RETENTION_DAYS."""

import pytest

from fetcher.settings import Role, SettingsRefused, load_settings


def test_everything_is_kept_unless_it_is_said() -> None:
    settings = load_settings({}, Role.ALL)
    assert (settings.job_retention_days, settings.result_retention_days) == (0, 0)


@pytest.mark.parametrize(("jobs", "results"), [("30", "30"), ("30", "7"), ("0", "7")])
def test_results_go_before_their_jobs(jobs: str, results: str) -> None:
    given = {"JOB_RETENTION_DAYS": jobs, "RESULT_RETENTION_DAYS": results}
    settings = load_settings(given, Role.ALL)
    assert (settings.job_retention_days, settings.result_retention_days) == (
        int(jobs),
        int(results),
    )


@pytest.mark.parametrize("results", ["0", "31"])
def test_jobs_that_would_go_before_their_results_stop_the_start(results: str) -> None:
    given = {"JOB_RETENTION_DAYS": "30", "RESULT_RETENTION_DAYS": results}
    with pytest.raises(SettingsRefused) as refused:
        load_settings(given, Role.ALL)
    [problem] = refused.value.problems
    assert problem.startswith("JOB_RETENTION_DAYS: needs RESULT_RETENTION_DAYS, from 1 to as many")


@pytest.mark.parametrize("name", ["JOB_RETENTION_DAYS", "RESULT_RETENTION_DAYS"])
@pytest.mark.parametrize("value", ["-1", "x", "1.5", "36501"])
def test_what_is_no_number_of_days_stops_the_start_by_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        load_settings({name: value}, Role.ALL)
    assert any(problem.startswith(f"{name}: ") for problem in refused.value.problems)
