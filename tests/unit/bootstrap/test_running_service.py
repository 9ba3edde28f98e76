"""A service is asked for what it tells operators; whatever else answers is told as no Fetcher."""

import json
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from pydantic import SecretStr

from fetcher.bootstrap.running_service import MAX_ANSWER_BYTES, ask_service
from fetcher.bootstrap.service_calls import place_of
from fetcher.domain.errors import PortUnavailable
from fetcher.settings import Settings

TIME = "2026-03-14T09:26:53Z"
PROCESS = {"host": "h", "pid": 1, "role": "all", "version": "1", "startedAt": TIME}
ANSWERS: Mapping[str, object] = {
    "/v1/operations/actors": {
        "process": PROCESS,
        "actors": [{"name": "reaper", "state": "running", "restarts": 2, "canary": "canary-1"}],
    },
    "/v1/operations/dependencies": {"process": PROCESS, "draining": False, "dependencies": []},
    "/v1/operations/breakers": {
        "process": PROCESS,
        "adapters": [],
        "connections": [],
        "openConnections": 0,
    },
}


@contextmanager
def answering(
    answers: Mapping[str, object], *, status: int = 200, missing_bytes: int = 0
) -> Iterator[tuple[str, list[str | None]]]:
    tokens: list[str | None] = []

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the library's name
            tokens.append(self.headers["Authorization"])
            found = answers.get(self.path)
            body = found if isinstance(found, bytes) else json.dumps(found).encode()
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + missing_bytes))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 # the library's
            pass

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}", tokens
        finally:
            server.shutdown()
            thread.join()


async def asked(url: str, **settings: object) -> Mapping[str, object]:
    place = place_of(Settings(**settings), url)  # type: ignore[arg-type] # as the test needs them
    return await ask_service(place, must_answer=True)


async def test_it_tells_actors_dependencies_and_breakers_and_nothing_else() -> None:
    with answering(ANSWERS) as (url, tokens):
        told = await asked(url, fetcher_access_token=SecretStr("canary-token"))
    assert told["actors"] == {
        "process": PROCESS,
        "actors": [{"name": "reaper", "state": "running", "restarts": 2}],
    }
    assert (told["url"], told["answers"]) == (url, True)
    assert "canary" not in json.dumps(told)
    assert tokens == ["Bearer canary-token"] * 3
    with answering(ANSWERS) as (url, tokens):
        await asked(url)
    assert tokens == [None] * 3


@pytest.mark.parametrize(
    "answer",
    [b"<html>canary</html>", b"[]", b"\xff", b"[" * 5_000, b" " * (MAX_ANSWER_BYTES + 1) + b"{}"],
)
async def test_what_is_no_answer_of_ours_is_not_told(answer: bytes) -> None:
    with (
        answering(dict.fromkeys(ANSWERS, answer)) as (url, _),
        pytest.raises(PortUnavailable) as failed,
    ):
        await asked(url)
    assert str(failed.value) == "what answers is no Fetcher, or of another version"


@pytest.mark.parametrize("status", [401, 404, 302, 503])
async def test_another_status_is_told(status: int) -> None:
    with answering(ANSWERS, status=status) as (url, _), pytest.raises(PortUnavailable) as failed:
        await asked(url)
    assert str(failed.value) == f"the service answered {status}"


async def test_an_answer_that_is_torn_is_none() -> None:
    """What came of it is a document all the same: only its length tells."""
    with (
        answering(ANSWERS, missing_bytes=7) as (url, _),
        pytest.raises(PortUnavailable) as failed,
    ):
        await asked(url)
    assert str(failed.value) == "the service did not answer: IncompleteRead"


@pytest.mark.parametrize("host", ["a..b", "a" * 64 + ".example"])
async def test_a_name_that_is_no_hosts_is_a_service_that_does_not_answer(host: str) -> None:
    with pytest.raises(PortUnavailable, match="did not answer: no host can have that name"):
        await asked(f"http://{host}:80")


async def test_nobody_is_there_and_nobody_said_that_somebody_is(unused_address: str) -> None:
    host, _, port = unused_address.rpartition(":")
    settings = Settings(server_address=f"{host}:{port}")
    told = await ask_service(place_of(settings, None), must_answer=False)
    assert told == {"url": f"http://{unused_address}", "answers": False}
    with pytest.raises(PortUnavailable, match="nobody listens there"):
        await asked(f"http://{unused_address}")


@pytest.fixture
def unused_address() -> str:
    with HTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        return f"127.0.0.1:{server.server_address[1]}"


@pytest.mark.parametrize(
    ("url", "place"),
    [
        (None, "http://127.0.0.1:4006"),
        ("http://[::1]:5000/", "http://[::1]:5000"),
        ("https://fetcher.test", "https://fetcher.test:443"),
    ],
)
def test_where_it_is_asked(url: str | None, place: str) -> None:
    assert place_of(Settings(), url).url == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "fetcher.test:4006",
        "ftp://x",
        "http://u:p@x",
        "http://x/v1",
        "http://x?a=b",
        "http://x:99999",
    ],
)
def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(ValueError):
        place_of(Settings(), url)
