"""Rows of the specification about defaults and odd values (configuration 17.1)."""

import dataclasses
import json
import sys

import pytest
import structlog

from fetcher.bootstrap.adapters import engine_limits
from fetcher.logs import configure_logs
from fetcher.settings import DeploymentMode, Role
from fetcher_engine import Limits
from tests.unit.settings.test_loading import load, refusals
from tests.unit.settings.test_tls_settings import ALL_TLS


@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("", DeploymentMode.LOCAL),
        ("local", DeploymentMode.LOCAL),
        ("byoc", DeploymentMode.BYOC),
        ("saas", DeploymentMode.SAAS),
        ("SAAS", DeploymentMode.SAAS),
        ("  saas ", DeploymentMode.SAAS),
    ],
)
def test_the_mode_is_read_in_any_case(text: str, mode: DeploymentMode) -> None:
    assert load(Role.WORKER, **{**ALL_TLS, "DEPLOYMENT_MODE": text}).deployment_mode is mode


@pytest.mark.parametrize(
    ("text", "port"), [("", 4007), ("0", 4007), ("-3", 4007), ("65536", 4007), ("9090", 9090)]
)
def test_a_number_that_is_no_port_is_the_default(text: str, port: int) -> None:
    assert load(HEALTH_PORT=text).health_address_port == port


@pytest.mark.parametrize(
    ("name", "text", "rule"),
    [
        ("HEALTH_PORT", "x1", "must be a whole number"),
        ("HEALTH_PORT", "9" * 5000, "must be a whole number"),
        ("READYZ_DRAIN_DELAY_SEC", "abc", "must be a number of seconds"),
        ("MONGO_MAX_POOL_SIZE", "1.5", "must be a whole number"),
    ],
)
def test_a_text_that_is_no_number_stops_the_start(name: str, text: str, rule: str) -> None:
    assert refusals({name: text}) == [f"{name}: {rule}"]


@pytest.mark.parametrize(("text", "size"), [("", 100), ("0", 100), ("250", 250)])
def test_the_pool_of_mongodb(text: str, size: int) -> None:
    assert load(MONGO_MAX_POOL_SIZE=text).mongo_max_pool_size == size


@pytest.mark.parametrize(
    ("text", "size"),
    [("", 268_435_456), ("-5", 268_435_456), ("1048576", 1_048_576), ("536870912", 536_870_912)],
)
def test_the_ceiling_of_results_changes_no_other_limit(text: str, size: int) -> None:
    limits = engine_limits(load(ENGINE_MAX_RESULT_BYTES=text))
    assert limits.max_result_bytes == size
    assert dataclasses.replace(limits, max_result_bytes=268_435_456) == Limits.defaults()


@pytest.mark.parametrize(
    ("env_name", "is_json"),
    [
        ("prod", True),
        (" Stage ", True),
        ("uat", True),
        ("dev", False),
        ("local", False),
        ("moon", False),
        ("", False),
    ],
)
def test_the_environments_name_decides_the_form_of_the_log(
    env_name: str,
    is_json: bool,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """On a terminal: elsewhere it is JSON whatever the name."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    configure_logs(env_name=load(ENV_NAME=env_name).env_name, level="", encoding="")
    structlog.get_logger().warning("happened")
    [line] = capsys.readouterr().out.splitlines()
    assert line.startswith("{") is is_json
    assert not is_json or json.loads(line)["msg"] == "happened"


@pytest.mark.parametrize(
    ("env_name", "level", "lowest"),
    [
        ("", "", "debug"),
        ("local", "", "debug"),
        ("dev", "", "debug"),
        ("moon", "", "debug"),
        (" Production ", "", "info"),
        ("staging", "", "info"),
        ("uat", "", "info"),
        ("", "warn", "warning"),
        ("production", " DEBUG ", "debug"),
    ],
)
def test_the_environments_name_decides_what_is_logged_unless_it_is_said(
    env_name: str, level: str, lowest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    configure_logs(env_name=env_name, level=level, encoding="json")
    for name in ("debug", "info", "warning"):
        getattr(structlog.get_logger(), name)("happened")
    levels = [json.loads(line)["level"] for line in capsys.readouterr().out.splitlines()]
    assert levels[0] == lowest.upper().replace("WARNING", "WARN")


def test_a_blank_name_of_the_work_queue_is_the_default() -> None:
    for role in (Role.MANAGER, Role.WORKER):
        environment = {**ALL_TLS, "RABBITMQ_FETCHER_WORK_QUEUE": "  "}
        assert load(role, **environment).work_queue == "fetcher.extract-external-data.queue"


def test_a_bucket_and_its_user_are_needed_whole() -> None:
    assert refusals({**ALL_TLS, "OBJECT_STORAGE_BUCKET": ""}, Role.WORKER) == [
        "OBJECT_STORAGE_BUCKET: required with --role=worker: embedded parts need --role=all"
    ]
    assert refusals({**ALL_TLS, "OBJECT_STORAGE_ACCESS_KEY_ID": "AK"}, Role.WORKER) == [
        "OBJECT_STORAGE_ACCESS_KEY_ID: set it and OBJECT_STORAGE_SECRET_KEY, or neither"
    ]
