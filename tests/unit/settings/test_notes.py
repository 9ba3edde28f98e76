"""What is warned of, and what is accepted in silence."""

from datetime import UTC, datetime

import pytest

from fetcher.settings import ProcessEnvironment, Role, SettingNotes, load_settings, notes_on
from tests.unit.settings.test_loading import KEY, WORKER, refusals
from tests.unit.settings.test_tenant_settings import TENANTS

NOW = datetime(2026, 3, 14, tzinfo=UTC)


def notes(**environment: str) -> SettingNotes:
    settings = load_settings(environment, Role.ALL)
    return notes_on(settings, ProcessEnvironment(variables=environment), now=NOW)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("RABITMQ_HOST", "RABBITMQ_HOST"),
        ("RABBITMQ_HOTS", "RABBITMQ_HOST"),
        ("MONGO_USERNAME", "MONGO_USER"),
        ("mongo_host", "MONGO_HOST"),
        ("OBJECT_STORAGE_ACCESS_KEY", "OBJECT_STORAGE_ACCESS_KEY_ID"),
        ("JOB_LEASE_SECONDS", "JOB_LEASE_SEC"),
        ("APP_ENC_KEY_FIEL", "APP_ENC_KEY_FILE"),
        ("DATASOURCE_HOST_GARD", "DATASOURCE_HOST_GUARD"),
    ],
)
def test_a_slip_is_warned_of_with_what_was_meant(name: str, meant: str) -> None:
    assert notes(**{name: "canary"}).warnings == (f"{name}: unknown; did you mean {meant}?",)
    assert notes(**{name: " "}) == SettingNotes()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("FETCHER_ACCES_TOKEN", "FETCHER_ACCESS_TOKEN"),
        ("FETCHER_ACCESS_TOKEN_FIL", "FETCHER_ACCESS_TOKEN_FILE"),
        ("FETCHER_DATA_DIRECTORY", "FETCHER_DATA_DIR"),
    ],
)
def test_a_slip_in_a_name_of_ours_refuses_the_start(name: str, meant: str) -> None:
    """Without the token that was meant the API would be open."""
    assert refusals({name: "canary"}) == [f"{name}: unknown; did you mean {meant}?"]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PATH", "/bin"),
        ("HOSTNAME", "pod-1"),
        ("LC_ALL", "C.UTF-8"),
        ("JOB_NAME", "nightly"),
        ("SERVER_SOFTWARE", "x"),
        ("FETCHER_MANAGER_SERVICE_HOST", "10.0.0.1"),
        ("FETCHER_PORT_4006_TCP_ADDR", "10.0.0.1"),
        ("FETCHER_DATA_PORT", "tcp://10.0.0.1:4006"),
        ("OTEL_RESOURCE_SERVICE_NAMES", "x"),
        ("FETCHER_TEST_POSTGRES_DSN", "x"),
        ("FETCHER_EXTERNAL_HMAC_KEY", "x"),
        ("FETCHER_TOKEN", "x"),
        ("FETCHER_TOKEN_FILE", "x"),
        ("BASH_FUNC_x%%", "() {"),
    ],
)
def test_what_belongs_to_others_is_no_slip(name: str, value: str) -> None:
    assert notes(**{name: value}) == SettingNotes()


def test_numbers_that_count_as_another_are_told() -> None:
    assert notes(
        RABBITMQ_NUMBERS_OF_WORKERS="0",
        HEALTH_PORT="65536",
        READYZ_DRAIN_DELAY_SEC="-2",
        JOB_LEASE_SEC="60.0",
        REDIS_DB=" 3 ",
    ).warnings == (
        "HEALTH_PORT: the default counts instead of what is set",
        "READYZ_DRAIN_DELAY_SEC: 1 counts instead of what is set",
        "RABBITMQ_NUMBERS_OF_WORKERS: 5 counts instead of what is set",
    )


def test_a_file_for_what_is_no_secret_is_told() -> None:
    assert notes(MONGO_HOST_FILE="/run/secrets/host").warnings == (
        "MONGO_HOST_FILE: is not read, only secrets may lie in files",
    )


def test_a_prefix_without_a_slash_is_told() -> None:
    [warning] = notes(OBJECT_STORAGE_KEY_PREFIX="results").warnings
    assert warning.startswith("OBJECT_STORAGE_KEY_PREFIX: does not end in '/'")
    assert notes(OBJECT_STORAGE_KEY_PREFIX="results/") == SettingNotes()


def test_a_group_that_nothing_makes_one_is_told() -> None:
    of_a_group = {"DATASOURCE_CRM_HOST": "crm.test", "DATASOURCE_CRM_PASSWORD": "canary"}
    assert notes(**of_a_group).warnings == (
        "DATASOURCE_CRM_CONFIG_NAME: not set, so DATASOURCE_CRM_* is not read",
    )
    assert notes(**of_a_group, DATASOURCE_CRM_CONFIG_NAME="plugin_crm") == SettingNotes()
    slip = notes(DATASOURCE_CRM_CONFIG_NAME="plugin_crm", DATASOURCE_CRM_PASWORD="canary")
    assert slip.warnings == (
        "DATASOURCE_CRM_PASWORD: unknown; did you mean DATASOURCE_CRM_PASSWORD?",
    )


def test_names_of_the_reference_that_nobody_reads_are_told_as_ignored() -> None:
    found = notes(
        LICENSE_KEY="canary",
        RATE_LIMIT_MAX="5",
        SEAWEEDFS_TTL=" ",
        STREAMING_BROKERS="a:9092",
        RABBITMQ_HEALTH_CHECK_URL="http://rabbit.test:15672",
    )
    assert found.warnings == ()
    assert found.ignored == (
        "LICENSE_KEY",
        "RABBITMQ_HEALTH_CHECK_URL",
        "RATE_LIMIT_MAX",
        "STREAMING_BROKERS",
    )


def test_a_missing_file_of_the_environment_is_noted() -> None:
    settings = load_settings(WORKER, Role.WORKER)
    found = notes_on(settings, ProcessEnvironment(variables=WORKER, is_missing=True), now=NOW)
    assert found == SettingNotes(misses_env_file=True)


@pytest.mark.parametrize(
    ("until", "warning"),
    [
        ("", "not set, so earlier keys verify messages and results without end"),
        ("2026-03-13", "is over: earlier keys only open stored credentials"),
        ("2026-03-14T00:00:00Z", "is over: earlier keys only open stored credentials"),
        ("2026-03-14T01:00:01+01:00", ""),
        ("2026-03-14", ""),
    ],
)
def test_earlier_keys_without_an_end_or_past_it_are_told(until: str, warning: str) -> None:
    found = notes(APP_ENC_KEY_PREVIOUS=f"0={KEY}", APP_ENC_KEY_PREVIOUS_UNTIL=until).warnings
    assert found == ((f"APP_ENC_KEY_PREVIOUS_UNTIL: {warning}",) if warning else ())


def test_an_end_of_no_keys_is_told() -> None:
    [warning] = notes(APP_ENC_KEY_PREVIOUS_UNTIL="2027-01-31").warnings
    assert warning == "APP_ENC_KEY_PREVIOUS_UNTIL: has no effect without APP_ENC_KEY_PREVIOUS"


def test_groups_of_internal_sources_count_for_no_tenant() -> None:
    group = {
        "DATASOURCE_A_CONFIG_NAME": "plugin_crm",
        "DATASOURCE_A_TYPE": "MONGODB",
        "DATASOURCE_A_HOST": "m.test",
    }
    found = notes(**TENANTS, **group).warnings
    assert [each for each in found if each.startswith("DATASOURCE_*_CONFIG_NAME: not read with")]
    assert notes(**TENANTS).warnings == ()
