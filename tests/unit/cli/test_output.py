"""A command whose standard output takes nothing, or that is interrupted, says so in one line."""

import errno
import io
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import trio

from fetcher.cli import app as cli_app
from fetcher.cli import dead_letters, key_rotation, main
from fetcher.cli.output import OUTPUT
from fetcher.cli.printing import say
from fetcher.commands.dead_letters import Redriven
from fetcher.commands.rotate_credentials import Rotated, Rotation
from fetcher.domain.errors import OutputFailed
from fetcher.domain.jobs import Job
from tests.unit.bootstrap.backups import make_folder, tree

DEADLINE_SECONDS = 60.0
ENOSPC = "standard output: No space left on device"


def run(folder: Path, *arguments: str, output: int | Path) -> tuple[int, str]:
    """Exit code and standard error."""
    environment = {"PATH": os.environ["PATH"], "FETCHER_DATA_DIR": str(folder / "data")}
    target = os.open(output, os.O_WRONLY) if isinstance(output, Path) else output
    try:
        done = subprocess.run(
            [sys.executable, "-m", "fetcher", *arguments],
            cwd=folder,
            env=environment | {"PYTHONPATH": str(Path(__file__).parents[3])},
            stdout=target,
            stderr=subprocess.PIPE,
            timeout=DEADLINE_SECONDS,
            check=False,
        )
    finally:
        os.close(target)
    return done.returncode, done.stderr.decode()


@pytest.fixture
def closed() -> int:
    reader, writer = os.pipe()
    os.close(reader)
    return writer


@pytest.fixture
def jobs(tmp_path: Path) -> list[Job]:
    return trio.run(make_folder, tmp_path / "data")


@pytest.mark.parametrize("arguments", [["check-config", "--json"], ["check-config"], ["--help"]])
def test_a_full_disk_is_one_line_and_exit_code_1(tmp_path: Path, arguments: list[str]) -> None:
    code, told = run(tmp_path, *arguments, output=Path("/dev/full"))
    assert (code, told.splitlines()[-1:]) == (1, [f"fetcher: {ENOSPC}"])
    assert "Traceback" not in told


@pytest.mark.parametrize("arguments", [["check-config", "--json"], ["check-config"], ["--help"]])
def test_a_reader_that_has_seen_enough_is_no_failure_to_be_told(
    tmp_path: Path, closed: int, arguments: list[str]
) -> None:
    code, told = run(tmp_path, *arguments, output=closed)
    assert code == 141
    assert "Traceback" not in told
    assert "Broken" not in told


@pytest.mark.usefixtures("jobs")
def test_a_backup_that_cannot_be_told_of_is_there_all_the_same(tmp_path: Path, closed: int) -> None:
    for name, output in (("b1", Path("/dev/full")), ("b2", closed)):
        code, told = run(tmp_path, "backup", name, "--json", output=output)
        assert code == 0
        assert f"{name} is complete; standard output: " in told
        assert "manifest.json" in tree(tmp_path / name)


def test_an_archive_that_cannot_be_told_of_is_there_all_the_same(tmp_path: Path) -> None:
    code, told = run(tmp_path, "diagnose", "--output=d.tar.gz", output=Path("/dev/full"))
    assert (code, told) == (0, f"diagnose: d.tar.gz is written; {ENOSPC}\n")
    assert (tmp_path / "d.tar.gz").stat().st_size > 0


def test_a_standard_output_that_was_closed_fails_no_command(tmp_path: Path) -> None:
    command = f"exec {sys.executable} -m fetcher check-config >&-"
    root = str(Path(__file__).parents[3])
    done = subprocess.run(
        ["sh", "-c", command],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "PYTHONPATH": root},
        stderr=subprocess.PIPE,
        timeout=DEADLINE_SECONDS,
        check=False,
    )
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr


def wrapped() -> None:
    raise BaseExceptionGroup("of a nursery", [BaseExceptionGroup("", [KeyboardInterrupt()])])


def plain() -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize("interrupt", [plain, wrapped])
def test_an_interruption_is_one_line_and_exit_code_130(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    interrupt: Callable[[], None],
) -> None:
    monkeypatch.setattr(cli_app, "loaded_for", lambda _: interrupt())
    monkeypatch.setattr(sys, "argv", ["fetcher", "check-config"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr() == ("", "fetcher: interrupted\n")


async def redriven_then_interrupted(*_: object, tell: Callable[..., None], **__: object) -> None:
    tell(None, Redriven.DISPATCHED)
    raise KeyboardInterrupt


async def purged_then_interrupted(*_: object, tell: Callable[[int], None]) -> int:
    tell(7)
    raise KeyboardInterrupt


async def rotated_then_interrupted(*_: object, tell: Callable[..., None], **__: object) -> None:
    tell(Rotated(config_name="shop_db", rotation=Rotation.ROTATED, why=None), 1, 2)
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("arguments", "where", "stand_in", "told"),
    [
        (
            ["dlq", "redrive"],
            (dead_letters, "redrive_letters"),
            redriven_then_interrupted,
            "dlq: broken off: 1 were dispatched anew before, 0 skipped",
        ),
        (
            ["dlq", "purge", "--yes"],
            (dead_letters, "purge_letters"),
            purged_then_interrupted,
            "dlq: broken off: 7 were purged before",
        ),
        (
            ["keys", "rotate"],
            (key_rotation, "rotate_keys"),
            rotated_then_interrupted,
            "keys rotate: broken off: 1 rotated before; it can be run again",
        ),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, list) else "",
)
def test_what_was_done_before_an_interruption_is_told(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    arguments: list[str],
    where: tuple[ModuleType, str],
    stand_in: Callable[..., object],
    told: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(*where, stand_in)
    monkeypatch.setattr(sys, "argv", ["fetcher", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 130
    assert capsys.readouterr().err.splitlines()[-2:] == [told, "fetcher: interrupted"]


@pytest.mark.parametrize(
    ("error", "code", "told"),
    [
        (OSError(errno.ENOSPC, ""), 1, f"fetcher: {ENOSPC}\n"),
        (BrokenPipeError(errno.EPIPE, ""), 141, ""),
    ],
)
def test_a_failure_to_print_is_told_as_that_also_out_of_nurseries(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    error: OSError,
    code: int,
    told: str,
) -> None:
    def fail(_: object) -> None:
        raise ExceptionGroup("of a nursery", [ExceptionGroup("", [OutputFailed(error)])])

    monkeypatch.setattr(cli_app, "loaded_for", fail)
    monkeypatch.setattr(sys, "argv", ["fetcher", "check-config"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code
    assert capsys.readouterr() == ("", told)


@pytest.mark.parametrize(
    "other", [OutputFailed(BrokenPipeError(errno.EPIPE, "")), KeyboardInterrupt()]
)
def test_a_failure_beside_an_interruption_or_a_reader_that_left_is_told(
    monkeypatch: pytest.MonkeyPatch, other: BaseException
) -> None:
    def fail(_: object) -> None:
        raise BaseExceptionGroup("of a nursery", [other, RuntimeError("the real one")])

    monkeypatch.setattr(cli_app, "loaded_for", fail)
    monkeypatch.setattr(sys, "argv", ["fetcher", "check-config"])
    with pytest.raises(BaseExceptionGroup) as ended:
        main()
    assert ended.group_contains(RuntimeError)


@pytest.mark.parametrize(
    ("endings", "code"),
    [
        ([KeyboardInterrupt(), OutputFailed(BrokenPipeError(errno.EPIPE, ""))], 130),
        (
            [OutputFailed(OSError(each, "")) for each in (errno.EPIPE, errno.ENOSPC)],
            1,
        ),
    ],
    ids=["interrupted", "full"],
)
def test_of_several_ends_that_are_no_failure_of_ours_the_one_that_tells_most_counts(
    monkeypatch: pytest.MonkeyPatch, endings: list[BaseException], code: int
) -> None:
    def fail(_: object) -> None:
        raise BaseExceptionGroup("of a nursery", endings)

    monkeypatch.setattr(cli_app, "loaded_for", fail)
    monkeypatch.setattr(sys, "argv", ["fetcher", "check-config"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == code


def test_what_the_encoding_of_standard_output_does_not_have_is_shown_by_its_number(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    written = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(written, encoding="ascii"))
    say("sh\u00f6p \u20ac")
    OUTPUT.flush()
    assert written.getvalue() == b"sh\\xf6p \\u20ac\n"
