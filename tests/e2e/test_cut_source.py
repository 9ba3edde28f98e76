"""A source whose connection is cut in mid read, from registration to what is left (case 14)."""

from pathlib import Path

import psycopg
import trio

from tests.e2e.cluster import embedded, postgres_connection
from tests.integration.datasources.relay import relay
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

CUT_AFTER = 3_000_000
"""Of some 5 MB."""


async def test_a_cut_after_60_percent_of_the_rows_leaves_no_object(
    tmp_path: Path, shop: SqlAddress
) -> None:
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        database.execute(
            "INSERT INTO orders SELECT n, n, repeat('x', 100) FROM generate_series(1, 30000) AS n"
        )
    async with relay(shop.host, shop.port, cut_after=CUT_AFTER) as between:
        await trio.to_thread.run_sync(ask_and_look, tmp_path, shop, between.port)
        assert between.reached.is_set()


def ask_and_look(folder: Path, shop: SqlAddress, port: int) -> None:
    with embedded(folder) as (_, api):
        assert api.connect(postgres_connection(shop, host="127.0.0.1", port=port)).status == 201
        posted = api.post_job({"sales_db": {"orders": ["id", "total", "note"]}})
        job = api.wait_for_job(posted.body["jobId"])
        assert job["status"] == "failed"
        assert job["error"]["message"] == "sales_db: rows failed: reset (orders)"
        assert "resultPath" not in job
        objects = folder / "fetcher-data" / "objects"
        eventually_sync(
            lambda: not [each for each in objects.rglob("*") if each.is_file()],
            deadline_seconds=10,
            what="nothing is left of the upload",
        )
        events = (folder / "fetcher-data" / "events.jsonl").read_text().splitlines()
        assert [line.count("job.failed") > 0 for line in events] == [True]
