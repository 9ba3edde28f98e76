"""A master key is changed under a service that works, and the old one is taken away."""

import json
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

from fetcher.crypto.keys import generate_master_key
from tests.e2e.cluster import embedded, postgres_connection
from tests.servers.addresses import SqlAddress
from tests.servers.processes import running

OLD, NEW = generate_master_key(), generate_master_key()
FIRST = {"APP_ENC_KEY": OLD, "APP_ENC_KEY_VERSION": "1"}
LAST = {"APP_ENC_KEY": NEW, "APP_ENC_KEY_VERSION": "2"}
BOTH = {**LAST, "APP_ENC_KEY_PREVIOUS": f"1={OLD}"}
FIELDS = {"sales_db": {"public.orders": ["id", "total"]}}


def told(folder: Path, environment: dict[str, str], *arguments: str) -> tuple[int, Any]:
    """The exit code, and the document on standard output."""
    asked = [sys.executable, "-m", "fetcher", *arguments]
    # of its own: a second process of one name writes after the first
    with running(asked, environment=environment, folder=folder, name=uuid4().hex) as process:
        code = process.wait_exit(deadline_seconds=60)
        text = process.output_path.read_text()
        return code, json.loads(text) if text else None


def test_a_key_is_changed_and_the_old_one_is_not_needed_any_more(
    tmp_path: Path, shop: SqlAddress
) -> None:
    with embedded(tmp_path, name="first", **FIRST) as (_, api):
        assert api.connect(postgres_connection(shop)).status == 201
        before = api.wait_for_job(api.post_job(FIELDS).body["jobId"])
        assert before["status"] == "completed"

    with embedded(tmp_path, name="both", **BOTH) as (_, api):
        [connection] = api.call("GET", "/v1/management/connections").body["items"]
        code, plan = told(tmp_path, BOTH, "keys", "rotate", "--dry-run", "--json")
        assert (code, plan["rotated"]) == (1, ["sales_db"])
        code, report = told(tmp_path, BOTH, "keys", "rotate", "--json")
        assert (code, report["rotated"], report["cannotBeOpened"]) == (0, ["sales_db"], [])
        # to callers nothing has changed
        assert api.call("GET", "/v1/management/connections").body["items"] == [connection]
        code, report = told(tmp_path, LAST, "keys", "rotate", "--json")
        assert (code, report["rotated"], report["alreadyCurrent"]) == (0, [], 1)
        code, opened = told(tmp_path, BOTH, "open-result", before["resultPath"])
        assert (code, "sales_db" in opened) == (0, True)

    with embedded(tmp_path, name="last", **LAST) as (process, api):
        job = api.wait_for_job(api.post_job(FIELDS, None, round=2).body["jobId"])
        assert job["status"] == "completed", process.log()
        assert job["id"] != before["id"]
        code, opened = told(tmp_path, LAST, "open-result", job["resultPath"])
        assert (code, "sales_db" in opened) == (0, True)
        gone = api.call("GET", f"/v1/fetcher/{before['id']}/result/preview")
        assert (gone.status, gone.body["reason"]) == (422, "unknown_key_version")


def test_after_their_end_former_keys_open_connections_alone(
    tmp_path: Path, shop: SqlAddress
) -> None:
    with embedded(tmp_path, name="first", **FIRST) as (_, api):
        assert api.connect(postgres_connection(shop)).status == 201
        before = api.wait_for_job(api.post_job(FIELDS).body["jobId"])
    ended = {**BOTH, "APP_ENC_KEY_PREVIOUS_UNTIL": "2020-12-31"}
    with embedded(tmp_path, name="ended", **ended) as (process, api):
        refused = api.call("GET", f"/v1/fetcher/{before['id']}/result/preview")
        assert (refused.status, refused.body["reason"]) == (422, "previous_key_ended")
        code, _ = told(tmp_path, ended, "open-result", before["resultPath"])
        assert code == 1
        job = api.wait_for_job(api.post_job(FIELDS, None, round=2).body["jobId"])
        assert job["status"] == "completed", process.log()
        assert "credentials_under_ended_key" in process.log()
