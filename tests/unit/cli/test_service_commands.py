"""`fetcher jobs` and `fetcher connections` against a service that says what a test wants."""

import json
import sys
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from fetcher.cli import main

ID = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"
NEW = "0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0c"
JOBS, CONNECTIONS = "/v1/fetcher", "/v1/management/connections"
JOB = {
    "id": ID,
    "status": "failed",
    "source": "acme",
    "connections": ["a_db", "b_db"],
    "createdAt": "2026-03-14T09:26:53Z",
    "error": {"code": "FET-1040", "message": "m", "source": "a_db", "stage": "tcp"},
}
CONNECTION = {"id": ID, "configName": "[bold]\x1b[2Jshop", "type": "ORACLE", "host": "h", "port": 1}
PROBLEM = {
    "code": "FET-1022",
    "errorCode": "FET-1022",
    "title": "Job Not Active",
    "message": "the job has ended\x1b[2J",
    "status": "completed",
    "n": 1.50,
}


@dataclass
class Service:
    """``answers``: method and path (without its query) to state and body."""

    port: int = 0
    answers: dict[str, tuple[int, object]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    sent: list[Mapping[str, str]] = field(default_factory=list)


@pytest.fixture
def service() -> Iterator[Service]:
    known = Service()

    class Handler(BaseHTTPRequestHandler):
        def answer(self) -> None:
            known.asked.append(f"{self.command} {self.path}")
            known.sent.append(dict(self.headers))
            status, body = known.answers[f"{self.command} {self.path.partition('?')[0]}"]
            text = body if isinstance(body, bytes) else json.dumps(body).encode()
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", "http://127.0.0.1:1/stolen")
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_POST = do_DELETE = answer  # noqa: N815 - the library's names

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the library's
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        known.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield known
        finally:
            server.shutdown()
            thread.join()


class Command:
    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[int, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["fetcher", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        told = self._capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, told.out, told.err


@pytest.fixture
def run(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    service: Service,
) -> Command:
    monkeypatch.chdir(tmp_path)
    for name in ("FETCHER_TOKEN", "FETCHER_ACCESS_TOKEN", "FETCHER_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SERVER_ADDRESS", f"0.0.0.0:{service.port}")
    return Command(monkeypatch, capsys)


def test_jobs_are_listed_by_the_filters_that_were_given(run: Command, service: Service) -> None:
    service.answers[f"GET {JOBS}"] = (200, {"items": [JOB], "limit": 1, "nextCursor": "c-2"})
    code, out, err = run("jobs", "list")
    assert (code, err, service.asked) == (0, "more: --cursor=c-2\n", [f"GET {JOBS}"])
    for text in ("Jobs: 1", ID, "failed", "acme", "a_db, b_db", "FET-1040 a_db tcp"):
        assert text in out
    run(
        *("jobs", "list", "--status=failed", "--status=cancelled", "--source=a&b", "--limit=3"),
        *("--connection=a_db", "--start-date=2026-01-01", "--end-date=2026-02-01T00:00:00Z"),
        *("--sort-order=asc", "--cursor=c-1", "--product=acme"),
    )
    assert service.asked[1] == (
        f"GET {JOBS}?status=failed%2Ccancelled&source=a%26b&connection=a_db&startDate=2026-01-01"
        "&endDate=2026-02-01T00%3A00%3A00Z&sortOrder=asc&limit=3&cursor=c-1"
    )
    assert [sent.get("X-Product-Name") for sent in service.sent] == [None, "acme"]


def test_a_waiting_job_tells_why(run: Command, service: Service) -> None:
    waiting = {"id": ID, "status": "pending", "waitingReason": "source down"}
    service.answers[f"GET {JOBS}"] = (200, {"items": [waiting, 7], "limit": 10})
    code, out, err = run("jobs", "list")
    assert (code, "source down" in out, err) == (0, True, "")


def test_a_job_is_shown_member_by_member_and_its_numbers_are_not_read(
    run: Command, service: Service
) -> None:
    body = b'{"id": "x", "filters": {"n": [1.50, 12345678901234567890.10]}, "t": "\\u001b[2J"}'
    service.answers[f"GET {JOBS}/{ID}"] = (200, body)
    code, out, _ = run("jobs", "show", ID.upper())
    assert code == 0
    assert 'filters: {"n":[1.50,12345678901234567890.10]}' in out
    assert "\x1b" not in out
    code, out, _ = run("jobs", "show", ID, "--json")
    assert (code, out) == (0, body.decode() + "\n")


@pytest.mark.parametrize(
    ("status", "told"), [(200, "cancelled"), (202, "its worker was asked to stop")]
)
def test_a_job_is_cancelled(run: Command, service: Service, status: int, told: str) -> None:
    service.answers[f"POST {JOBS}/{ID}/cancel"] = (status, {"jobId": ID, "status": "x"})
    assert run("jobs", "cancel", ID) == (0, f"{ID}: {told}\n", "")


def test_a_job_is_run_again(run: Command, service: Service) -> None:
    answer = {"jobId": NEW, "message": "Job created and queued for processing"}
    service.answers[f"POST {JOBS}/{ID}/rerun"] = (202, answer)
    assert run("jobs", "rerun", ID) == (0, f"{NEW}: {answer['message']}\n", "")


def test_a_refusal_is_told_in_the_service_s_words(run: Command, service: Service) -> None:
    service.answers[f"POST {JOBS}/{ID}/cancel"] = (409, PROBLEM)
    code, out, err = run("jobs", "cancel", ID)
    assert (code, out) == (1, "")
    assert err.splitlines() == [
        "jobs: the job has ended\\x1b[2J (FET-1022)",
        "  status: completed",
        "  n: 1.5",
    ]
    code, out, err = run("jobs", "cancel", ID, "--json")
    assert (code, json.loads(out), len(err.splitlines())) == (1, PROBLEM, 1)


def test_connections_are_listed_shown_and_tested(run: Command, service: Service) -> None:
    service.answers |= {
        f"GET {CONNECTIONS}": (200, {"items": [CONNECTION], "total": 12, "page": 2, "limit": 1}),
        f"GET {CONNECTIONS}/{ID}": (200, CONNECTION),
        f"POST {CONNECTIONS}/{ID}/test": (
            200,
            {"message": "Connection successful", "latencyMs": 7},
        ),
    }
    code, out, _ = run(
        *("connections", "list", "--type=oracle", "--host=h", "--database-name=d", "--page=2"),
        *("--limit=1", "--product=acme", "--sort-order=asc"),
    )
    assert service.asked == [
        f"GET {CONNECTIONS}?type=oracle&host=h&databaseName=d&sortOrder=asc&limit=1&page=2"
    ]
    assert (code, "Connections: 1 of 12" in out, "[bold]" in out) == (0, True, True)
    assert "\x1b" not in out
    code, out, _ = run("connections", "show", ID)
    assert (code, "configName: [bold]" in out, "\x1b" in out) == (0, True, False)
    assert run("connections", "test", ID) == (0, f"{ID}: Connection successful (7 ms)\n", "")


def test_a_connection_is_deleted_only_by_who_is_sure(run: Command, service: Service) -> None:
    service.answers[f"DELETE {CONNECTIONS}/{ID}"] = (204, b"")
    assert run("connections", "delete", ID)[0] == 2
    assert service.asked == []
    assert run("connections", "delete", ID, "--yes") == (0, f"{ID}: deleted\n", "")
    assert run("connections", "delete", ID, "--yes", "--json") == (0, "", "")


@pytest.mark.parametrize("operation", ["show", "cancel", "rerun"])
@pytest.mark.parametrize("text", ["events", "../management/connections", "", "7"])
def test_what_is_no_id_is_asked_of_nobody(
    run: Command, service: Service, operation: str, text: str
) -> None:
    """`/v1/fetcher/events` would be a stream without an end."""
    assert run("jobs", operation, text) == (2, "", f"fetcher: {text}: not an id\n")
    assert service.asked == []


def test_the_token_is_one_s_own_or_that_of_the_settings(
    run: Command, service: Service, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    service.answers[f"GET {JOBS}"] = (200, {"items": [], "limit": 20})
    own, local = "own-token-1234567", "local-token-1234567"
    run("jobs", "list")
    monkeypatch.setenv("FETCHER_ACCESS_TOKEN", local)
    run("jobs", "list")
    monkeypatch.setenv("FETCHER_TOKEN", own)
    run("jobs", "list")
    # whoever asks from elsewhere needs no settings
    monkeypatch.setenv("LOG_LEVEL", "loud")
    assert run("jobs", "list")[0] == 2
    assert run("jobs", "list", f"--url=http://127.0.0.1:{service.port}")[0] == 0
    monkeypatch.delenv("FETCHER_TOKEN")
    (tmp_path / "token").write_text(f"{own}\n")
    monkeypatch.setenv("FETCHER_TOKEN_FILE", str(tmp_path / "token"))
    assert run("jobs", "list", f"--url=http://127.0.0.1:{service.port}")[0] == 0
    assert [sent.get("Authorization") for sent in service.sent] == [
        None,
        f"Bearer {local}",
        *[f"Bearer {own}"] * 3,
    ]


@pytest.mark.parametrize(
    ("status", "body", "told"),
    [
        (200, b"<html>", "what answers is no Fetcher, or of another version"),
        (200, b"[]", "what answers is no Fetcher, or of another version"),
        (200, b"", "what answers is no Fetcher, or of another version"),
        (302, b"moved", "what answers is no Fetcher, or of another version"),
        (502, b"<html>", "the service answered 502"),
        (502, b"x" * 201, "the service answered 502"),
        (401, b"Unauthorized\n", "the service answered 401: Unauthorized"),
    ],
)
def test_what_is_no_answer_of_ours_is_not_shown(
    run: Command, service: Service, status: int, body: bytes, told: str
) -> None:
    service.answers[f"GET {JOBS}"] = (status, body)
    for as_json in ((), ("--json",)):
        assert run("jobs", "list", *as_json) == (
            1,
            "",
            f"jobs: http://127.0.0.1:{service.port}: {told}\n",
        )


@pytest.mark.parametrize(
    "arguments",
    [
        ("jobs", "list"),
        ("jobs", "show", ID),
        ("jobs", "cancel", ID),
        ("jobs", "rerun", ID),
        ("connections", "list"),
        ("connections", "show", ID),
        ("connections", "test", ID),
    ],
    ids=lambda each: "-".join(each[:2]),
)
@pytest.mark.parametrize(("status", "body"), [(200, b"{}"), (200, b'{"ok":1}'), (204, b"")])
def test_an_answer_without_its_members_is_somebody_else_s(
    run: Command, service: Service, arguments: tuple[str, ...], status: int, body: bytes
) -> None:
    paths = (JOBS, CONNECTIONS, f"{JOBS}/{ID}", f"{CONNECTIONS}/{ID}")
    service.answers |= {f"GET {path}": (status, body) for path in paths}
    changes = (f"{JOBS}/{ID}/cancel", f"{JOBS}/{ID}/rerun", f"{CONNECTIONS}/{ID}/test")
    service.answers |= {f"POST {path}": (status, body) for path in changes}
    told = f"http://127.0.0.1:{service.port}: what answers is no Fetcher, or of another version"
    assert run(*arguments) == (1, "", f"{arguments[0]}: {told}\n")


def test_a_refusal_without_words_has_its_state(run: Command, service: Service) -> None:
    service.answers[f"GET {JOBS}"] = (401, {})
    assert run("jobs", "list") == (1, "", "jobs: the service answered 401\n")


def test_a_service_that_is_not_there_is_told(run: Command) -> None:
    code, out, err = run("connections", "list", "--url=http://127.0.0.1:1")
    assert (code, out) == (1, "")
    assert err == "connections: http://127.0.0.1:1: nobody listens there\n"


@pytest.mark.parametrize(
    ("arguments", "environment", "problem"),
    [
        (["--url=ftp://x"], {}, "--url: must be http://host:port or https://host:port"),
        (
            ["--url=http://u:hunter2@x"],
            {"FETCHER_TOKEN": "t" * 20},
            "--url: must be http://host:port or https://host:port",
        ),
        (["--product=a\nb"], {}, "--product: must be printable ASCII"),
        ([], {"FETCHER_TOKEN": "a b"}, "FETCHER_TOKEN: must be printable ASCII without spaces"),
    ],
)
def test_usage_is_told_without_asking(
    run: Command,
    service: Service,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    environment: dict[str, Any],
    problem: str,
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert run("jobs", "list", *arguments) == (2, "", f"fetcher: {problem}\n")
    assert service.asked == []
