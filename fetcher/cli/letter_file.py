"""A file of dead letters, whole: a line of JSON each."""

import json
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from fetcher.adapters.local.new_file import new_private_file
from fetcher.commands.dead_letters import Examined
from fetcher.domain.saved_letters import Fingerprint, fingerprint, saved_form
from fetcher.domain.timestamps import rfc3339


class NotSaved(Exception):
    """The file cannot be written, or holds something else. The text names no content."""


class SavedLetters:
    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count = 0

    @classmethod
    @contextmanager
    def create(cls, path: Path) -> Generator["SavedLetters", None, None]:
        """For its owner alone, and on the disk after leaving; by an exception nothing stays.

        Raises NotSaved, also where something is there already.
        """
        try:
            with new_private_file(path) as file:
                yield cls(file)
        except FileExistsError:
            raise NotSaved(f"{path}: there is something already") from None
        except OSError as failed:
            raise NotSaved(f"{path}: {failed.strerror}") from None

    def add(self, each: Examined) -> None:
        """Raises OSError."""
        line = json.dumps({**summary(each), **saved_form(each.letter)})
        self._file.write(line.encode() + b"\n")
        self.count += 1


def read_saved(path: Path) -> list[Fingerprint]:
    """Of each letter in the file. Raises NotSaved where any line is not of ours, or torn."""
    found = []
    try:
        with path.open("rb") as file:
            for line in file:
                if not line.endswith(b"\n"):
                    raise NotSaved(f"{path}: its last line is torn")
                found.append(fingerprint(json.loads(line)))
    except OSError as failed:
        raise NotSaved(f"{path}: {failed.strerror}") from None
    except (ValueError, KeyError, TypeError, RecursionError):
        raise NotSaved(f"{path}: line {len(found) + 1} is no dead letter") from None
    return found


def summary(each: Examined) -> dict[str, Any]:
    """Without the body: a list may be of thousands."""
    return {
        "position": each.position,
        "reason": each.letter.reason,
        "jobId": str(each.job_id) if each.job_id is not None else None,
        "genuine": each.is_genuine,
        "sentAt": rfc3339(each.sent_at) if each.sent_at is not None else None,
        "bytes": len(each.letter.body),
    }
