"""`fetcher keys rotate` on a real MongoDB, beside whoever else uses it."""

import json
import sys
from collections.abc import Callable

import pytest
import trio

from fetcher.adapters.mongo import open_mongo_records
from fetcher.bridge import open_asyncio
from fetcher.cli import main
from fetcher.domain.audit import AuditAction, AuditQuery
from fetcher.domain.connections import Connection
from tests.unit.commands.test_rotate_credentials import (
    BY_LOST,
    NEW,
    OLD,
    is_opened_by_new_alone,
    sealed,
)

pytestmark = pytest.mark.integration


async def hold(uri: str, database: str, connections: list[Connection]) -> None:
    async with (
        open_asyncio(pytest.fail),
        open_mongo_records(uri, database, allow_plaintext=True) as records,
    ):
        for each in connections:
            await records.connections.insert(each)


async def found(uri: str, database: str) -> tuple[list[Connection], list[str]]:
    async with (
        open_asyncio(pytest.fail),
        open_mongo_records(uri, database, allow_plaintext=True) as records,
    ):
        held = await records.connections.find_by_config_names(["a_db", "b_db", "lost_db"])
        page = await records.audit.list_page(AuditQuery(action=AuditAction.KEYS_ROTATED))
        return held, [each.outcome for each in page.items]


def test_connections_in_mongodb_come_under_the_key_in_use(
    mongo_uri: str,
    mongo_database: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    database = mongo_database()
    for name, value in {
        "APP_ENC_KEY": NEW,
        "APP_ENC_KEY_VERSION": "2",
        "APP_ENC_KEY_PREVIOUS": f"1={OLD}",
        "MONGO_URI": mongo_uri,
        "MONGO_NAME": database,
        "ALLOW_INSECURE_TLS": "true",
    }.items():
        monkeypatch.setenv(name, value)
    before = [sealed("a_db"), sealed("b_db", tls=None), sealed("lost_db", BY_LOST)]
    trio.run(hold, mongo_uri, database, before)

    def rotate(*options: str) -> tuple[int, dict[str, object]]:
        monkeypatch.setattr(sys, "argv", ["fetcher", "keys", "rotate", "--json", *options])
        # what the test itself has logged
        capsys.readouterr()
        with pytest.raises(SystemExit) as ended:
            main()
        assert isinstance(ended.value.code, int)
        return ended.value.code, json.loads(capsys.readouterr().out)

    left = [{"configName": "lost_db", "reason": "unknown_key_version"}]
    for options, rotated, current in (
        (["--dry-run"], ["a_db", "b_db"], 0),
        ([], ["a_db", "b_db"], 0),
        ([], [], 2),
    ):
        code, report = rotate(*options)
        assert (code, report["cannotBeOpened"]) == (1, left)
        assert isinstance(report["rotated"], list)
        assert (sorted(report["rotated"]), report["alreadyCurrent"]) == (rotated, current)
    held, outcomes = trio.run(found, mongo_uri, database)
    assert is_opened_by_new_alone(held[0])
    assert (held[1].encryption_key_version, held[2]) == ("2", before[2])
    assert [each.updated_at for each in held] == [each.updated_at for each in before]
    assert outcomes == ["partial"] * 2
