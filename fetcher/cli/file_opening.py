"""`fetcher open-file FILE`: verify and decrypt a result that was downloaded as it is stored."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import IO, Final

from fetcher.bootstrap.clock import utc_now
from fetcher.bootstrap.keys import existing_key_ring
from fetcher.bootstrap.results import ExpectedResult
from fetcher.cli.consumer_keys import (
    EXTERNAL_KEY,
    STORAGE_KEY,
    ConsumerKeyMalformed,
    consumer_key_in,
)
from fetcher.cli.exits import EXIT_FAILED, EXIT_REJECTED, EXIT_SETTINGS
from fetcher.cli.printing import complain
from fetcher.cli.result_opening import write_or_complain
from fetcher.cli.shared_options import RoleName, settings_for
from fetcher.crypto.opener import (
    MEMORY_BYTES,
    OpenedResult,
    ResultDefect,
    ResultRejected,
    open_result,
)
from fetcher.domain.errors import StartRefused
from fetcher.settings import SettingsRefused

COMMAND: Final = "open-file"
PART_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultKeys:
    storage: bytes = field(repr=False)
    external: bytes = field(repr=False)
    has_ended: bool = False
    """Former keys, whose time to verify is over."""


def result_keys(environment: Mapping[str, str], role: RoleName | None) -> list[ResultKeys]:
    """The consumer's two keys, where the environment has them, else those of the settings, in the
    order in which to try them.

    Raise SettingsRefused: one of the two alone opens nothing.
    """
    try:
        storage = consumer_key_in(environment, STORAGE_KEY)
        external = consumer_key_in(environment, EXTERNAL_KEY)
    except ConsumerKeyMalformed as malformed:
        raise SettingsRefused([str(malformed)]) from None
    if storage and external:
        return [ResultKeys(storage=storage, external=external)]
    if storage or external:
        missing = EXTERNAL_KEY if storage else STORAGE_KEY
        raise SettingsRefused([f"{missing}: not set; a result takes both of a consumer's keys"])
    try:
        ring = existing_key_ring(settings_for(role))
    except StartRefused as refused:
        hint = f"{EXTERNAL_KEY} and {STORAGE_KEY}: not set either"
        raise SettingsRefused([*refused.problems, hint]) from None
    now = utc_now()
    return [
        ResultKeys(
            storage=keys.storage,
            external=keys.external_hmac,
            has_ended=ring.has_ended(keys.version, now=now),
        )
        for keys in ring
    ]


def open_sealed_file(
    file: Path, *, keys: list[ResultKeys], expected: ExpectedResult, output: Path | None
) -> int:
    """Nothing is written before all of it was verified. Raise OutputFailed."""
    if output is not None and is_same_file(file, output):
        # Half written, as on a full disk, it would be neither of the two.
        complain(f"{COMMAND}: --output: {output} is the file that is to be opened")
        return EXIT_SETTINGS
    try:
        opened = opened_by_one(file, keys, expected)
    except ResultRejected as rejected:
        complain(f"{COMMAND}: {rejected}")
        return EXIT_REJECTED
    except OSError as failed:
        complain(f"{COMMAND}: {file}: {failed.strerror}")
        return EXIT_FAILED
    if opened is None:
        complain(f"{COMMAND}: its key is a former one, ended by APP_ENC_KEY_PREVIOUS_UNTIL")
        return EXIT_FAILED
    return write_or_complain(COMMAND, opened, output)


def is_same_file(file: Path, output: Path) -> bool:
    """A pipe or a terminal may be both."""
    try:
        return file.is_file() and file.samefile(output)
    except OSError:
        return False


def opened_by_one(
    file: Path, keys: list[ResultKeys], expected: ExpectedResult
) -> OpenedResult | None:
    """By the first of the keys that seals it; None where that is a former one whose time is over.

    Raise ResultRejected where none does, or OSError.
    """
    *others, last = keys
    # Base64 takes a third more: what is longer than this is refused for its size.
    most = 2 * max(expected.size_bytes, 0) + PART_BYTES
    with file.open("rb") as source, SpooledTemporaryFile(max_size=MEMORY_BYTES) as copy:
        sealed: IO[bytes] = source
        if others and not source.seekable():
            # A pipe gives its bytes once, and each of the keys reads them all.
            while copy.tell() < most and (part := source.read(PART_BYTES)):
                copy.write(part)
            sealed = copy
        for each in others:
            try:
                return opened_by(sealed, each, expected)
            except ResultRejected as rejected:
                if rejected.defect is not ResultDefect.NOT_AUTHENTIC:
                    raise
        return opened_by(sealed, last, expected)


def opened_by(sealed: IO[bytes], keys: ResultKeys, expected: ExpectedResult) -> OpenedResult | None:
    if sealed.seekable():
        sealed.seek(0)
    opened = open_result(
        iter(lambda: sealed.read(PART_BYTES), b""),
        storage_key=keys.storage,
        hmac_key=keys.external,
        expected_hmac=expected.hmac,
        expected_size=expected.size_bytes,
    )
    if not keys.has_ended:
        return opened
    opened.close()
    return None
