"""The file `.env` beneath the environment (spec configuration 1.1)."""

from pathlib import Path

import pytest

from fetcher.settings import process_environment


def write(folder: Path, text: str) -> None:
    (folder / ".env").write_text(text, encoding="utf-8")


def test_the_environment_is_never_overwritten(tmp_path: Path) -> None:
    write(tmp_path, "SERVER_ADDRESS=:5000\nMONGO_HOST=mongo.test\nREDIS_HOST=redis.test\n")
    found = process_environment({"SERVER_ADDRESS": ":6000", "REDIS_HOST": ""}, tmp_path)
    assert found.variables == {
        "SERVER_ADDRESS": ":6000",
        "REDIS_HOST": "",
        "MONGO_HOST": "mongo.test",
    }
    assert (found.file, found.is_missing, found.problems) == (tmp_path / ".env", False, ())


@pytest.mark.parametrize(
    ("env_name", "is_read"),
    [("", True), ("  ", True), ("local", True), ("staging", False), ("Local", False)],
)
def test_the_environments_own_name_decides(env_name: str, is_read: bool, tmp_path: Path) -> None:
    write(tmp_path, "MONGO_HOST=mongo.test\nENV_NAME=production\n")
    found = process_environment({"ENV_NAME": env_name}, tmp_path)
    assert ("MONGO_HOST" in found.variables) is is_read
    assert found.variables["ENV_NAME"] == env_name
    assert not found.is_missing


def test_references_are_replaced_by_what_counts(tmp_path: Path) -> None:
    write(
        tmp_path,
        "# ports\nSERVER_PORT=4006\nexport SERVER_ADDRESS=:${SERVER_PORT}\n"
        "VERSION='${TAG:-v1}'\nSWAGGER_TITLE=\"two\\nlines\" # and why\nBARE\n",
    )
    found = process_environment({"SERVER_PORT": "5006"}, tmp_path)
    assert found.variables == {
        "SERVER_PORT": "5006",
        "SERVER_ADDRESS": ":5006",
        "VERSION": "v1",
        "SWAGGER_TITLE": "two\nlines",
    }


def test_a_missing_file_is_no_problem(tmp_path: Path) -> None:
    found = process_environment({"A": "b"}, tmp_path)
    assert (found.variables, found.is_missing, found.problems) == ({"A": "b"}, True, ())


def test_a_line_that_is_none_is_named_and_not_repeated(tmp_path: Path) -> None:
    write(tmp_path, "A=b\nMONGO_PASSWORD='canary\n")
    found = process_environment({}, tmp_path)
    assert found.problems == (".env: line 2 is no NAME=value",)


def test_a_file_that_cannot_be_used_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / ".env").write_bytes(b"A=\xff")
    assert process_environment({}, tmp_path).problems == (".env: the file is not UTF-8",)
    (tmp_path / ".env").write_bytes(b"#" * (1024 * 1024 + 1))
    assert process_environment({}, tmp_path).problems == (".env: the file is larger than 1024 KiB",)
    (tmp_path / ".env").unlink()
    (tmp_path / ".env").mkdir()
    assert process_environment({}, tmp_path).problems == (".env: the file cannot be read",)
