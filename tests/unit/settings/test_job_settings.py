"""JOBS_MAX_PENDING, JOBS_MAX_PENDING_PER_PRODUCT, RESULT_REDIRECT, RESULT_PREVIEW_ENABLED."""

import pytest

from fetcher.settings import DeploymentMode, Role, Settings, SettingsRefused, load_settings


def test_defaults() -> None:
    settings = load_settings({}, Role.ALL)
    assert (settings.jobs_max_pending, settings.jobs_max_pending_per_product) == (10_000, 0)
    assert (settings.result_redirect, settings.previews_results) == (False, True)


@pytest.mark.parametrize(
    ("mode", "said", "expected"),
    [
        (DeploymentMode.SAAS, None, False),
        (DeploymentMode.SAAS, True, True),
        (DeploymentMode.BYOC, None, True),
        (DeploymentMode.LOCAL, False, False),
    ],
)
def test_previews_are_off_in_saas_mode_unless_it_is_said(
    mode: DeploymentMode, said: bool | None, expected: bool
) -> None:
    settings = Settings(deployment_mode=mode, result_preview_enabled=said)
    assert settings.previews_results is expected


@pytest.mark.parametrize("name", ["JOBS_MAX_PENDING", "JOBS_MAX_PENDING_PER_PRODUCT"])
@pytest.mark.parametrize("value", ["-1", "100001", "x", "1.5"])
def test_what_is_no_limit_stops_the_start_by_its_name(name: str, value: str) -> None:
    with pytest.raises(SettingsRefused) as refused:
        load_settings({name: value}, Role.ALL)
    [problem] = refused.value.problems
    assert problem.startswith(f"{name}: ")


def test_limits_are_read() -> None:
    settings = load_settings(
        {"JOBS_MAX_PENDING": "0", "JOBS_MAX_PENDING_PER_PRODUCT": "100000"}, Role.ALL
    )
    assert (settings.jobs_max_pending, settings.jobs_max_pending_per_product) == (0, 100_000)
