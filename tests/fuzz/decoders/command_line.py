"""Arguments of each command, which are parsed and come to nothing."""

import os
from contextlib import redirect_stderr
from io import StringIO

from cyclopts import CycloptsError

from fetcher.bootstrap.service_calls import place_at
from fetcher.cli.app import app
from fetcher.cli.audit_list import parse_place
from fetcher.cli.printing import complain
from fetcher.cli.service_requests import item_path
from fetcher.domain.tenants import is_tenant_id
from fetcher.settings import SettingsRefused
from tests.fuzz.decoders.decoder import Decoder, text_of

_COMMANDS = (
    "--role=manager",
    "run --role worker",
    "demo",
    "check-config --role=all --json",
    "open-result a/b.json --hmac ab --size 7 --output f --role worker --tenant t",
    "open-file f.sealed --hmac ab --size 7 --output f --role worker",
    "verify-event - --exchange e --routing-key job.failed --json --role manager",
    "backup folder --with-master-key --json",
    "restore folder --json --role all",
    "diagnose --output f.tar.gz --url http://h:1 --json --tenant t",
    "topology declare --queue-type classic --bucket --json",
    "topology verify --queue-type=quorum --role worker",
    "dlq list --limit 3 --reason bad_signature --json",
    "dlq show 1 --tenant t",
    "dlq export file --limit=3",
    "dlq redrive --limit 3 --rate 0.5",
    "dlq purge --limit 3 --listed file --yes --no-json",
    "keys generate",
    "keys derive --purpose storage --quiet --key abc",
    "keys rotate --dry-run --json",
    "audit list --actor a --action result.downloaded --before 2026-03-14T00:00:00Z --limit 9",
    "jobs list --status failed --status pending --limit 3 --cursor c --product p --url http://h:1",
    "jobs show 0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b --json",
    "jobs cancel 0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b",
    "jobs rerun 0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b --role all",
    "connections list --type MYSQL --host h --sort-order asc --limit 3 --page 2",
    "connections show 0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b",
    "connections test 0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b",
    "connections delete 0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b --yes",
    "--help",
    "--version",
)


def decoders() -> dict[str, Decoder]:
    return {
        "arguments": Decoder(
            seeds=[line.replace(" ", "\0").encode() for line in _COMMANDS],
            decode=_arguments,
            refusals=(CycloptsError,),
        ),
        "service's address": Decoder(
            seeds=[b"http://127.0.0.1:4006/", b"https://[::1]"],
            decode=lambda data: place_at(text_of(data), token=""),
            refusals=(ValueError,),
        ),
        "place in the audit trail": Decoder(
            seeds=[b"2026-03-14T00:00:00Z/0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"],
            decode=lambda data: parse_place(os.fsdecode(data)),
        ),
        "id as an argument": Decoder(
            seeds=[b"0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b", b"acme-7"],
            decode=_id,
            refusals=(SettingsRefused,),
        ),
    }


def _arguments(data: bytes) -> None:
    """As the system hands them over: bytes without a zero, whatever their encoding."""
    arguments = [os.fsdecode(each) for each in data.split(b"\0")]
    with redirect_stderr(StringIO()):
        try:
            app.parse_args(arguments, exit_on_error=False, print_error=False)
        except CycloptsError as usage:
            complain(f"fetcher: {usage}")
            raise


def _id(data: bytes) -> None:
    text = os.fsdecode(data)
    is_tenant_id(text)
    item_path("/v1/jobs", text)
