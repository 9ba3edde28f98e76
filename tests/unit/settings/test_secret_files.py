"""NAME_FILE stands for NAME, for every secret."""

import os
from pathlib import Path

import pytest

from fetcher.settings import SECRET_NAMES, Role, load_settings
from fetcher.settings.files import MAX_SECRET_BYTES, FileUnusable, secret_of
from tests.unit.settings.test_loading import KEY, WORKER, load, refusals


@pytest.mark.parametrize(
    ("content", "secret"),
    [
        (b"pass", "pass"),
        (b"pass\n", "pass"),
        (b"pass\r\n", "pass"),
        (b"pass\n\n", "pass\n"),
        (b" pass \n", " pass "),
        ("pässwörd\n".encode(), "pässwörd"),
        (b"x" * MAX_SECRET_BYTES, "x" * MAX_SECRET_BYTES),
    ],
)
def test_one_line_end_is_dropped_and_all_else_counts(
    content: bytes, secret: str, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_bytes(content)
    assert secret_of(str(tmp_path / "secret")) == secret


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"\xff\xfe", "the file is not UTF-8"),
        (b"x" * (MAX_SECRET_BYTES + 1), "the file is larger than 64 KiB"),
    ],
)
def test_what_is_no_secret_is_told_apart(content: bytes, problem: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_bytes(content)
    with pytest.raises(FileUnusable, match=problem):
        secret_of(str(tmp_path / "secret"))


def test_what_is_no_file_neither_hangs_nor_fills_the_memory(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    for name in (str(tmp_path / "pipe"), "/dev/zero"):
        with pytest.raises(FileUnusable, match="it is no regular file"):
            secret_of(name)
    for name in (str(tmp_path), str(tmp_path / "none"), "a\0b"):
        with pytest.raises(FileUnusable):
            secret_of(name)


@pytest.mark.parametrize("name", sorted(SECRET_NAMES))
def test_every_secret_may_lie_in_a_file(name: str, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text(f"{KEY}\n")
    others = {
        "APP_ENC_KEY_PREVIOUS": f"0={KEY}\n",
        "MONGO_URI": "mongodb://u:p@mongo.test/?tls=true\n",
    }
    file.write_text(others.get(name, f"{KEY}\n"))
    beside = {"OBJECT_STORAGE_ACCESS_KEY_ID", "OBJECT_STORAGE_SECRET_KEY"} - {name}
    environment = {f"{name}_FILE": str(file), "MONGO_NAME": "fetcher"}
    if name.startswith("OBJECT_STORAGE"):
        environment |= dict.fromkeys(beside, "other")
    settings = load_settings(environment, Role.ALL)
    value = getattr(settings, name.lower()).get_secret_value()
    assert value == others.get(name, KEY).removesuffix("\n")


def test_a_secret_is_set_in_one_place(tmp_path: Path) -> None:
    (tmp_path / "key").write_text(KEY)
    path = str(tmp_path / "key")
    assert refusals({"APP_ENC_KEY_FILE": path, "APP_ENC_KEY": KEY}) == [
        "APP_ENC_KEY: set it or APP_ENC_KEY_FILE, not both"
    ]
    assert load(APP_ENC_KEY_FILE=path, APP_ENC_KEY=" ").app_enc_key.get_secret_value() == KEY


def test_a_secret_that_could_not_be_read_is_not_missing_besides(tmp_path: Path) -> None:
    environment = {**WORKER, "RABBITMQ_DEFAULT_PASS": "", "APP_ENC_KEY": ""}
    (tmp_path / "empty").touch()
    files = {
        "RABBITMQ_DEFAULT_PASS_FILE": str(tmp_path / "none"),
        "APP_ENC_KEY_FILE": str(tmp_path / "empty"),
    }
    assert refusals({**environment, **files}, Role.WORKER) == [
        "APP_ENC_KEY_FILE: the file is empty",
        "RABBITMQ_DEFAULT_PASS_FILE: the file cannot be read",
    ]


def test_every_file_that_cannot_be_used_is_named_at_once(tmp_path: Path) -> None:
    (tmp_path / "empty").touch()
    assert refusals(
        {"APP_ENC_KEY_FILE": str(tmp_path / "none"), "REDIS_PASSWORD_FILE": str(tmp_path / "empty")}
    ) == [
        "APP_ENC_KEY_FILE: the file cannot be read",
        "REDIS_PASSWORD_FILE: the file is empty",
    ]
