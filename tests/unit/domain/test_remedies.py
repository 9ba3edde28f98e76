"""What people are told to do about a source that could not be reached."""

import pytest

from fetcher.domain.remedies import remedy


@pytest.mark.parametrize(
    ("stage", "reason", "told"),
    [
        ("auth", "auth", "password"),
        ("auth", "database_missing", "databaseName"),
        ("tcp", "refused", "port"),
        ("tls", "tls", "ssl.mode"),
        ("tls", "tls_required", "ssl.mode"),
        ("session", "invalid_setting", "metadata"),
        ("session", "type_off", "SQLITE is off here: DATASOURCE_SQLITE_DIR"),
    ],
)
def test_reason_tells_what_to_check(stage: str, reason: str, told: str) -> None:
    assert told in remedy(reason, stage=stage)


@pytest.mark.parametrize("reason", ["timeout", "reset", "protocol"])
def test_whatever_fails_within_tls_points_to_tls(reason: str) -> None:
    assert "ssl.mode" in remedy(reason, stage="tls")


@pytest.mark.parametrize("reason", [None, "", "network", "unknown"])
def test_reason_that_tells_nothing_points_to_nothing_in_particular(reason: str | None) -> None:
    assert remedy(reason, stage="tcp") == "check its address, its network and the credentials"
