"""`fetcher verify-event`: what is read, what is said, and how it ends."""

import base64
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from fetcher.cli import main
from tests.unit.crypto import vectors

EXTERNAL = "ec9eedfd0b245950528714e5328ff2c2639ab32540a309f1cd68685ceaff9dfe"
HEADERS: dict[str, Any] = {
    "x-message-signature": vectors.COMPLETED_SIGNATURE,
    "t": str(vectors.EVENT_TIME),
    "signature-version": "v1",
    "X-Tenant-ID": "single-tenant",
    "ce-source": "//acme.fetcher/worker-1",
}
BODY = vectors.COMPLETED_BODY.decode()
EVENT: dict[str, Any] = {"headers": HEADERS, "body": BODY}
FAILED: dict[str, Any] = {
    "headers": HEADERS
    | {
        "x-message-signature": vectors.FAILED_SIGNATURE,
        "X-Tenant-ID": "tenant-a",
        "ce-eventtype": "failed",
    },
    "body": vectors.FAILED_BODY.decode(),
}
ID = f"fetcher.job.completed.{vectors.JOB_ID}"
VALID = f"valid: {ID}, result external-data/{vectors.JOB_ID}.json\n"
FORGED = "invalid: signature verification failed\n"


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    for name in (
        "APP_ENC_KEY",
        "APP_ENC_KEY_PREVIOUS",
        "APP_ENC_KEY_PREVIOUS_UNTIL",
        "FETCHER_DATA_DIR",
    ):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FETCHER_EXTERNAL_HMAC_KEY", EXTERNAL)


class Command:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, given: object, *options: str) -> tuple[int, str, str]:
        """Exit code, standard output and error, for a text or a JSON value on standard input."""
        data = given if isinstance(given, bytes) else json.dumps(given).encode()
        stdin = io.TextIOWrapper(io.BytesIO(data))
        self._monkeypatch.setattr(sys, "stdin", stdin)
        self._monkeypatch.setattr(sys, "argv", ["fetcher", "verify-event", *options])
        with pytest.raises(SystemExit) as ended:
            main()
        told = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, told.out, told.err


@pytest.fixture
def verify(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    return Command(monkeypatch, capsys)


@pytest.mark.parametrize(
    "given",
    [
        EVENT,
        EVENT | {"exchange": "fetcher.job.events", "routingKey": "job.completed"},
        {"headers": HEADERS, "bodyBase64": base64.b64encode(BODY.encode()).decode()},
        {
            "properties": {"delivery_mode": 2, "headers": HEADERS},
            "exchange": "fetcher.job.events",
            "routing_key": "job.completed",
            "payload": BODY,
            "payload_encoding": "string",
        },
        {
            "properties": {"headers": HEADERS},
            "payload": base64.b64encode(BODY.encode()).decode(),
            "payload_encoding": "base64",
        },
    ],
)
def test_each_form_of_a_message_is_read(verify: Command, given: object) -> None:
    assert verify(given) == (0, VALID, "")


def test_an_event_of_a_failed_job_is_known_by_its_headers(verify: Command) -> None:
    assert verify(FAILED) == (0, f"valid: fetcher.job.failed.{vectors.JOB_ID}\n", "")


def test_several_messages_are_judged_one_by_one(verify: Command) -> None:
    forged = EVENT | {"body": BODY.replace("103", "104")}
    assert verify([EVENT, forged]) == (3, VALID + FORGED, "")
    lines = "\n".join(map(json.dumps, (forged, EVENT))).encode() + b"\n"
    assert verify(lines) == (3, FORGED + VALID, "")


def test_a_file_is_read_like_standard_input(verify: Command, tmp_path: Path) -> None:
    (tmp_path / "event.json").write_text(json.dumps(EVENT))
    assert verify("", "event.json") == (0, VALID, "")
    assert verify("", "none.json") == (
        2,
        "",
        "verify-event: none.json: No such file or directory\n",
    )


def test_json_tells_what_the_event_says(verify: Command) -> None:
    code, out, _ = verify([EVENT, EVENT | {"headers": {}}], "--json")
    valid, invalid = map(json.loads, out.splitlines())
    assert code == 3
    assert valid == {
        "valid": True,
        "id": ID,
        "status": "completed",
        "jobId": vectors.JOB_ID,
        "tenant": "single-tenant",
        "source": "//acme.fetcher/worker-1",
        "path": f"external-data/{vectors.JOB_ID}.json",
        "sizeBytes": 103,
        "hmac": vectors.RESULT_HMAC,
    }
    assert invalid == {
        "valid": False,
        "outcome": "missing_signature_headers",
        "reason": "missing signature headers",
    }


def test_a_dead_lettered_event_is_judged_by_the_route_it_had(verify: Command) -> None:
    dead = EVENT | {"exchange": "fetcher.dlx", "routingKey": "fetcher.dlq.key"}
    assert verify(dead) == (3, FORGED, "")
    original = ("--exchange=fetcher.job.events", "--routing-key=job.completed")
    assert verify(dead, *original) == (0, VALID, "")


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (b"", "not JSON: malformed JSON at character 0"),
        (b"{", "not JSON: malformed JSON at character 1"),
        (b"[" * 9000, "not JSON: nested too deeply at character 64"),
        (b"{}\n{", "line 2: not JSON: malformed JSON at character 1"),
        ([], "no message"),
        ([EVENT, 7], "message 2: no object"),
        ({"body": BODY}, "message 1: headers: no object"),
        ({"headers": [], "body": BODY}, "message 1: headers: no object"),
        ({"headers": HEADERS}, "message 1: body: no text"),
        ({"headers": HEADERS, "body": {}}, "message 1: body: no text"),
        ({"headers": HEADERS, "bodyBase64": "%"}, "message 1: bodyBase64: not base64"),
        ({"headers": HEADERS, "bodyBase64": "é"}, "message 1: bodyBase64: not base64"),
        (EVENT | {"exchange": 7}, "message 1: exchange: no text"),
    ],
)
def test_what_is_no_message_is_told_by_its_place(
    verify: Command, given: object, problem: str
) -> None:
    assert verify(given) == (2, "", f"verify-event: {problem}\n")


def test_the_key_may_come_from_the_master_and_a_previous_one(
    verify: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("FETCHER_EXTERNAL_HMAC_KEY")
    monkeypatch.setenv("APP_ENC_KEY", vectors.APP_ENC_KEY)
    assert verify(EVENT)[0] == 0
    monkeypatch.setenv("APP_ENC_KEY", base64.b64encode(bytes(32)).decode())
    assert verify(EVENT) == (3, FORGED, "")
    monkeypatch.setenv("APP_ENC_KEY_VERSION", "2")
    monkeypatch.setenv("APP_ENC_KEY_PREVIOUS", f"1={vectors.APP_ENC_KEY}")
    assert verify(EVENT)[0] == 0
    monkeypatch.setenv("APP_ENC_KEY_PREVIOUS_UNTIL", "2999-12-31")
    assert verify(EVENT)[0] == 0
    monkeypatch.setenv("APP_ENC_KEY_PREVIOUS_UNTIL", "2020-12-31")
    code, out, _ = verify(EVENT)
    assert (code, "signed by a former key" in out) == (3, True)


def test_the_key_of_a_data_folder_verifies_and_none_is_made(
    verify: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FETCHER_EXTERNAL_HMAC_KEY")
    code, out, told = verify(EVENT)
    assert (code, out) == (2, "")
    assert told == "fetcher: APP_ENC_KEY: not set, and fetcher-data holds no key of its own\n"
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "fetcher-data").mkdir()
    (tmp_path / "fetcher-data" / "master.key").write_text(vectors.APP_ENC_KEY)
    assert verify(EVENT)[0] == 0


@pytest.mark.parametrize("key", ["zz", EXTERNAL[:62], "short"])
def test_a_key_that_is_none_is_told_without_it(
    verify: Command, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    monkeypatch.setenv("FETCHER_EXTERNAL_HMAC_KEY", key)
    assert verify(EVENT) == (
        2,
        "",
        "verify-event: FETCHER_EXTERNAL_HMAC_KEY: not 64 hexadecimal digits\n",
    )


def test_the_key_may_stand_in_file_env_or_be_the_data_folders_own(
    verify: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("FETCHER_EXTERNAL_HMAC_KEY")
    code, _, told = verify(EVENT)
    assert (code, "APP_ENC_KEY: not set" in told) == (2, True)
    (tmp_path / ".env").write_text(f"FETCHER_EXTERNAL_HMAC_KEY={EXTERNAL}\n", encoding="utf-8")
    assert verify(EVENT) == (0, VALID, "")
    (tmp_path / ".env").write_text("FETCHER_DATA_DIR=data\n", encoding="utf-8")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "master.key").write_text(f"{vectors.APP_ENC_KEY}\n", encoding="ascii")
    assert verify(EVENT) == (0, VALID, "")
    (tmp_path / ".env").write_text("no binding\n", encoding="utf-8")
    assert verify(EVENT) == (2, "", "fetcher: .env: line 1 is no NAME=value\n")
