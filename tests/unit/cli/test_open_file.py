"""`fetcher open-file`: a downloaded result is opened without a service and without a store."""

import base64
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fetcher.cli import main
from fetcher.crypto.keys import KeySet
from tests.unit.crypto import vectors

KEYS = KeySet.from_master(vectors.MASTER, version="1")
OTHER = base64.b64encode(bytes(range(1, 33))).decode()
DERIVED = {
    "FETCHER_EXTERNAL_HMAC_KEY": KEYS.external_hmac.hex(),
    "FETCHER_STORAGE_KEY": KEYS.storage.hex(),
}
FORMER = {"APP_ENC_KEY": OTHER, "APP_ENC_KEY_PREVIOUS": f"0={vectors.APP_ENC_KEY}"}


class Command:
    def __init__(
        self, monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
    ) -> None:
        self._monkeypatch, self._written = monkeypatch, capfdbinary
        for name in ("APP_ENC_KEY", "APP_ENC_KEY_PREVIOUS", "APP_ENC_KEY_PREVIOUS_UNTIL"):
            monkeypatch.delenv(name, raising=False)

    def __call__(
        self,
        environment: dict[str, str],
        *options: str,
        hmac: str = vectors.RESULT_HMAC,
        size: int = len(vectors.RESULT_PLAINTEXT),
    ) -> tuple[int, bytes, str]:
        """Exit code, standard output and error."""
        asked = ["open-file", "sealed", f"--hmac={hmac}", f"--size={size}", *options]
        with self._monkeypatch.context() as during:
            for name, value in environment.items():
                during.setenv(name, value)
            during.setattr(sys, "argv", ["fetcher", *asked])
            with pytest.raises(SystemExit) as ended:
                main()
        told = self._written.readouterr()
        assert isinstance(ended.value.code, int)
        return ended.value.code, told.out, told.err.decode()


@pytest.fixture
def open_file(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Command:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sealed").write_bytes(vectors.RESULT_OBJECT)
    return Command(monkeypatch, capfdbinary)


@pytest.mark.parametrize(
    "environment",
    [DERIVED, {"APP_ENC_KEY": vectors.APP_ENC_KEY}, FORMER],
    ids=["a consumer's keys", "the master key", "a former master key"],
)
def test_it_is_opened_by_any_keys_that_are_its_own(
    open_file: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    assert open_file(environment) == (0, vectors.RESULT_PLAINTEXT, "")
    size = len(vectors.RESULT_PLAINTEXT)
    saved = (0, b"", f"result.json: {size} bytes, verified\n")
    assert open_file(environment, "--output=result.json") == saved
    assert (tmp_path / "result.json").read_bytes() == vectors.RESULT_PLAINTEXT
    assert (tmp_path / "result.json").stat().st_mode & 0o777 == 0o600


def test_a_consumers_keys_come_before_the_services(open_file: Command) -> None:
    assert open_file(DERIVED | {"APP_ENC_KEY": OTHER})[0] == 0


def test_the_data_folders_own_key_opens_it(open_file: Command, tmp_path: Path) -> None:
    assert open_file({})[2] == (
        "fetcher: APP_ENC_KEY: not set, and fetcher-data holds no key of its own\n"
        "fetcher: FETCHER_EXTERNAL_HMAC_KEY and FETCHER_STORAGE_KEY: not set either\n"
    )
    assert not (tmp_path / "fetcher-data").exists()
    (tmp_path / "fetcher-data").mkdir()
    (tmp_path / "fetcher-data" / "master.key").write_text(vectors.APP_ENC_KEY)
    assert open_file({})[:2] == (0, vectors.RESULT_PLAINTEXT)


def test_former_keys_whose_time_is_over_open_nothing(open_file: Command) -> None:
    ended = FORMER | {"APP_ENC_KEY_PREVIOUS_UNTIL": "2020-12-31"}
    over = "open-file: its key is a former one, ended by APP_ENC_KEY_PREVIOUS_UNTIL\n"
    assert open_file(ended) == (1, b"", over)


@pytest.mark.parametrize(
    ("asked", "defect"),
    [
        ({"hmac": "0" * 64}, "wrong hmac"),
        ({"hmac": "é\udcff"}, "wrong hmac"),
        ({"size": 1}, "wrong size"),
        ({"size": 10**30}, "wrong size"),
        ({"size": -5}, "wrong size"),
    ],
)
def test_what_is_not_the_result_is_exit_code_3_and_writes_nothing(
    open_file: Command, asked: dict[str, object], defect: str, tmp_path: Path
) -> None:
    told = open_file(DERIVED, "--output=result.json", **asked)  # type: ignore[arg-type] # of two types
    assert told == (3, b"", f"open-file: result rejected: {defect}\n")
    assert not (tmp_path / "result.json").exists()


@pytest.mark.parametrize(
    ("content", "defect"),
    [
        (b"", "wrong size"),
        (vectors.RESULT_OBJECT + b"\n", "not base64"),
        (vectors.RESULT_OBJECT[:-4], "wrong size"),
        (b"AAAA" + vectors.RESULT_OBJECT[4:], "not authentic"),
        (b'{"code": "FET-0404"}', "not base64"),
    ],
    ids=["empty", "a line end more", "cut", "changed", "an error's answer"],
)
def test_a_file_that_is_not_as_it_was_stored(
    open_file: Command, content: bytes, defect: str, tmp_path: Path
) -> None:
    (tmp_path / "sealed").write_bytes(content)
    for environment in (DERIVED, FORMER):
        told = open_file(environment)
        assert told == (3, b"", f"open-file: result rejected: {defect}\n")


def test_another_services_key_is_told_as_such(open_file: Command) -> None:
    told = open_file({"APP_ENC_KEY": OTHER})
    assert told == (3, b"", "open-file: result rejected: not authentic\n")


@pytest.mark.parametrize(
    ("environment", "problem"),
    [
        (
            {"FETCHER_STORAGE_KEY": DERIVED["FETCHER_STORAGE_KEY"]},
            "FETCHER_EXTERNAL_HMAC_KEY: not set; a result takes both of a consumer's keys",
        ),
        (
            {"FETCHER_EXTERNAL_HMAC_KEY": DERIVED["FETCHER_EXTERNAL_HMAC_KEY"]},
            "FETCHER_STORAGE_KEY: not set; a result takes both of a consumer's keys",
        ),
        (
            DERIVED | {"FETCHER_STORAGE_KEY": DERIVED["FETCHER_STORAGE_KEY"] + "00"},
            "FETCHER_STORAGE_KEY: not 64 hexadecimal digits",
        ),
    ],
)
def test_keys_that_are_not_whole_are_told_without_them(
    open_file: Command, environment: dict[str, str], problem: str
) -> None:
    assert open_file(environment) == (2, b"", f"fetcher: {problem}\n")


def test_a_file_that_is_not_there_or_no_file_is_exit_code_1(
    open_file: Command, tmp_path: Path
) -> None:
    (tmp_path / "sealed").unlink()
    assert open_file(DERIVED) == (1, b"", "open-file: sealed: No such file or directory\n")
    (tmp_path / "sealed").mkdir()
    assert open_file(DERIVED) == (1, b"", "open-file: sealed: Is a directory\n")


def test_the_file_itself_is_no_place_for_what_is_in_it(open_file: Command, tmp_path: Path) -> None:
    (tmp_path / "other-name").hardlink_to(tmp_path / "sealed")
    refused = "open-file: --output: other-name is the file that is to be opened\n"
    assert open_file(DERIVED, "--output=other-name") == (2, b"", refused)
    assert (tmp_path / "sealed").read_bytes() == vectors.RESULT_OBJECT


@pytest.mark.parametrize("environment", [DERIVED, FORMER], ids=["one key", "a former key"])
def test_a_pipe_is_read_once_whatever_keys_there_are(
    open_file: Command, environment: dict[str, str], tmp_path: Path
) -> None:
    reader, writer = os.pipe()
    os.write(writer, vectors.RESULT_OBJECT)
    os.close(writer)
    (tmp_path / "sealed").unlink()
    (tmp_path / "sealed").symlink_to(f"/dev/fd/{reader}")
    assert open_file(environment) == (0, vectors.RESULT_PLAINTEXT, "")
    os.close(reader)


def test_a_pipe_without_an_end_is_not_the_result(open_file: Command, tmp_path: Path) -> None:
    (tmp_path / "sealed").unlink()
    letters = ["sh", "-c", r"exec tr '\0' A < /dev/zero"]
    with subprocess.Popen(letters, stdout=subprocess.PIPE) as endless:
        assert endless.stdout
        (tmp_path / "sealed").symlink_to(f"/dev/fd/{endless.stdout.fileno()}")
        told = open_file(FORMER)
        endless.kill()
    assert told == (3, b"", "open-file: result rejected: wrong size\n")


def test_a_pipe_keeps_its_mode(open_file: Command, tmp_path: Path) -> None:
    """As `/dev/null` has to, which everybody's programs write to."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o644)
    with subprocess.Popen(["cat", pipe], stdout=subprocess.PIPE) as reader:
        assert open_file(DERIVED, "--output=pipe")[0] == 0
        assert reader.communicate(timeout=60)[0] == vectors.RESULT_PLAINTEXT
    assert pipe.stat().st_mode & 0o777 == 0o644


def test_a_reader_who_has_seen_enough_is_told_nothing(tmp_path: Path) -> None:
    (tmp_path / "sealed").write_bytes(vectors.RESULT_OBJECT)
    reader, writer = os.pipe()
    os.close(reader)
    asked = [f"--hmac={vectors.RESULT_HMAC}", f"--size={len(vectors.RESULT_PLAINTEXT)}"]
    for output, ending in (
        (writer, (141, b"")),
        (os.open("/dev/full", os.O_WRONLY), (1, b"fetcher: standard output: No space left")),
    ):
        ended = subprocess.run(
            [sys.executable, "-m", "fetcher", "open-file", "sealed", *asked],
            cwd=tmp_path,
            env=DERIVED
            | {"PATH": os.environ["PATH"], "PYTHONPATH": str(Path(__file__).parents[3])},
            stdout=output,
            stderr=subprocess.PIPE,
            timeout=60,
            check=False,
        )
        os.close(output)
        assert (ended.returncode, ended.stderr[: len(ending[1]) or None]) == ending
