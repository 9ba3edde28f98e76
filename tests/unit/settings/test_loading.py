"""Rows of the spec's tables (configuration 17.1 to 17.4) as the decisions changed them."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest

from fetcher.settings import DeploymentMode, Role, Settings, SettingsRefused, load_settings

KEY = base64.b64encode(bytes(range(32))).decode()
WORKER = {
    "APP_ENC_KEY": KEY,
    "MONGO_HOST": "mongo.test",
    "MONGO_NAME": "fetcher-db",
    "RABBITMQ_HOST": "rabbit.test",
    "RABBITMQ_DEFAULT_USER": "fetcher",
    "RABBITMQ_DEFAULT_PASS": "s3cret",
    "RABBITMQ_JOB_EVENTS_EXCHANGE": "fetcher.job.events",
    "STREAMING_ENABLED": "true",
    "STREAMING_CLOUDEVENTS_SOURCE": "//acme.fetcher/worker-1",
    "OBJECT_STORAGE_BUCKET": "results",
    "ALLOW_INSECURE_TLS": "true",
}


def load(role: Role = Role.ALL, **environment: str) -> Settings:
    return load_settings(environment, role)


def refusals(environment: Mapping[str, str], role: Role = Role.ALL) -> list[str]:
    with pytest.raises(SettingsRefused) as refused:
        load_settings(environment, role)
    return refused.value.problems


def test_no_setting_at_all_is_the_embedded_default_on_loopback() -> None:
    settings = load()
    assert settings.is_embedded
    assert settings.listen_address == "127.0.0.1:4006"
    assert settings.events_source == "//fetcher/local"
    assert settings.events_exchange == "fetcher.job.events"
    assert settings.work_queue == "fetcher.extract-external-data.queue"
    assert settings.rabbitmq_numbers_of_workers == 5
    assert settings.engine_max_result_bytes == 268_435_456


@pytest.mark.parametrize("text", ["", "local", "LOCAL", "  local "])
def test_the_mode_is_trimmed_and_ignores_case(text: str) -> None:
    assert load(DEPLOYMENT_MODE=text).deployment_mode is DeploymentMode.LOCAL


def test_an_unknown_mode_is_refused_with_the_known_ones() -> None:
    assert refusals({"DEPLOYMENT_MODE": "sas"}) == [
        "DEPLOYMENT_MODE: must be one of 'local', 'byoc' or 'saas'"
    ]


@pytest.mark.parametrize(
    ("text", "seconds"), [("", 12), ("0", 12), ("7", 7), ("-2", 1), ("0.05", 0.05)]
)
def test_the_drain_delay(text: str, seconds: float) -> None:
    assert load(READYZ_DRAIN_DELAY_SEC=text).readyz_drain_delay_sec == seconds


@pytest.mark.parametrize(("text", "count"), [("", 5), ("0", 5), ("-1", 5), ("8", 8)])
def test_the_number_of_workers(text: str, count: int) -> None:
    assert load(RABBITMQ_NUMBERS_OF_WORKERS=text).rabbitmq_numbers_of_workers == count


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 268_435_456), ("0", 268_435_456), ("-5", 268_435_456), ("1048576", 1_048_576)],
)
def test_the_result_ceiling(text: str, size: int) -> None:
    assert load(ENGINE_MAX_RESULT_BYTES=text).engine_max_result_bytes == size


@pytest.mark.parametrize("text", ["true", "T", "1", "yes", " ON "])
def test_booleans_accept_both_vocabularies(text: str) -> None:
    assert load(OBJECT_STORAGE_USE_PATH_STYLE=text).object_storage_use_path_style is True


def test_a_text_that_is_no_number_or_boolean_stops_the_start_by_name() -> None:
    problems = refusals({"RABBITMQ_NUMBERS_OF_WORKERS": "many", "JOB_PREFLIGHT_TEST": "maybe"})
    assert problems == [
        "RABBITMQ_NUMBERS_OF_WORKERS: must be a whole number",
        "JOB_PREFLIGHT_TEST: must be one of true, false, 1, 0, yes, no, on, off, t, f",
    ]


def test_every_violation_is_reported_at_once() -> None:
    problems = refusals(
        {"LOG_LEVEL": "loud", "APP_ENC_KEY": "not*base64", "SERVER_ADDRESS": "nowhere"},
        Role.WORKER,
    )
    assert problems == [
        "LOG_LEVEL: must be one of debug, info, warn, error, dpanic, panic, fatal",
        "MONGO_HOST: required with --role=worker: embedded parts need --role=all",
        "RABBITMQ_HOST: required with --role=worker: embedded parts need --role=all",
        "OBJECT_STORAGE_BUCKET: required with --role=worker: embedded parts need --role=all",
        "APP_ENC_KEY: invalid master key (base64): not standard base64 with padding",
        "SERVER_ADDRESS: must be host:port or :port",
    ]


@pytest.mark.parametrize(
    "lease", [{"JOB_LEASE_SEC": "5"}, {"JOB_LEASE_SEC": "long", "JOB_LEASE_RENEW_SEC": "90"}]
)
def test_a_lease_that_fits_nothing_hides_no_other_violation(lease: dict[str, str]) -> None:
    problems = refusals({**lease, "LOG_LEVEL": "loud", "SERVER_PORT": "x", "APP_ENC_KEY": "short"})
    named = {line.partition(":")[0] for line in problems}
    assert named == {"JOB_LEASE_SEC", "LOG_LEVEL", "SERVER_PORT", "APP_ENC_KEY"}


def test_a_bad_former_key_is_told_beside_a_bad_key() -> None:
    assert refusals({"APP_ENC_KEY": "not*base64", "APP_ENC_KEY_PREVIOUS": "0"}) == [
        "APP_ENC_KEY: invalid master key (base64): not standard base64 with padding",
        "APP_ENC_KEY_PREVIOUS: previous key 1: expected <version>=<base64>",
    ]


@pytest.mark.parametrize("port", ["²", "٤٠٠٦", "65536", "-1", "4_006", "99999999999999999999"])
def test_what_only_looks_like_a_port_is_refused_by_name(port: str) -> None:
    assert refusals({"SERVER_ADDRESS": f":{port}"}) == [
        "SERVER_ADDRESS: must be host:port or :port"
    ]
    environment = {**WORKER, "MONGO_PORT": port}
    assert refusals(environment, Role.WORKER) == ["MONGO_PORT: must be a port number"]


def test_a_short_key_says_how_short_and_never_itself() -> None:
    short = base64.b64encode(b"sixteen bytes !!").decode()
    assert refusals({"APP_ENC_KEY": short}) == [
        "APP_ENC_KEY: master key too short: got 16 bytes, minimum 32 required"
    ]


def test_without_embedded_parts_a_key_is_required() -> None:
    environment = {**WORKER, "APP_ENC_KEY": ""}
    without_bucket = {**environment, "OBJECT_STORAGE_BUCKET": ""}
    for variables, role in ((environment, Role.WORKER), (without_bucket, Role.MANAGER)):
        assert refusals(variables, role) == [
            "APP_ENC_KEY: master key too short: got 0 bytes, minimum 32 required"
        ]
    assert load(Role.ALL, **without_bucket).needs_data_folder


def test_a_complete_worker_loads() -> None:
    settings = load(Role.WORKER, **WORKER)
    assert not settings.needs_data_folder
    assert settings.listen_address == ":4006"


def test_a_worker_needs_streaming_its_source_and_its_exchange() -> None:
    environment = {k: v for k, v in WORKER.items() if not k.startswith("STREAMING")}
    environment["RABBITMQ_JOB_EVENTS_EXCHANGE"] = "   "
    names = [line.partition(":")[0] for line in refusals(environment, Role.WORKER)]
    assert names == [
        "STREAMING_ENABLED",
        "RABBITMQ_JOB_EVENTS_EXCHANGE",
        "STREAMING_CLOUDEVENTS_SOURCE",
    ]
    assert load(Role.MANAGER, **environment).rabbitmq_host == "rabbit.test"


def test_the_broker_needs_a_user_and_a_password() -> None:
    environment = {**WORKER, "RABBITMQ_DEFAULT_USER": "", "RABBITMQ_DEFAULT_PASS": ""}
    assert refusals(environment, Role.MANAGER) == [
        "RABBITMQ_DEFAULT_USER: required with RabbitMQ",
        "RABBITMQ_DEFAULT_PASS: required with RabbitMQ",
    ]


def test_explicitly_switched_off_streaming_stops_the_embedded_start_too() -> None:
    assert refusals({"STREAMING_ENABLED": "false"})[0].startswith("STREAMING_ENABLED")
    assert refusals({"RABBITMQ_JOB_EVENTS_EXCHANGE": "  "})[0].startswith(
        "RABBITMQ_JOB_EVENTS_EXCHANGE"
    )


def test_one_credential_without_the_other_is_refused() -> None:
    [problem] = refusals({"OBJECT_STORAGE_ACCESS_KEY_ID": "AK"})
    assert "OBJECT_STORAGE_SECRET_KEY" in problem
    assert "AK," not in problem


def test_the_embedded_default_is_refused_in_saas_mode() -> None:
    names = [line.partition(":")[0] for line in refusals({"DEPLOYMENT_MODE": "saas"})]
    assert names == ["MONGO_HOST", "RABBITMQ_HOST", "OBJECT_STORAGE_BUCKET"]


def test_the_broker_must_wait_longer_for_an_ack_than_a_job_can_take() -> None:
    [problem] = refusals({**WORKER, "RABBITMQ_CONSUMER_TIMEOUT_SEC": "300"}, Role.WORKER)
    assert problem.endswith("= 450")


@pytest.mark.parametrize("text", ["nan", "inf", "-inf", "Infinity"])
@pytest.mark.parametrize("name", ["READYZ_DRAIN_DELAY_SEC", "SHUTDOWN_JOB_WAIT_SEC"])
def test_a_wait_without_end_is_refused(name: str, text: str) -> None:
    """A drain that never ends, or a crash at its begin, would lose what is in hand."""
    if (name, text) == ("READYZ_DRAIN_DELAY_SEC", "-inf"):
        assert load(READYZ_DRAIN_DELAY_SEC=text).readyz_drain_delay_sec == 1
        return
    [problem] = refusals({name: text})
    assert problem.startswith(f"{name}: input should be")


def test_more_workers_than_a_process_can_have_are_refused() -> None:
    assert load(RABBITMQ_NUMBERS_OF_WORKERS="1000").rabbitmq_numbers_of_workers == 1000
    assert refusals({"RABBITMQ_NUMBERS_OF_WORKERS": "1001"}) == [
        "RABBITMQ_NUMBERS_OF_WORKERS: must be at most 1000"
    ]


@pytest.mark.parametrize(
    "prefix", ["/results/", "a//b/", "../", "./", "a/../b/", ".uploads/", "\\"]
)
def test_a_key_prefix_that_leaves_the_object_folder_is_refused(prefix: str) -> None:
    [problem] = refusals({"OBJECT_STORAGE_KEY_PREFIX": prefix})
    assert problem.startswith("OBJECT_STORAGE_KEY_PREFIX: must name folders inside")
    environment = {**WORKER, "OBJECT_STORAGE_KEY_PREFIX": prefix}
    assert load(Role.WORKER, **environment).object_storage_key_prefix == prefix


@pytest.mark.parametrize("prefix", ["", "acme/", "acme/results/", "acme-"])
def test_a_key_prefix_may_name_folders(prefix: str) -> None:
    assert load(OBJECT_STORAGE_KEY_PREFIX=prefix).object_storage_key_prefix == prefix


@pytest.mark.parametrize(
    ("text", "spools"),
    [("", True), ("off", False), (" OFF ", False), ("./off", True), ("/srv/spool", True)],
)
def test_the_spool_is_off_by_that_word_alone(text: str, spools: bool) -> None:
    assert load(SPOOL_DIR=text).spools is spools


def test_previous_keys_are_read_before_the_start() -> None:
    assert load(APP_ENC_KEY_PREVIOUS=f"0={KEY}").app_enc_key_previous.get_secret_value()
    for text, problem in {
        "no-label": "previous key 1: expected <version>=<base64>",
        "0=c2hvcnQ=": "previous key 1: master key too short: got 5 bytes, minimum 32 required",
        f"1={KEY}": "previous key 1: its version is taken by another key",
    }.items():
        assert refusals({"APP_ENC_KEY_PREVIOUS": text}) == [f"APP_ENC_KEY_PREVIOUS: {problem}"]


@pytest.mark.parametrize(
    ("text", "until"),
    [
        ("", None),
        ("2026-12-31", datetime(2027, 1, 1, tzinfo=UTC)),
        ("2026-12-31T12:00:00Z", datetime(2026, 12, 31, 12, tzinfo=UTC)),
        (" 2026-12-31t12:00:00.5+02:00 ", datetime(2026, 12, 31, 10, 0, 0, 500_000, tzinfo=UTC)),
    ],
)
def test_the_end_of_previous_keys_is_a_time_or_a_whole_day(
    text: str, until: datetime | None
) -> None:
    assert load(APP_ENC_KEY_PREVIOUS_UNTIL=text).app_enc_key_previous_until == until


@pytest.mark.parametrize(
    "text",
    [
        *("tomorrow", "1767225600", "2026-02-30", "2026-12-31T12:00:00", "2026-12-31 12:00:00Z"),
        *("9999-12-31", "0001-01-01T00:00:00+14:00", "20261231", "2026-12-31T25:00:00Z"),
    ],
)
def test_an_end_of_previous_keys_that_is_none_is_told_with_the_rest(text: str) -> None:
    assert refusals({"APP_ENC_KEY_PREVIOUS_UNTIL": text, "LOG_LEVEL": "loud"}) == [
        "APP_ENC_KEY_PREVIOUS_UNTIL: must be a time of RFC 3339 with a zone, or a date like"
        " 2027-01-31",
        "LOG_LEVEL: must be one of debug, info, warn, error, dpanic, panic, fatal",
    ]


def test_no_secret_stands_in_the_repr_or_in_a_refusal() -> None:
    secrets = {
        "APP_ENC_KEY": "hunter2-key",
        "MONGO_PASSWORD": "hunter2-mongo",
        "RABBITMQ_DEFAULT_PASS": "hunter2-rabbit",
        "OBJECT_STORAGE_SECRET_KEY": "hunter2-s3",
        "APP_ENC_KEY_PREVIOUS": "hunter2-old",
        "MONGO_URI": "mongodb://u:hunter2-uri@h/",
    }
    usable = {
        "APP_ENC_KEY": KEY,
        "OBJECT_STORAGE_SECRET_KEY": "",
        "MONGO_URI": "",
        "APP_ENC_KEY_PREVIOUS": "",
    }
    with pytest.raises(SettingsRefused) as refused:
        load_settings(secrets, Role.WORKER)
    assert "hunter2" not in str(refused.value)
    fine = load_settings({**secrets, **usable}, Role.ALL)
    assert "hunter2" not in repr(fine)
    assert KEY not in repr(fine)


CRM_GROUP = {
    "DATASOURCE_CRM_CONFIG_NAME": "plugin_crm",
    "DATASOURCE_CRM_TYPE": "MONGODB",
    "DATASOURCE_CRM_HOST": "crm.test",
    "DATASOURCE_CRM_PASSWORD": "canary-password",
    "DATASOURCE_CRM_SSL_KEY": "canary-key",
    "CRYPTO_HASH_SECRET_KEY_PLUGIN_CRM": "canary-hash",
    "CRYPTO_ENCRYPT_SECRET_KEY_PLUGIN_CRM": "canary-encrypt",
}


def test_groups_of_internal_sources_are_read_and_no_variable_stands_for_all() -> None:
    of_that_name = {"DATASOURCE_GROUPS": "x", "DATASOURCE_GROUPS_FILE": "y"}
    settings = load_settings(CRM_GROUP | of_that_name, Role.ALL)
    (group,) = settings.datasource_groups
    assert group.name == "CRM"
    assert group.values["PASSWORD"] == "canary-password"
    assert load().datasource_groups == ()


def test_an_unusable_group_does_not_stop_the_start() -> None:
    """Spec configuration 12.1: never fatal."""
    settings = load(DATASOURCE_X_CONFIG_NAME="nothing", DATASOURCE_X_PASSWORD_FILE="/no/such/file")
    assert [group.problem for group in settings.datasource_groups] == [
        "DATASOURCE_X_PASSWORD_FILE: the file cannot be read"
    ]


def test_keys_of_sealed_fields_may_lie_in_files(tmp_path: Path) -> None:
    secret = tmp_path / "hash"
    secret.write_text("from a file\n")
    settings = load(CRYPTO_HASH_SECRET_KEY_PLUGIN_CRM_FILE=str(secret))
    assert settings.crypto_hash_secret_key_plugin_crm.get_secret_value() == "from a file"
    assert settings.crypto_encrypt_secret_key_plugin_crm.get_secret_value() == ""


def test_settings_show_no_secret_of_internal_sources() -> None:
    assert "canary" not in repr(load_settings(CRM_GROUP, Role.ALL))
