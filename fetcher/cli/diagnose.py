"""`fetcher diagnose`: one archive of facts for whoever helps."""

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import trio
from rich.console import Console

from fetcher.adapters.environment.internal_sources import environment_sources
from fetcher.adapters.local.archive import write_archive
from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.command_room import in_room
from fetcher.bootstrap.command_target import CommandTarget
from fetcher.bootstrap.diagnosis import diagnosed_parts
from fetcher.bootstrap.running_service import ask_service
from fetcher.bootstrap.service_calls import ServicePlace, place_of
from fetcher.bootstrap.versions import versions
from fetcher.cli.config_report import effective
from fetcher.cli.exits import EXIT_FAILED, EXIT_SETTINGS, done_all_the_same
from fetcher.cli.printing import add_row, complain, listing, print_json, say
from fetcher.cli.shared_options import LoadedSettings
from fetcher.commands.diagnosis import Facts, Part, PartResult, look_at
from fetcher.domain.tenants import Tenant
from fetcher.domain.timestamps import rfc3339
from fetcher.domain.visible_text import visible_in_json
from fetcher.log_secrets import live_secrets

_NO_NAME: Final = re.compile(r"[^A-Za-z0-9.-]+")


def run_diagnosis(
    loaded: LoadedSettings,
    tenant: Tenant,
    console: Console,
    *,
    output: Path | None,
    url: str | None,
    as_json: bool,
) -> int:
    """0: the archive is written, whatever is told in it; 1: there is none; 2: usage.

    With tenants and none named, what only one tenant has is told as not looked at.
    """
    role = loaded.role
    try:
        asked = place_of(loaded.settings, url) if url is not None or role.manages else None
    except ValueError as wrong:
        complain(f"diagnose: --url: {wrong}")
        return EXIT_SETTINGS
    made_at = utc_now()
    path = output if output is not None else Path.cwd() / f"{default_name(made_at)}.tar.gz"
    if os.path.lexists(path):
        complain(f"diagnose: {path}: is there already")
        return EXIT_FAILED
    parts = all_parts(loaded, tenant, asked, must_answer=url is not None)
    about = {"madeAt": rfc3339(made_at), "host": socket.gethostname(), "role": role.value}
    if tenant.id:
        about["tenant"] = tenant.id
    diagnosis = Diagnosis(path, about, console, as_json=as_json)
    trio.run(in_room, (), diagnosis.make, parts)
    return diagnosis.exit_code


def default_name(made_at: datetime) -> str:
    host = _NO_NAME.sub("-", socket.gethostname())[:60]
    return f"fetcher-diagnosis-{host}-{made_at:%Y%m%dT%H%M%SZ}"


def all_parts(
    loaded: LoadedSettings, tenant: Tenant, asked: ServicePlace | None, *, must_answer: bool
) -> list[Part]:
    """``asked``: the service; none for a worker, which answers nothing of the kind."""
    target = CommandTarget(settings=loaded.settings, tenant=tenant, role=loaded.role)

    async def settings() -> Facts:
        await trio.lowlevel.checkpoint()
        return settings_facts(loaded)

    async def programs() -> Facts:
        return await trio.to_thread.run_sync(versions, loaded.settings)

    return [
        Part(name="settings", look=settings),
        Part(name="versions", look=programs),
        *diagnosed_parts(target, loaded.role),
        *(
            [Part(name="service", look=partial(ask_service, asked, must_answer=must_answer))]
            if asked is not None
            else []
        ),
    ]


def settings_facts(loaded: LoadedSettings) -> Facts:
    """As `fetcher check-config` shows them."""
    return {
        "values": effective(loaded.settings, loaded.role),
        "warnings": list(loaded.notes.warnings),
        "skippedSources": list(environment_sources(loaded.settings.datasource_groups).skipped),
        "ignored": list(loaded.notes.ignored),
    }


class Diagnosis:
    """Looks, writes and tells; what hangs beyond its deadline hangs only after that."""

    def __init__(self, path: Path, about: Facts, console: Console, *, as_json: bool) -> None:
        self._path = path
        self._about = about
        self._console = console
        self._as_json = as_json
        self.exit_code = EXIT_FAILED

    async def make(self, parts: Sequence[Part]) -> None:
        async with trio.open_nursery() as nursery:
            results = await look_at(parts, nursery)
            summary = summary_of(self._about, results)
            # Short and local; it stays whole whatever comes.
            with trio.CancelScope(shield=True):
                problem = await trio.to_thread.run_sync(self._write, summary, results)
            if problem is not None:
                complain(f"diagnose: {self._path}: {problem}")
            else:
                self.exit_code = 0
                with done_all_the_same(f"diagnose: {self._path} is written"):
                    self._tell(summary, results)
            nursery.cancel_scope.cancel()

    def _write(self, summary: Facts, results: Sequence[PartResult]) -> str | None:
        folder = self._path.name.removesuffix(".tar.gz")
        files = {f"{folder}/{name}": data for name, data in files_of(summary, results).items()}
        try:
            write_archive(self._path, files)
        except OSError as error:
            return os.strerror(error.errno or 0)
        return None

    def _tell(self, summary: Facts, results: Sequence[PartResult]) -> None:
        if self._as_json:
            print_json({"path": str(self._path), **summary}, indent=2)
            return
        table = listing("Diagnosis", "part", "seconds", "what is missing")
        for result in results:
            add_row(table, result.name, f"{result.seconds:.2f}", lack_of(result))
        self._console.print(table)
        say(f"{self._path}: written; read it before you send it")


def lack_of(result: PartResult) -> str:
    if result.failure is None:
        return ""
    return ": ".join(
        str(result.failure[each]) for each in ("code", "text") if each in result.failure
    )


def summary_of(about: Facts, results: Sequence[PartResult]) -> Facts:
    return {
        **about,
        "whole": all(result.failure is None for result in results),
        "parts": {
            result.name: {
                "file": f"{result.name}.json",
                "ok": result.failure is None,
                "seconds": result.seconds,
                "failure": result.failure,
            }
            for result in results
        },
    }


def files_of(summary: Facts, results: Sequence[PartResult]) -> Mapping[str, bytes]:
    """A document of each part and one of all; the last line against secrets is that of logs."""
    documents: dict[str, Facts] = {"summary.json": summary}
    for result in results:
        lack = {} if result.failure is None else {"failure": result.failure}
        documents[f"{result.name}.json"] = {"ok": result.failure is None, **lack, **result.facts}
    return {name: _written(document) for name, document in documents.items()}


def _written(document: Facts) -> bytes:
    masked = live_secrets.masked_value(document)
    return f"{visible_in_json(json.dumps(masked, ensure_ascii=False, indent=2))}\n".encode()
