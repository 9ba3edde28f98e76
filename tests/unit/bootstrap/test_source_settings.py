"""What sources are told of the settings."""

import pytest

from fetcher.bootstrap.adapters import source_settings
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing
from fetcher.settings.model import Settings

CIPHER = CredentialCipher(KeyRing.from_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))


def test_the_old_default_schema_is_kept_only_where_it_is_asked_for() -> None:
    assert not source_settings(Settings(), None, CIPHER).keeps_default_schema
    settings = Settings(datasource_legacy_default_schema=True)
    assert source_settings(settings, None, CIPHER).keeps_default_schema


@pytest.mark.parametrize(
    ("query_seconds", "job_seconds", "expected"), [(120, 300, 120), (300, 300, 290), (300, 5, 1)]
)
def test_a_silent_source_is_given_up_before_the_jobs_own_deadline(
    query_seconds: float, job_seconds: float, expected: float
) -> None:
    """Only the source's own deadline can say which source was silent, and at which stage."""
    settings = Settings(datasource_query_timeout_sec=query_seconds, engine_timeout_sec=job_seconds)
    assert source_settings(settings, None, CIPHER).query_timeout_seconds == expected
