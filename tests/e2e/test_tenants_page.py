"""docs/tenants.md: its commands, run on a tenant's own virtual host, database and folder."""

import json
import subprocess
import tarfile

from tests.e2e.documented import run_shell, shell_text
from tests.e2e.tenancy import Tenancy, TenantPlace
from tests.servers.waiting import eventually_sync

PAGE = "tenants.md"
EXAMPLE = "acme-7"


def new_place(tenancy: Tenancy) -> None:
    """A tenant of the Tenant Manager's whose virtual host is still empty."""
    place = TenantPlace(
        tenant_id=EXAMPLE, vhost=tenancy.new_vhost(), database=tenancy.new_database()
    )
    tenancy.tell(place)


def run(tenancy: Tenancy, script: str) -> "subprocess.CompletedProcess[str]":
    return run_shell(script, environment=tenancy.environment(), folder=tenancy.folder)


def test_a_new_tenant_is_prepared_ready_and_looked_at(tenancy: Tenancy) -> None:
    new_place(tenancy)
    new, ready, look = (shell_text(PAGE, name) for name in ("new", "ready", "look"))
    named = f"tenant={EXAMPLE}\n"
    assert named in new
    prepared = run(tenancy, new)
    assert prepared.returncode == 0, prepared.stdout + prepared.stderr
    with tenancy.process("worker") as (_, api):
        here = ready.replace("127.0.0.1:4007", f"127.0.0.1:{api.port}")
        told = eventually_sync(
            lambda: run(tenancy, named + here).stdout,
            deadline_seconds=20,
            what="the tenant is ready",
        )
        answer = json.loads(told)
        assert answer["tenant_id"] == EXAMPLE
        assert {name: each["status"] for name, each in answer["checks"].items()} == {
            "mongodb": "up",
            "rabbitmq": "up",
        }
        looked = run(tenancy, named + look)
    assert looked.returncode == 0, looked.stdout + looked.stderr
    with tarfile.open(tenancy.folder / f"{EXAMPLE}.tar.gz") as archive:
        assert any(name.endswith("/jobs.json") for name in archive.getnames())
