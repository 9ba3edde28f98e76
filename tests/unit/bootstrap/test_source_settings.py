"""What sources are told of the settings."""

import pytest
import structlog
from pydantic import SecretStr

from fetcher.bootstrap.adapters import internal_sources, source_settings
from fetcher.crypto.credentials import CredentialCipher
from fetcher.crypto.keys import KeyRing
from fetcher.settings import Role, Settings, load_settings

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


def test_keys_of_sealed_fields_reach_the_sources_and_show_nowhere() -> None:
    settings = Settings(
        crypto_hash_secret_key_plugin_crm=SecretStr("canary-hash"),
        crypto_encrypt_secret_key_plugin_crm=SecretStr("canary-encrypt"),
    )
    cipher = CredentialCipher(KeyRing.from_text("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="))
    told = source_settings(settings, None, cipher)
    keys = told.sealed_field_keys
    assert (keys.hash_secret, keys.encrypt_secret) == ("canary-hash", "canary-encrypt")
    assert "canary" not in repr((settings, told, keys))


async def test_internal_sources_are_those_of_the_usable_groups_and_the_others_are_told_of() -> None:
    group = {"CONFIG_NAME": "plugin_crm", "TYPE": "MONGODB", "HOST": "h", "DATABASE": "crm"}
    variables = {"PORT": "27017", "PASSWORD": "canary", **group}
    environment = {f"DATASOURCE_CRM_{suffix}": value for suffix, value in variables.items()}
    environment["DATASOURCE_ZZ_CONFIG_NAME"] = "unknown-canary"
    settings = load_settings(environment, Role.ALL)
    with structlog.testing.capture_logs() as told:
        found = internal_sources(settings)
    assert (await found.find("plugin_crm")).plain_password == "canary"
    assert told == [
        {
            "event": "internal_source_skipped",
            "log_level": "warning",
            "problem": "DATASOURCE_ZZ_CONFIG_NAME: must be one of"
            " midaz_onboarding, midaz_transaction, plugin_crm",
        }
    ]
