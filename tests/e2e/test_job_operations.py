"""Lists, cancel, rerun and results of jobs, over the real command's own API."""

import json
import socket
import urllib.request
from pathlib import Path
from typing import Any

from fetcher.consumer import derive_keys, open_result
from fetcher.crypto.keys import KeySet
from tests.e2e.cluster import Api, Cluster, embedded, postgres_connection
from tests.e2e.test_embedded import FIELDS, make_shop, register
from tests.servers.addresses import SqlAddress
from tests.servers.waiting import eventually_sync

LARGE_ROWS = 400_000


def fetched(api: Api, job_id: str) -> tuple[bytes, dict[str, str]]:
    """Follows a redirect, as clients do."""
    address = f"http://127.0.0.1:{api.port}/v1/fetcher/{job_id}/result"
    with urllib.request.urlopen(address, timeout=30) as answer:
        return answer.read(), dict(answer.headers)


def document_of(sealed: bytes, keys: KeySet, *, hmac: str, size_bytes: int) -> Any:
    with open_result(
        sealed,
        storage_key=keys.storage,
        hmac_key=keys.external_hmac,
        expected_hmac=hmac,
        expected_size=size_bytes,
    ) as opened:
        return json.loads(opened.read())


def test_a_result_is_fetched_previewed_and_deleted(tmp_path: Path) -> None:
    with embedded(tmp_path) as (process, api):
        make_shop(tmp_path)
        register(api)
        job = api.wait_for_job(api.post_job(FIELDS).body["jobId"])
        path = f"/v1/fetcher/{job['id']}"
        assert (job["rowCount"], len(job["attempts"])) == (3, 1)
        sealed, headers = fetched(api, job["id"])
        keys = derive_keys((tmp_path / "fetcher-data" / "master.key").read_text())
        document = document_of(
            sealed,
            keys,
            hmac=headers["x-fetcher-result-hmac"],
            size_bytes=int(headers["x-fetcher-result-size"]),
        )
        assert [item["id"] for item in document["shop"]["items"]] == [
            2**63 - 3,
            2**63 - 2,
            2**63 - 1,
        ]
        preview = api.call("GET", f"{path}/result/preview?rows=1")
        assert preview.body["rows"] == {"shop": {"items": document["shop"]["items"][:1]}}
        assert preview.body["rowCounts"] == {"shop": {"items": 3}}
        process.wait_until(lambda p: "result_previewed" in p.log(), deadline_seconds=5)

        again = api.call("POST", f"{path}/rerun")
        assert again.status == 202
        rerun = api.wait_for_job(again.body["jobId"])
        assert (rerun["status"], rerun["requestHash"]) == ("completed", job["requestHash"])
        listed = api.call("GET", "/v1/fetcher?status=completed&connection=shop&limit=1")
        assert [item["id"] for item in listed.body["items"]] == [rerun["id"]]
        rest = api.call("GET", f"/v1/fetcher?cursor={listed.body['nextCursor']}&connection=shop")
        assert [item["id"] for item in rest.body["items"]] == [job["id"]]

        assert api.call("POST", f"{path}/cancel").status == 409
        assert api.call("DELETE", f"{path}/result").status == 204
        assert api.call("DELETE", f"{path}/result").status == 404
        assert not (tmp_path / "fetcher-data" / "objects" / job["resultPath"]).exists()
        assert api.call("GET", f"{path}/result").body["code"] == "FET-1024"


def test_a_client_that_does_not_read_costs_no_memory_and_leaves_others_served(
    tmp_path: Path,
) -> None:
    with embedded(tmp_path) as (process, api):
        make_shop(tmp_path, rows=LARGE_ROWS)
        register(api)
        job = api.wait_for_job(api.post_job(FIELDS).body["jobId"])
        assert job["sizeBytes"] > 20_000_000
        before = resident_bytes(process.pid)
        head = f"GET /v1/fetcher/{job['id']}/result HTTP/1.1\r\nHost: x\r\n\r\n".encode()
        stalled = [socket.create_connection(("127.0.0.1", api.port)) for _ in range(4)]
        try:
            for client in stalled:
                client.sendall(head)
                assert client.recv(15).startswith(b"HTTP/1.1 200")
            sealed, headers = fetched(api, job["id"])
            assert len(sealed) == int(headers["content-length"])
            assert resident_bytes(process.pid) - before < 32 * 1024 * 1024
        finally:
            for client in stalled:
                client.close()


def resident_bytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status").read_text()
    [line] = [line for line in status.splitlines() if line.startswith("VmRSS:")]
    return int(line.split()[1]) * 1024


def test_a_manager_with_a_store_sends_callers_to_the_bucket(
    cluster: Cluster, shop: SqlAddress
) -> None:
    cluster.changes["RESULT_REDIRECT"] = "true"
    fields = {"sales_db": {"orders": ["id", "total"]}}
    with cluster.manager() as (_, api):
        assert api.connect(postgres_connection(shop)).status == 201
        waiting = api.post_job(fields, correlationId="never").body["jobId"]
        cancelled = api.call("POST", f"/v1/fetcher/{waiting}/cancel")
        assert (cancelled.status, cancelled.body["status"]) == (200, "cancelled")
        [event] = cluster.events(1)
        assert json.loads(event.body)["metadata"]["error"]["message"] == "job cancelled"
        with cluster.worker():
            job = api.wait_for_job(api.post_job(fields).body["jobId"])
        assert job["status"] == "completed"
        sealed, headers = fetched(api, job["id"])
        assert "x-fetcher-result-hmac" not in {name.lower() for name in headers}
        document = document_of(
            sealed, cluster.keys, hmac=job["resultHmac"], size_bytes=job["sizeBytes"]
        )
        assert len(document["sales_db"]["orders"]) == 1000
        preview = api.call("GET", f"/v1/fetcher/{job['id']}/result/preview?rows=2")
        assert preview.body["rows"]["sales_db"]["orders"] == document["sales_db"]["orders"][:2]
        assert api.call("DELETE", f"/v1/fetcher/{job['id']}/result").status == 204
        eventually_sync(
            lambda: api.job(job["id"]).get("resultDeletedAt"), deadline_seconds=5, what="the note"
        )
