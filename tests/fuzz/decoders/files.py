"""Files that somebody else may have written."""

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import trio

from fetcher.adapters.local.dead_letter_file import LocalDeadLetterQueue
from fetcher.adapters.local.dead_letter_level import LocalDeadLetterLevels
from fetcher.adapters.local.event_log import open_event_log
from fetcher.cli.event_verification import (
    EventKeys,
    InputUnreadable,
    Route,
    in_words,
    judged,
    kept_messages,
)
from fetcher.cli.letter_file import NotSaved, read_saved
from fetcher.consumer import derive_keys
from fetcher.domain.backups import (
    DATABASE,
    BackedUpFile,
    BackupRejected,
    Manifest,
    manifest_document,
    read_manifest,
)
from fetcher.domain.timestamps import rfc3339
from fetcher.settings import Role, SettingsRefused, load_settings, process_environment
from tests.fuzz.decoders.decoder import Decoder, in_file
from tests.unit.crypto import vectors

_KEYS: Final = EventKeys(valid=[derive_keys(vectors.APP_ENC_KEY).external_hmac])
_MANIFEST: Final = Manifest(
    created_at=datetime(2026, 3, 14, tzinfo=UTC),
    version="1",
    schema=1,
    files=(BackedUpFile(path=DATABASE, size_bytes=1, sha256="0" * 64),),
)
_LETTER: Final = {"exchange": "", "routingKey": "q", "reason": "r", "headers": {"a": 1}}
_HEADERS: Final = {
    "x-fetcher-reject-reason": "bad_signature",
    "x-fetcher-rejected-at": "2026-03-14T09:26:53Z",
}
_ENVIRONMENT: Final = b"LOG_LEVEL=info\nSERVER_PORT=4006\nREDIS_DB='1'\nA=\"${LOG_LEVEL}\"\n"


def decoders() -> dict[str, Decoder]:
    dead = json.dumps({**_LETTER, "headers": _HEADERS, "body": "{}"}).encode() + b"\n"
    death = {"time": "0001-01-01T00:00:00+14:00", "routing-keys": ["q"], "reason": "r"}
    kept = {"exchange": "fetcher.job.events", "routingKey": "job.completed", "headers": _HEADERS}
    return {
        "saved letter": Decoder(
            seeds=[json.dumps({**_LETTER, "body": "{}"}).encode() + b"\n"],
            decode=in_file("letters", lambda folder: read_saved(folder / "letters")),
            refusals=(NotSaved,),
        ),
        "dead letters": Decoder(
            seeds=[
                dead,
                dead + json.dumps({"headers": {"x-death": [death]}, "body": ""}).encode() + b"\n",
            ],
            decode=in_file("letters", lambda folder: trio.run(_dead_letters, folder / "letters")),
        ),
        "event log": Decoder(
            seeds=[dead + dead[:9]],
            decode=in_file("events", _event_log),
        ),
        "kept events": Decoder(
            seeds=[
                json.dumps({**kept, "body": "{}"}).encode(),
                json.dumps([{**kept, "bodyBase64": "e30="}]).encode(),
                json.dumps({**kept, "payload": "e30=", "payload_encoding": "base64"}).encode(),
                json.dumps({"properties": kept, "payload": "{}"}).encode() + b"\n" + dead,
            ],
            decode=_kept_events,
            refusals=(InputUnreadable,),
        ),
        "backup's manifest": Decoder(
            seeds=[json.dumps(manifest_document(_MANIFEST)).encode()],
            decode=read_manifest,
            refusals=(BackupRejected,),
        ),
        "environment file": Decoder(
            seeds=[_ENVIRONMENT],
            decode=in_file(".env", _settings),
            refusals=(SettingsRefused,),
        ),
    }


def _settings(folder: Path) -> None:
    found = process_environment({}, folder)
    load_settings(found.variables, Role.ALL)


def _kept_events(data: bytes) -> None:
    for message in kept_messages(data):
        verdict = judged(message, _KEYS, Route(exchange=None, routing_key=None))
        json.dumps(verdict)
        in_words(verdict)


async def _dead_letters(path: Path) -> None:
    async with LocalDeadLetterQueue(path).open() as window:
        while await window.next_page(limit=10):
            pass
    level = await LocalDeadLetterLevels(path, now=lambda: _MANIFEST.created_at).level()
    assert level.messages == window.total
    if level.oldest_at is not None:
        rfc3339(level.oldest_at)


def _event_log(folder: Path) -> None:
    """What was torn is cut off, and no more."""

    async def opened() -> None:
        async with open_event_log(path):
            pass

    path = folder / "events"
    before = path.read_bytes()
    trio.run(opened)
    assert path.read_bytes() == before[: before.rfind(b"\n") + 1]
