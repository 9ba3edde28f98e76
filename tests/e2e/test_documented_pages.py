"""The commands of README and of the pages that need no service, run as they stand there."""

import json
import os
import re
import socket
import sys
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.e2e.cluster import KEY, Api, Cluster, embedded
from tests.e2e.documented import ROOT, run_shell, shell_text
from tests.servers import amqp_cleaning
from tests.servers.processes import free_port

ADDRESS = "127.0.0.1:4006"
FILES = ("both", "manager", "worker")
RESULT = {"sales_db": {"orders": [{"id": 2, "total": 250}]}}


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Api]:
    with embedded(tmp_path) as (_, api):
        yield api


def run(api: Api, folder: Path, script: str) -> str:
    ended = run_shell(
        script.replace(ADDRESS, f"127.0.0.1:{api.port}"), environment={}, folder=folder
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout


def test_quick_start_then_who_did_it_then_a_backup(service: Api, tmp_path: Path) -> None:
    page = "quick-start.md"
    steps = [shell_text(page, name) for name in ("source", "connection", "job", "open")]
    told = run(service, tmp_path, "\n".join([*steps, 'echo; echo "job=$job"']))
    assert json.loads((tmp_path / "result.json").read_text()) == RESULT
    assert (tmp_path / "result.json").read_text().strip() in (ROOT / "docs" / page).read_text()
    job_id = told.rpartition("job=")[2].strip()
    assert service.job(job_id)["status"] == "completed"

    terminal = shell_text("operations.md", "terminal")
    at_terminal = run(service, tmp_path, f"export SERVER_ADDRESS={ADDRESS}\n{terminal}")
    for expected in ("Connections: 1 of 1", "Connection successful", "Jobs: 1", f"id: {job_id}"):
        assert expected in at_terminal
    assert ": Job created and queued for processing" in at_terminal

    audit = re.sub(r"[0-9a-f]{8}(-[0-9a-f]+){4}", job_id, shell_text("security.md", "audit"))
    assert audit.count(job_id) == 1
    assert "anonymous" in run(service, tmp_path, f"{audit.rstrip()} --json\n")

    run(service, tmp_path, shell_text("upgrade.md", "backup"))
    restored = tmp_path / "restored"
    assert (restored / "fetcher.db").is_file()
    assert (restored / "objects" / "external-data" / f"{job_id}.json").is_file()

    script = shell_text("operations.md", "backup")
    for place in ("/backups", "/srv"):
        (tmp_path / place[1:] / "x").parent.mkdir(exist_ok=True)
        script = script.replace(place, str(tmp_path / place[1:]))
    data = tmp_path / "srv" / "fetcher-data"
    data.mkdir()
    (data / "master.key").write_text((tmp_path / "fetcher-data" / "master.key").read_text())
    run(service, tmp_path, script)
    assert (data / "fetcher.db").is_file()


def test_the_example_of_the_readme_then_the_quick_start(service: Api, tmp_path: Path) -> None:
    example = shell_text("../README.md", "example").replace(".venv/bin/fetcher", "fetcher")
    # the stream's own end by its time is no failure
    told = run(service, tmp_path, f"set +e\n{example}")
    assert json.loads(told.strip().splitlines()[-1]) == {"shop_db": RESULT["sales_db"]}
    steps = ("source", "connection", "job", "open")
    run(service, tmp_path, "\n".join(shell_text("quick-start.md", step) for step in steps))
    assert json.loads((tmp_path / "result.json").read_text()) == RESULT


@pytest.fixture
def declared(amqp_url: str) -> Iterator[None]:
    """What `topology declare` makes under names that are fixed goes with the test."""
    with amqp_cleaning.fixed_names(amqp_url):
        yield


@pytest.mark.usefixtures("declared")
def test_the_quick_start_in_two_roles(
    cluster: Cluster, amqp_name: Callable[[str], str], tmp_path: Path
) -> None:
    """On the test servers: their addresses stand where the page has a reader's own."""
    page = "quick-start.md"
    servers = cluster.environment() | address_of_mongo(cluster.mongo_uri)
    ports = {"4006": str(free_port()), "4007": str(free_port())}
    steps = ("source", "files", "declare", "start", "connection", "job", "result", "stop")
    text = "\n".join(shell_text(page, step) for step in steps)
    for name, value in servers.items():
        if name != "APP_ENC_KEY":
            text = re.sub(rf"^{name}=.*$", f"{name}='{value}'", text, flags=re.MULTILINE)
    text = re.sub(r"\b400[67]\b", lambda port: ports[port[0]], text)
    # a step that fails leaves no process behind
    guards = "\n".join(
        (
            "unset -f fetcher",
            "manager= worker=",
            """trap 'kill $manager $worker 2>/dev/null || true; cat ./*.log >&2' EXIT""",
        )
    )
    (tmp_path / "fetcher-data" / "sources").mkdir(parents=True)
    ended = run_shell(
        f"{guards}\n{text}",
        environment={
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "RABBITMQ_FETCHER_WORK_QUEUE": amqp_name("quorum"),
            "READYZ_DRAIN_DELAY_SEC": "1",
        },
        folder=tmp_path,
    )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert [port for port in ports.values() if is_served(int(port))] == []
    assert json.loads((tmp_path / "services.json").read_text()) == RESULT
    assert {(tmp_path / f"{name}.env").stat().st_mode & 0o777 for name in FILES} == {0o600}


def is_served(port: int) -> bool:
    with closing(socket.socket()) as caller:
        return caller.connect_ex(("127.0.0.1", port)) == 0


def address_of_mongo(uri: str) -> dict[str, str]:
    at = urlsplit(uri)
    return {
        "MONGO_HOST": at.hostname or "",
        "MONGO_PORT": str(at.port or 27017),
        "MONGO_USER": at.username or "",
        "MONGO_PASSWORD": at.password or "",
    }


def test_a_key_is_known_before_it_is_used_and_then_the_old_one_is_not_needed(
    tmp_path: Path,
) -> None:
    rotate = shell_text("upgrade.md", "rotate")
    with embedded(tmp_path, APP_ENC_KEY=KEY) as (_, api):
        body = {"configName": "shop", "type": "SQLITE", "databaseName": "shop.db"}
        assert api.connect({**body, "password": "hunter2"}).status == 201
        ended = run_shell(
            f'{rotate}\necho "new=$new"', environment={"APP_ENC_KEY": KEY}, folder=tmp_path
        )
    assert ended.returncode == 0, ended.stdout + ended.stderr
    assert "key version 2: 1 to be rotated" in ended.stdout
    assert "key version 2: 1 rotated" in ended.stdout
    assert "key version 2: 0 to be rotated, 1 already current" in ended.stdout
    assert KEY not in ended.stdout + ended.stderr
    new = ended.stdout.rpartition("new=")[2].strip()
    assert ended.stdout.count(new) == 1
