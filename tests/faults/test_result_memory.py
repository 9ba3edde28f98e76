"""A worker's memory does not follow the size of its results."""

from pathlib import Path
from typing import Final

import psycopg
from mypy_boto3_s3 import S3Client

from tests.e2e.cluster import Api, Cluster, postgres_connection
from tests.scale import scale_factor
from tests.servers.addresses import SqlAddress

MIB: Final = 1024 * 1024
SMALL_MB: Final = 10
LARGE_MB: Final = 256 if scale_factor() > 1 else 96
"""Whole in memory the smaller one would already be more than the limit, twice over once sealed."""
MOST_GROWTH_MIB: Final = 64
ROW_BYTES: Final = 1000
FIELDS: Final = ["id", "note"]


def make_result_tables(shop: SqlAddress) -> None:
    """Rows of 1 000 bytes of JSON each, made as they are read."""
    with psycopg.connect(shop.conninfo, autocommit=True) as database:
        for name, megabytes in (("small", SMALL_MB), ("large", LARGE_MB)):
            database.execute(
                f"CREATE VIEW {name} AS SELECT 1000000000 + n AS id,"
                f" rpad(md5(n::text), {ROW_BYTES - 28}, 'x') AS note"
                f" FROM generate_series(1, {megabytes * 1_000_000 // ROW_BYTES}) AS n"
            )


def peak_mib(pid: int) -> int:
    """The most that the process ever held."""
    [line] = [
        line
        for line in Path(f"/proc/{pid}/status").read_text(encoding="ascii").splitlines()
        if line.startswith("VmHWM:")
    ]
    return int(line.split()[1]) // 1024


def test_peak_memory_of_a_worker_is_flat_from_a_small_to_a_large_result(
    cluster: Cluster, shop: SqlAddress, s3_client: S3Client
) -> None:
    make_result_tables(shop)
    cluster.changes.update(
        DATASOURCE_INCLUDE_VIEWS="true",
        ENGINE_MAX_RESULT_BYTES=str(512 * MIB),
        JOB_LEASE_SEC="60",
        JOB_LEASE_RENEW_SEC="15",
        JOB_LEASE_MARGIN_SEC="10",
    )
    with cluster.manager() as (_, api), cluster.worker() as (worker, _):
        assert api.connect(postgres_connection(shop)).status == 201
        small_bytes = stored_bytes(cluster, s3_client, api, "small")
        after_small = peak_mib(worker.pid)
        large_bytes = stored_bytes(cluster, s3_client, api, "large")
        after_large = peak_mib(worker.pid)
    print(f"peak {after_small} MiB after {small_bytes:,} B, {after_large} after {large_bytes:,} B")
    assert small_bytes >= SMALL_MB * 1_000_000
    assert large_bytes >= LARGE_MB * 1_000_000
    assert after_large - after_small < MOST_GROWTH_MIB


def stored_bytes(cluster: Cluster, s3_client: S3Client, api: Api, table: str) -> int:
    """The size of the result, whose sealed form lies in the bucket."""
    posted = api.post_job({"sales_db": {table: FIELDS}}, limits=table)
    job = api.wait_for_job(posted.body["jobId"], deadline_seconds=240)
    assert job["status"] == "completed", job
    size = int(job["sizeBytes"])
    stored = s3_client.head_object(Bucket=cluster.bucket, Key=job["resultPath"])
    assert stored["ContentLength"] == 4 * -(-(size + 28) // 3)
    return size
