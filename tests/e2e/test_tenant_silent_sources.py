"""One tenant's sources accept and say nothing; another's are tested and read meanwhile."""

import socket
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from tests.e2e.cluster import Api
from tests.e2e.tenancy import Tenancy
from tests.servers.addresses import SqlAddress

AT_SILENT_SERVERS = 80
"""More than the driver has threads."""
LOGIN_SECONDS = 5.0
"""For so long a server that says nothing holds its thread."""


@pytest.fixture
def silent_port() -> Iterator[int]:
    with socket.create_server(("127.0.0.1", 0), backlog=4 * AT_SILENT_SERVERS) as listener:
        yield int(listener.getsockname()[1])


def connection(api: Api, address: SqlAddress, name: str) -> str:
    made = api.connect(
        {
            "configName": name,
            "type": "MYSQL",
            "host": address.host,
            "port": address.port,
            "databaseName": address.database,
            "userName": address.user,
            "password": address.password,
        }
    )
    assert made.status == 201, made.body
    return str(made.body["id"])


def time_of_test(api: Api, connection_id: str) -> tuple[int, float]:
    began = time.monotonic()
    answer = api.call("POST", f"/v1/management/connections/{connection_id}/test")
    return answer.status, time.monotonic() - began


def test_another_tenants_test_and_job_do_not_wait(
    tenancy: Tenancy, stock: SqlAddress, silent_port: int
) -> None:
    many, one = tenancy.add("many"), tenancy.add("one")
    with tenancy.process("all", MULTI_TENANT_MAX_REQUESTS="100") as (_, api):
        loud, quiet = api.of(many.tenant_id), api.of(one.tenant_id)
        silent = replace(stock, host="127.0.0.1", port=silent_port)
        silent_ids = [
            connection(loud, silent, f"silent_{number}") for number in range(AT_SILENT_SERVERS)
        ]
        good = connection(quiet, stock, "stock_db")
        assert time_of_test(quiet, good)[0] == 200
        with ThreadPoolExecutor(AT_SILENT_SERVERS) as callers:
            asked = [callers.submit(time_of_test, loud, each) for each in silent_ids]
            time.sleep(1)
            status, seconds = time_of_test(quiet, good)
            posted = quiet.post_job({"stock_db": {"items": ["id"]}})
            assert posted.status == 202, posted.body
            began = time.monotonic()
            ended = quiet.wait_for_job(str(posted.body["jobId"]))
            job_seconds = time.monotonic() - began
            assert {each.result()[0] for each in asked} != {200}
        assert (status, ended["status"]) == (200, "completed")
        assert max(seconds, job_seconds) < LOGIN_SECONDS - 1
