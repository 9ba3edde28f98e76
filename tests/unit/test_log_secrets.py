"""No record holds a secret that the process holds, in whatever form it comes."""

import base64
import json
import logging
import re
import threading
from pathlib import Path

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from fetcher import log_secrets
from fetcher.log_secrets import FEW_FORMS, MASK, MOST_PASSED, LiveSecrets, live_secrets
from fetcher.logs import configure_logs

PASSWORD = 'p@ss "wörd"/1'
USERS = ("me", "you", "them")
"""A password stands at another bit of the base64 behind each."""


class Broken(Exception):
    pass


@pytest.fixture
def held() -> LiveSecrets:
    secrets = LiveSecrets()
    secrets.hold(["canary-1", PASSWORD, "line one is long\nline two is long", "short", ""])
    return secrets


@pytest.mark.parametrize(
    "text",
    [
        "canary-1",
        "user=x password=canary-1 host=y",
        f"refused: {PASSWORD}",
        "amqp://u:p%40ss%20%22w%C3%B6rd%22%2F1@h/",
        "amqp://u:p%40ss%20%22w%C3%B6rd%22/1@h/",
        "password=p%40ss+%22w%C3%B6rd%22%2F1&x=1",
        repr({"password": PASSWORD}),
        json.dumps({"password": PASSWORD}),
        json.dumps({"password": PASSWORD}, ensure_ascii=False),
        json.dumps(json.dumps({"password": PASSWORD})),
        repr(Broken(json.dumps({"password": PASSWORD}))),
        PASSWORD.encode().hex(),
        PASSWORD.encode().hex().upper(),
        *(f"Basic {base64.b64encode(f'{user}:{PASSWORD}'.encode()).decode()}" for user in USERS),
        base64.urlsafe_b64encode(f"??{PASSWORD}".encode()).decode(),
        "the key: line two is long",
    ],
)
def test_a_secret_is_masked_in_every_form(held: LiveSecrets, text: str) -> None:
    masked = held.masked(text)
    assert MASK in masked
    assert not any(
        part in masked for part in ("canary", "rd%", "wörd", "line two", "d%C3", "77c3b6", "77C3B6")
    )
    for user in USERS:
        assert PASSWORD[:5] not in _decoded(masked.replace(MASK, "")), user


def _decoded(text: str) -> str:
    """Whatever base64 is in it, as text."""
    letters = re.sub(r"[^A-Za-z0-9+/]", "", text)
    return base64.b64decode(letters[: len(letters) // 4 * 4]).decode("latin-1")


def test_a_secret_within_another_leaves_nothing_of_it() -> None:
    secrets = LiveSecrets()
    secrets.hold(["canary", "canary-and-more"])
    secrets.note("canary-and-more-still")
    assert secrets.masked("canary-and-more-still canary-and-more canary") == "*** *** ***"


def test_other_threads_log_while_passwords_pass() -> None:
    secrets = LiveSecrets()
    secrets.hold(["canary-1"])
    is_over = threading.Event()
    wrong: list[object] = []

    def log() -> None:
        while not is_over.is_set():
            try:
                text = secrets.processor(None, "", {"msg": "a canary-1"})["msg"]
            except RuntimeError as changed:
                text = changed
            if text != "a ***":
                wrong.append(text)
                return

    thread = threading.Thread(target=log)
    thread.start()
    try:
        for number in range(5_000):
            secrets.note(f"password-number-{number % 300}")
    finally:
        is_over.set()
        thread.join()
    assert not wrong


def test_other_texts_stay_as_they_are(held: LiveSecrets) -> None:
    for text in ("shortage of canary birds", "", "p@ss"):
        assert held.masked(text) == text


@pytest.mark.parametrize(
    ("value", "masked"),
    [
        ({"a": ["x canary-1", 7], "b": None}, {"a": ["x ***", 7], "b": None}),
        ({"canary-1": 1, 7: "a"}, {"***": 1, 7: "a"}),
        (("canary-1", True), ["***", True]),
        (Path("/tmp/canary-1/x"), "PosixPath('/tmp/***/x')"),  # noqa: S108 - only a name
        (Broken("said canary-1"), "Broken('said ***')"),
        (b"canary-1", "b'***'"),
    ],
)
def test_a_secret_is_masked_in_every_kind_of_value(
    held: LiveSecrets, value: object, masked: object
) -> None:
    assert held.masked_value(value) == masked


def test_a_value_without_a_secret_is_the_same_object(held: LiveSecrets) -> None:
    value = Path("/x")
    assert held.masked_value(value) is value


def test_a_record_without_end_is_cut(held: LiveSecrets) -> None:
    endless: list[object] = []
    endless.append(endless)
    assert "***" in str(held.masked_value(endless))


def test_passwords_that_pass_are_masked_until_many_others_came(held: LiveSecrets) -> None:
    held.note("first-password")
    held.note("tiny")
    for number in range(MOST_PASSED - 1):
        held.note(f"password-number-{number}")
    held.note("first-password")
    for number in range(MOST_PASSED // 20 + 1):
        held.note(f"one-more-password-{number}")
        assert held.masked(f"one-more-password-{number}") == MASK
    assert held.masked("first-password") == MASK
    assert held.masked("password-number-0.") == "password-number-0."
    assert held.masked("tiny") == "tiny"
    assert held.masked("canary-1") == MASK, "what was held stays"


def test_a_tenants_many_connections_uncover_no_tenants_place(
    held: LiveSecrets, monkeypatch: pytest.MonkeyPatch
) -> None:
    most = 50
    monkeypatch.setattr(log_secrets, "MOST_PASSED", most)
    held.note_of_place("password-of-a-place")
    held.note_of_place("tiny")
    for number in range(2 * most):
        held.note(f"password-number-{number}")
    assert held.masked("password-of-a-place") == MASK
    for number in range(2 * most):
        held.note_of_place(f"place-number-{number}")
    assert held.masked("password-of-a-place") == "password-of-a-place"
    assert held.masked("tiny canary-1") == f"tiny {MASK}"


@given(
    secrets=st.lists(st.text("abc", min_size=6, max_size=9), min_size=1, max_size=20),
    text=st.text("abc-", max_size=60),
)
def test_many_secrets_are_masked_as_few_are(secrets: list[str], text: str) -> None:
    few, many, one_by_one = LiveSecrets(), LiveSecrets(), LiveSecrets()
    fillers = [f"filler-{number:05}" for number in range(FEW_FORMS)]
    few.hold(secrets)
    many.hold([*secrets, *fillers])
    one_by_one.hold(fillers)
    for secret in secrets:
        one_by_one.note(secret)
    assert many.masked(text) == few.masked(text) == one_by_one.masked(text)
    assert not any(secret in many.masked(text) for secret in secrets)


@pytest.mark.parametrize("encoding", ["json", "console"])
def test_neither_records_nor_tracebacks_nor_libraries_show_a_secret(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(logging.getLogger(), "handlers", [])
    live_secrets.hold(["canary-of-logs"])
    configure_logs(env_name="", level="", encoding=encoding)
    log = structlog.get_logger()
    log.warning("said canary-of-logs", address="amqp://u:canary-of-logs@h", n=1)
    log.error("broke", exc_info=Broken("canary-of-logs"))
    logging.getLogger("a.library").warning("its canary-of-logs")
    told = capsys.readouterr()
    assert "canary" not in told.out + told.err
    assert told.out.count(MASK) == 3
    assert told.err == "WARNING a.library: its ***\n"
