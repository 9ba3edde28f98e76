"""`fetcher --role=all` on one machine, without a service."""

import json
import signal
import socket
import sqlite3
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.cluster import PRODUCT, Api, embedded, opened
from tests.servers.addresses import SqlAddress
from tests.servers.processes import FetcherProcess, fetcher_process, http_status, running
from tests.servers.waiting import eventually_sync

FIELDS = {"shop": {"items": ["id", "name", "price", "picture"]}}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[tuple[FetcherProcess, Api]]:
    with embedded(tmp_path) as (process, api):
        make_shop(tmp_path)
        yield process, api


def make_shop(folder: Path, rows: int = 3) -> None:
    sources = folder / "fetcher-data" / "sources"
    sources.mkdir(mode=0o700, parents=True, exist_ok=True)
    with closing(sqlite3.connect(sources / "shop.db")) as shop, shop:
        shop.execute("CREATE TABLE items (id INTEGER PRIMARY KEY, name TEXT, price, picture BLOB)")
        shop.executemany(
            "INSERT INTO items VALUES (?, ?, ?, ?)",
            [(2**63 - 1 - n, f"Größe {n}", 1.5 * n, bytes([n % 256])) for n in range(rows)],
        )


def register(api: Api, **changes: object) -> Any:
    body = {"configName": "shop", "type": "SQLITE", "databaseName": "shop.db", **changes}
    return api.connect(body)


def test_a_job_from_registration_to_the_opened_result(
    service: tuple[FetcherProcess, Api], tmp_path: Path
) -> None:
    process, api = service
    made = register(api)
    assert made.status == 201
    path = f"/v1/management/connections/{made.body['id']}"
    assert api.call("POST", f"{path}/test").body["status"] == "success"
    schema = api.call("GET", f"{path}/schema").body
    assert schema["tables"] == [{"name": "items", "fields": ["id", "name", "picture", "price"]}]
    posted = api.post_job(FIELDS, {"shop": {"items": {"price": {"gt": [1]}}}})
    assert posted.status == 202
    job = api.wait_for_job(posted.body["jobId"])
    assert job["status"] == "completed"
    assert opened(tmp_path, posted.body["jobId"]) == {
        "shop": {
            "items": [
                {"id": 2**63 - 3, "name": "Größe 2", "price": 3.0, "picture": "Ag=="},
                {"id": 2**63 - 2, "name": "Größe 1", "price": 1.5, "picture": "AQ=="},
            ]
        }
    }
    process.send(signal.SIGTERM)
    assert process.wait_exit(deadline_seconds=30) == 0


def test_open_result_works_beside_the_running_service(
    service: tuple[FetcherProcess, Api], tmp_path: Path
) -> None:
    _, api = service
    register(api)
    job = api.wait_for_job(api.post_job(FIELDS).body["jobId"])
    eventually_sync(
        lambda: job["id"] in (tmp_path / "fetcher-data" / "events.jsonl").read_text(),
        deadline_seconds=10,
    )
    command = [sys.executable, "-m", "fetcher", "open-result", job["resultPath"]]
    with running(command, environment={}, folder=tmp_path, name="open") as opening:
        assert opening.wait_exit(deadline_seconds=20) == 0
        document = json.loads(opening.output_path.read_text())
    assert len(document["shop"]["items"]) == 3
    wrong = [*command[:-1], "external-data/none.json"]
    with running(wrong, environment={}, folder=tmp_path, name="wrong") as opening:
        assert opening.wait_exit(deadline_seconds=20) == 1
        assert "no job or event names a result" in opening.log()


def test_an_ended_job_is_told_on_the_event_stream(service: tuple[FetcherProcess, Api]) -> None:
    _, api = service
    register(api)
    with socket.create_connection(("127.0.0.1", api.port), timeout=15) as stream:
        head = f"Host: x\r\nX-Product-Name: {PRODUCT}\r\n\r\n"
        stream.sendall(f"GET /v1/fetcher/events HTTP/1.1\r\n{head}".encode())
        received = stream.recv(4096)
        assert b"200" in received.split(b"\r\n")[0]
        job_id = api.post_job(FIELDS).body["jobId"]
        while b"\n\n" not in received.partition(b"\r\n\r\n")[2] or b"data:" not in received:
            received += stream.recv(4096)
    text = received.partition(b"\r\n\r\n")[2].decode()
    data = next(line for line in text.splitlines() if line.startswith("data:"))
    assert json.loads(data.removeprefix("data:"))["jobId"] == job_id


def test_a_second_process_on_the_same_folder_is_told_who_holds_it(
    service: tuple[FetcherProcess, Api], tmp_path: Path
) -> None:
    process, _ = service
    with fetcher_process(
        ["--role=all"], environment={"SERVER_ADDRESS": "127.0.0.1:0"}, folder=tmp_path, name="two"
    ) as second:
        assert second.wait_exit(deadline_seconds=20) == 1
        assert f"is in use by process {process.pid}" in second.log()


def test_a_port_in_use_ends_the_process_with_one_line(tmp_path: Path) -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        address = f"127.0.0.1:{holder.getsockname()[1]}"
        with fetcher_process(
            ["--role=all"], environment={"SERVER_ADDRESS": address}, folder=tmp_path
        ) as process:
            assert process.wait_exit(deadline_seconds=20) == 1
            assert "failed to initialize all service" in process.log()
            assert address in process.log()
            assert "Traceback" not in process.log()


@pytest.mark.parametrize(
    ("environment", "code", "line"),
    [
        ({"APP_ENC_KEY": "c2hvcnQ="}, 2, "master key too short: got 5 bytes, minimum 32 required"),
        ({"APP_ENC_KEY": "???"}, 2, "invalid master key (base64)"),
        ({"RABBITMQ_NUMBERS_OF_WORKERS": "x"}, 2, "RABBITMQ_NUMBERS_OF_WORKERS"),
    ],
)
def test_bad_settings_end_the_process_before_it_listens(
    tmp_path: Path, environment: dict[str, str], code: int, line: str
) -> None:
    with fetcher_process(["--role=all"], environment=environment, folder=tmp_path) as process:
        assert process.wait_exit(deadline_seconds=20) == code
        assert line in process.log()
    assert not (tmp_path / "fetcher-data").exists()


def test_bad_requests_are_answered_with_a_named_problem(
    service: tuple[FetcherProcess, Api],
) -> None:
    _, api = service
    register(api)
    malformed = api.call("POST", "/v1/fetcher", raw=b'{"dataRequest":')
    assert (malformed.status, malformed.body["code"]) == (400, "FET-0001")
    operator = api.post_job(FIELDS, {"shop": {"items": {"price": {"equals": [1]}}}})
    assert operator.status == 400
    assert "filters.shop.items.price.equals" in operator.body["message"]
    large = api.call("POST", "/v1/fetcher", raw=b" " * (4 * 1024 * 1024 + 1))
    assert (large.status, large.body["title"]) == (413, "request_failed")
    unknown = api.post_job({"nowhere": {"t": ["x"]}})
    assert (unknown.status, unknown.body["code"]) == (400, "FET-1020")
    outside = register(api, configName="outside", databaseName="../fetcher.db")
    assert outside.status == 400


def test_a_source_that_is_down_or_refuses_us_is_named_by_stage_and_reason(
    service: tuple[FetcherProcess, Api], postgres: SqlAddress
) -> None:
    _, api = service
    down = {
        "configName": "down_db",
        "type": "POSTGRESQL",
        "host": "127.0.0.1",
        "port": 1,
        "databaseName": "sales",
        "userName": "reader",
        "password": "hunter2-canary",
    }
    made = api.connect(down)
    assert made.status == 201
    answer = api.call("POST", f"/v1/management/connections/{made.body['id']}/test")
    assert (answer.status, answer.body["title"]) == (500, "Database Connection Error")
    assert (answer.body["stage"], answer.body["reason"]) == ("tcp", "refused")
    posted = api.post_job({"down_db": {"t": ["x"]}})
    assert (posted.status, posted.body["code"]) == (400, "FET-1040")
    assert "hunter2" not in str(answer.body) + str(posted.body) + str(made.body)


def test_the_drain_answers_503_while_it_still_serves(tmp_path: Path) -> None:
    with embedded(tmp_path, READYZ_DRAIN_DELAY_SEC="2") as (process, api):
        url = f"http://127.0.0.1:{api.port}"
        assert http_status(f"{url}/readyz") == 200
        process.send(signal.SIGTERM)
        process.wait_until(lambda _: http_status(f"{url}/readyz") == 503, deadline_seconds=2)
        assert api.call("GET", "/v1/management/connections").status == 200
        draining = api.call("GET", "/readyz").body
        assert draining["checks"] == {
            "draining": {"status": "down", "reason": "graceful drain in progress"}
        }
        assert process.wait_exit(deadline_seconds=30) == 0


def test_no_secret_of_a_whole_life_stands_in_the_log(tmp_path: Path) -> None:
    """A canary password, a master key and a filter value, through success and failure."""
    with embedded(tmp_path) as (process, api):
        make_shop(tmp_path)
        register(api, password="hunter2-canary")
        api.connect(
            {
                "configName": "down_db",
                "type": "POSTGRESQL",
                "host": "127.0.0.1",
                "port": 1,
                "databaseName": "sales",
                "userName": "reader",
                "password": "hunter2-canary",
            }
        )
        api.post_job({"down_db": {"t": ["x"]}})
        filters = {"shop": {"items": {"name": {"eq": ["value-canary"]}}}}
        api.wait_for_job(api.post_job(FIELDS, filters).body["jobId"])
        process.send(signal.SIGTERM)
        process.wait_exit(deadline_seconds=30)
        log = process.log()
    key = (tmp_path / "fetcher-data" / "master.key").read_text().strip()
    assert "hunter2" not in log
    assert "value-canary" not in log
    assert key not in log
    database = (tmp_path / "fetcher-data" / "fetcher.db").read_bytes()
    assert b"hunter2" not in database
