"""Changes that meet others: names, jobs, other writers: spec rest-api 7.6, 10, 15, 17.3."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from fetcher.adapters.memory.connections import MemoryConnections
from fetcher.domain.connections import Connection, UpdateAnswer
from fetcher.domain.jobs import JobStatus
from fetcher_engine import TenantContext
from tests.unit.api.harness import (
    CONNECTIONS,
    START,
    Api,
    a_connection,
    a_job,
    an_api,
    end,
)
from tests.unit.api.patching import ID, an_api_with_one, kept, patch


async def test_used_name_is_a_conflict_and_a_deleted_ones_is_not() -> None:
    api = await an_api_with_one()
    other = a_connection(config_name="hr_db")
    await api.records.connections.insert(other)
    answered = await patch(api, {"configName": "hr_db"})
    assert answered.problem == (409, "FET-1002", "Conflict")
    assert (await kept(api)).config_name == "sales_db"
    await api.records.connections.delete(other.id, at=START)
    assert (await patch(api, {"configName": "hr_db"})).status == 200


@pytest.mark.parametrize("name", ["plugin_crm", "midaz_onboarding", "midaz_transaction"])
async def test_internal_names_are_taken(name: str) -> None:
    answered = await patch(await an_api_with_one(), {"configName": name})
    assert answered.problem == (409, "FET-1002", "Conflict")


async def test_record_of_an_internal_name_can_be_renamed_and_changed() -> None:
    api = await an_api_with_one(a_connection(id=ID, config_name="plugin_crm"))
    assert (await patch(api, {"port": 1})).status == 200
    assert (await patch(api, {"configName": "crm_db"})).status == 200


@pytest.mark.parametrize("method", ["PATCH", "DELETE"])
@pytest.mark.parametrize("status", list(JobStatus))
async def test_running_job_stands_in_the_way_of_change_and_deletion(
    method: str, status: JobStatus
) -> None:
    api = await an_api_with_one()
    before, job = await kept(api), a_job()
    await api.records.jobs.insert(job)
    await end(api, job, status)
    body = {"port": 1} if method == "PATCH" else None
    answered = await api.call(method, f"{CONNECTIONS}/{ID}", body)
    if status in (JobStatus.PENDING, JobStatus.PROCESSING):
        assert answered.problem == (409, "FET-1021", "Job In Progress")
        assert await kept(api) == before
    else:
        assert answered.status in (200, 204)


async def test_job_on_another_connection_and_a_parked_one_do_not() -> None:
    api = await an_api_with_one()
    await api.records.jobs.insert(a_job(mapped_fields={"hr_db": {"t": ("id",)}}))
    parked = a_job(request_hash="cd" * 32, waiting_reason="source is down")
    await api.records.jobs.insert(parked)
    assert (await patch(api, {"port": 1})).status == 200


async def test_running_job_goes_before_what_the_whole_record_shows_and_after_the_body() -> None:
    api = await an_api_with_one()
    await api.records.jobs.insert(a_job())
    assert (await patch(api, {"databaseName": ""})).json["code"] == "FET-1021"
    assert (await patch(api, {"host": ""})).json["code"] == "FET-0001"


@pytest.mark.parametrize(("method", "id_text"), [("PATCH", "unassigned"), ("DELETE", "not-a-uuid")])
async def test_text_that_is_no_uuid_is_an_invalid_path_parameter(method: str, id_text: str) -> None:
    """``unassigned`` is an operation of its own for GET alone (spec 1.1)."""
    answered = await an_api().call(method, f"{CONNECTIONS}/{id_text}", {"port": 1})
    assert answered.problem == (400, "FET-0404", "Invalid Path Parameter")


async def test_unknown_and_deleted_are_not_found() -> None:
    api = await an_api_with_one()
    await api.records.connections.delete(ID, at=START)
    for answered in (await patch(api, {"port": 1}), await patch(an_api(), {"port": 1})):
        assert answered.problem == (404, "FET-1001", "Entity Not Found")


class Contested:
    """Connections that somebody else writes to just before each of our updates."""

    def __init__(self, connections: MemoryConnections, others: list[Callable[..., Any]]) -> None:
        self._connections = connections
        self._others = others
        self.updates = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._connections, name)

    async def update(self, connection: Connection, *, before: Connection) -> UpdateAnswer:
        self.updates += 1
        if self._others:
            await self._others.pop(0)(self._connections)
        return await self._connections.update(connection, before=before)


async def a_contested_api(*others: Callable[..., Any]) -> tuple[Api, Contested]:
    api = await an_api_with_one()
    contested = Contested(api.records.connections, list(others))  # type: ignore[arg-type] # the memory store
    changed = an_api(connections=contested)
    changed.records = api.records
    return changed, contested


async def move_port(connections: MemoryConnections) -> None:
    found = await connections.get(ID)
    assert found is not None
    moved = replace(
        found, port=found.port + 1, updated_at=found.updated_at + timedelta(milliseconds=1)
    )
    assert await connections.update(moved, before=found) is UpdateAnswer.WRITTEN


async def test_change_of_somebody_else_is_not_lost() -> None:
    api, contested = await a_contested_api(move_port)
    answered = await patch(api, {"host": "pg2.acme.test"})
    assert answered.status == 200
    assert (answered.json["host"], answered.json["port"]) == ("pg2.acme.test", 5433)
    assert contested.updates == 2


async def test_second_change_of_somebody_else_is_a_conflict() -> None:
    api, contested = await a_contested_api(move_port, move_port)
    answered = await patch(api, {"host": "pg2.acme.test"})
    assert answered.problem == (409, "FET-0004", "Conflict")
    stored = await kept(api)
    assert (stored.host, stored.port, contested.updates) == ("pg1.acme.test", 5434, 2)


async def test_deleted_between_read_and_write_is_not_found() -> None:
    async def delete(connections: MemoryConnections) -> None:
        await connections.delete(ID, at=START)

    api, _ = await a_contested_api(delete)
    answered = await patch(api, {"host": "pg2.acme.test"})
    assert answered.problem == (404, "FET-1001", "Entity Not Found")


async def test_schemas_of_the_old_and_the_new_name_are_forgotten() -> None:
    forgotten: list[tuple[str, str]] = []

    async def forget(tenant: TenantContext, config_name: str) -> None:
        forgotten.append((tenant.tenant_id, config_name))

    api = await an_api_with_one(forget_schemas=forget)
    await patch(api, {"port": 0})
    assert forgotten == []
    await patch(api, {"port": 1})
    assert forgotten == [("default", "sales_db")]
    await patch(api, {"configName": "hr_db"})
    assert forgotten[1:] == [("default", "hr_db"), ("default", "sales_db")]
    await api.call("DELETE", f"{CONNECTIONS}/{ID}")
    assert forgotten[3:] == [("default", "hr_db")]


async def test_a_change_that_meets_a_rotation_of_keys_keeps_the_new_seal() -> None:
    """No `updated_at` has moved: the change would bring the old seal back."""

    async def reseal(connections: MemoryConnections) -> None:
        found = await connections.get(ID)
        assert found is not None
        sealed = replace(found, password_encrypted="sealed anew", encryption_key_version="2")
        answer = await api.records.credentials.reseal(sealed, before=found)
        assert answer is UpdateAnswer.WRITTEN

    api, contested = await a_contested_api(reseal)
    answered = await patch(api, {"host": "pg2.acme.test"})
    assert (answered.status, answered.json["host"]) == (200, "pg2.acme.test")
    after = await kept(api)
    assert (after.password_encrypted, after.encryption_key_version) == ("sealed anew", "2")
    assert contested.updates == 2
