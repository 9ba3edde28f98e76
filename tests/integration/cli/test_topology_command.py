"""`fetcher topology declare|verify` on a real broker."""

import json
import sys
from collections.abc import Callable

import pytest

from fetcher.cli import main
from tests.servers.addresses import S3Access

pytestmark = pytest.mark.integration


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch, broker_settings: None, amqp_name: Callable[[str], str]
) -> Callable[..., int]:
    """The command, over names of this test alone."""
    monkeypatch.setenv("RABBITMQ_FETCHER_WORK_QUEUE", amqp_name("work"))
    monkeypatch.setenv("RABBITMQ_JOB_EVENTS_EXCHANGE", amqp_name("events"))
    monkeypatch.setattr("fetcher.bootstrap.adapters.TopologyNames", _own_names(amqp_name))

    def command(*arguments: str) -> int:
        monkeypatch.setattr(sys, "argv", ["fetcher", "topology", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code

    return command


def _own_names(amqp_name: Callable[[str], str]) -> Callable[..., object]:
    from fetcher.adapters.amqp.topology import TopologyNames  # noqa: PLC0415 - before it is patched

    own = {
        "work_exchange": amqp_name("jobs"),
        "event_queues": {amqp_name("done"): "job.completed"},
        "dead_letter_exchange": amqp_name("dlx"),
        "dead_letter_queue": amqp_name("dlq"),
    }

    def names(**given: str) -> TopologyNames:
        return TopologyNames(**given, **own)  # type: ignore[arg-type]  # as above

    return names


def test_what_is_missing_fails_until_it_was_declared(
    run: Callable[..., int], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run("verify", "--json") == 1
    told = json.loads(capsys.readouterr().out)
    assert {each["status"] for each in told["objects"] if each["kind"] != "binding"} == {"missing"}
    assert run("declare") == 0
    shown = capsys.readouterr().out
    assert shown.count("created") == 6
    assert run("verify", "--json") == 0
    told = json.loads(capsys.readouterr().out)
    assert [each["status"] for each in told["objects"]] == ["ok"] * 6 + ["unchecked"] * 3
    assert told["bucketLifecycle"] is None


def test_the_buckets_rule_is_shown_or_put(
    run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    s3_access: S3Access,
    s3_bucket: Callable[[], str],
) -> None:
    for name, value in {
        "OBJECT_STORAGE_BUCKET": s3_bucket(),
        "OBJECT_STORAGE_ENDPOINT": s3_access.endpoint,
        "OBJECT_STORAGE_ACCESS_KEY_ID": s3_access.access_key,
        "OBJECT_STORAGE_SECRET_KEY": s3_access.secret_key,
        "OBJECT_STORAGE_USE_PATH_STYLE": "true",
        "OBJECT_STORAGE_KEY_PREFIX": "fx/",
    }.items():
        monkeypatch.setenv(name, value)
    assert run("declare", "--json") == 0
    (rule,) = json.loads(capsys.readouterr().out)["bucketLifecycle"]["Rules"]
    assert rule["AbortIncompleteMultipartUpload"] == {"DaysAfterInitiation": 1}
    assert rule["Filter"] == {"Prefix": "fx/"}
    assert run("verify") == 1
    assert '"DaysAfterInitiation": 1' in capsys.readouterr().out
    assert run("declare", "--bucket") == 0
    assert run("verify") == 0
    monkeypatch.setenv("RESULT_RETENTION_DAYS", "30")
    capsys.readouterr()
    assert run("verify", "--json") == 1
    (rule,) = json.loads(capsys.readouterr().out)["bucketLifecycle"]["Rules"]
    assert rule["Filter"] == {"Prefix": "fx/external-data/"}
    assert rule["Expiration"] == {"Days": 30}
    assert run("declare", "--bucket") == 0
    assert run("verify") == 0


def test_a_broker_that_is_away_and_one_that_is_not_set_have_codes_of_their_own(
    run: Callable[..., int],
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("RABBITMQ_URI", "amqps")
    assert run("verify") == 1
    assert capsys.readouterr().err.endswith(": tls: TLS handshake failed (is it a plain port?)\n")
    monkeypatch.setenv("RABBITMQ_URI", "amqp")
    monkeypatch.setenv("RABBITMQ_PORT_AMQP", "1")
    assert run("verify") == 1
    assert capsys.readouterr().err.endswith(":1: tcp: refused: nothing listens there\n")
    monkeypatch.delenv("RABBITMQ_HOST")
    assert run("verify") == 2
    assert "RABBITMQ_HOST" in capsys.readouterr().err
