"""A process that reads one table of MySQL and never takes the rows: tests kill it.

``python -m tests.integration.datasources.reader_process`` reads the connection and its limits as
JSON from its standard input, says ``planned``, waits for another line, and says ``reading`` when
the first rows have come.
"""

import json
import sys

import trio

from fetcher.domain.jobs import JobOptions
from fetcher_engine import ExtractionRequest
from tests.integration.datasources.harness import TENANT, engines
from tests.integration.datasources.mariadb import connection_to
from tests.servers.addresses import SqlAddress


async def read(address: SqlAddress, *, table: str, seconds: float) -> None:
    async def write(_: bytes | memoryview) -> None:
        print("reading", flush=True)
        await trio.sleep_forever()

    fields = {"src": {table: ("s",)}}
    async with engines(query_timeout_seconds=seconds, lock_timeout_seconds=seconds) as opened:
        engine = opened.engine_for([connection_to(address)], JobOptions(), fields)
        plan = await engine.plan_extraction(TENANT, ExtractionRequest(mapped_fields=fields))
        print("planned", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        await engine.stream_extraction(plan, write)


if __name__ == "__main__":
    wanted = json.loads(sys.stdin.readline())
    trio.run(
        lambda: read(
            SqlAddress(**wanted["address"]), table=wanted["table"], seconds=wanted["seconds"]
        )
    )
