"""`fetcher open-result` beside a data folder, and what it says when it cannot."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pytest
import trio
from pydantic import SecretStr

from fetcher.adapters.sqlite.records import open_sqlite_records
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.results import ExpectedResult, ResultUnknown, expected_from_events
from fetcher.cli import main
from fetcher.cli.result_opening import open_stored_result, save
from fetcher.crypto.opener import OpenedResult
from fetcher.domain.ids import new_job_id
from fetcher.domain.job_store import Claimed, LeaseState
from fetcher.domain.jobs import Job, JobStatus
from fetcher.settings import Settings
from tests.unit.crypto import vectors


def event_line(key: str, size: int) -> str:
    result = {"path": key, "hmac": "ab", "sizeBytes": size, "protection": {"keyVersion": "1"}}
    body = json.dumps({"metadata": {"note": "a\u2028b\u0085c"}, "result": result})
    return json.dumps({"body": body}, ensure_ascii=False)


def test_an_unknown_key_is_one_line_and_exit_code_1(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(fetcher_data_dir=tmp_path)
    key = "external-data/none.json"
    assert (
        open_stored_result(CommandTarget(settings=settings), key, expected=None, output=None) == 1
    )
    told = capsys.readouterr().err
    assert told == (
        f"open-result: no job or event names a result under {key}: a completed job shows its key"
        " as resultPath, like external-data/<job id>.json, with tenants below its tenant's id\n"
    )


async def test_the_last_whole_event_that_names_the_key_counts(tmp_path: Path) -> None:
    """Line separators that JSON leaves unescaped end no line; a torn last line is no event."""
    log = tmp_path / "events.jsonl"
    whole = [event_line("a.json", 1), event_line("a.json", 2), event_line("b.json", 3)]
    log.write_text("\n".join([*whole, event_line("a.json", 4)[:-9]]), encoding="utf-8")
    expected = await expected_from_events(log, "a.json")
    assert (expected.size_bytes, expected.hmac, expected.key_version) == (2, "ab", "1")


async def test_events_that_were_set_aside_are_looked_through_from_the_youngest(
    tmp_path: Path,
) -> None:
    for name, lines in {
        "events-20260101T000000000Z.jsonl": [event_line("a.json", 1), event_line("b.json", 2)],
        "events-20260102T000000000Z.jsonl": [event_line("a.json", 3)],
        "events.jsonl": [event_line("c.json", 4)],
    }.items():
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    sizes = [
        (await expected_from_events(tmp_path / "events.jsonl", key)).size_bytes
        for key in ("a.json", "b.json", "c.json")
    ]
    assert sizes == [3, 2, 4]
    with pytest.raises(ResultUnknown):
        await expected_from_events(tmp_path / "events.jsonl", "d.json")
    # Between the setting aside and the next line there is no file of that name.
    (tmp_path / "events.jsonl").unlink()
    assert (await expected_from_events(tmp_path / "events.jsonl", "a.json")).size_bytes == 3


def test_a_running_service_keeps_its_leases(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """With the queue elsewhere the job's record tells what to expect: it is read, nothing more."""
    settings = Settings(fetcher_data_dir=tmp_path, rabbitmq_host="127.0.0.1")
    job = Job(
        id=new_job_id(),
        status=JobStatus.PENDING,
        created_at=datetime(2026, 3, 14, tzinfo=UTC),
        mapped_fields={"sales_db": {"orders": ("id",)}},
        request_hash="h",
        metadata={"source": "acme"},
    )

    async def claim() -> Claimed:
        async with open_sqlite_records(tmp_path / "fetcher.db") as records:
            await records.jobs.insert(job)
            claimed = await records.leases.claim(job.id, owner="w", lease_seconds=60)
            assert isinstance(claimed, Claimed)
            return claimed

    async def find_expired(claimed: Claimed) -> tuple[list[Job], LeaseState]:
        async with open_sqlite_records(tmp_path / "fetcher.db") as records:
            states = await records.leases.check([claimed.lease])
            return await records.expired.find_expired(limit=9), states[job.id]

    claimed = trio.run(claim)
    key = f"external-data/{job.id}.json"
    assert (
        open_stored_result(CommandTarget(settings=settings), key, expected=None, output=None) == 1
    )
    assert "no job or event names" in capsys.readouterr().err
    assert trio.run(find_expired, claimed) == ([], LeaseState.HELD)


@pytest.mark.parametrize("options", [["--hmac=ab"], ["--size=3"]])
def test_hmac_and_size_go_together(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], options: list[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["fetcher", "open-result", "external-data/x.json", *options])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert capsys.readouterr().err == "open-result: --hmac and --size go together\n"


def test_an_object_that_is_not_the_result_is_exit_code_3_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = Settings(fetcher_data_dir=tmp_path, app_enc_key=SecretStr(vectors.APP_ENC_KEY))
    (tmp_path / "objects" / "external-data").mkdir(parents=True)
    key = "external-data/x.json"
    (tmp_path / "objects" / key).write_bytes(vectors.RESULT_OBJECT)
    output = tmp_path / "result.json"

    def opened(hmac: str, size: int = 103) -> int:
        expected = ExpectedResult(hmac, size)
        return open_stored_result(
            CommandTarget(settings=settings), key, expected=expected, output=output
        )

    assert opened("0" * 64) == 3
    assert opened(vectors.RESULT_HMAC, size=104) == 3
    told = capsys.readouterr()
    assert told.err == (
        "open-result: result rejected: wrong hmac\nopen-result: result rejected: wrong size\n"
    )
    assert not output.exists()
    assert opened(vectors.RESULT_HMAC) == 0
    assert output.read_bytes() == vectors.RESULT_PLAINTEXT


class Opened(OpenedResult):
    def __init__(self) -> None:
        """A result whose text is at hand."""

    def chunks(self):  # type: ignore[no-untyped-def] # a fake
        yield b"secret"


def test_a_file_that_others_could_read_is_closed_to_them(tmp_path: Path) -> None:
    output = tmp_path / "result.json"
    output.write_text("older and longer")
    output.chmod(0o644)
    save(Opened(), output)
    assert output.read_bytes() == b"secret"
    assert output.stat().st_mode & 0o777 == 0o600
