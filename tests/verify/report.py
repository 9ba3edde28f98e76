"""What a run found, as a table."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from fetcher_engine import EngineError, SourceFailure
from tests.verify.owners import StatementRefused

_SHOWN: Final = 10


class Outcome(StrEnum):
    PASSED = "passed"
    FAILED = "FAILED"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True)
class Line:
    check: str
    outcome: Outcome
    detail: str


class Mistakes(Exception):
    """What a check found otherwise than it should be."""

    def __init__(self, *found: str) -> None:
        super().__init__(*found)
        self.found = found


class NotVerified(Exception):
    """Why a check says nothing."""


@dataclass(slots=True)
class Report:
    lines: list[Line] = field(default_factory=list)

    @property
    def is_good(self) -> bool:
        return bool(self.lines) and all(line.outcome is not Outcome.FAILED for line in self.lines)

    @contextmanager
    def check(self, name: str) -> Iterator[list[str]]:
        """What is put into the list stands beside the outcome. No server's text gets there."""
        details: list[str] = []
        outcome = Outcome.PASSED
        try:
            yield details
        except NotVerified as why:
            outcome = Outcome.SKIPPED
            details.append(str(why))
        except Mistakes as mistakes:
            outcome = Outcome.FAILED
            details += mistakes.found[:_SHOWN]
            details += [f"and {len(mistakes.found) - _SHOWN} more"][: len(mistakes.found) > _SHOWN]
        except StatementRefused:
            outcome = Outcome.FAILED
            details.append("the server refused a statement that prepares this check")
        except (EngineError, SourceFailure) as failure:
            outcome = Outcome.FAILED
            details.append(f"stage {failure.stage}, reason {failure.reason}")
        self.lines.append(Line(name, outcome, "; ".join(details)))

    def text(self) -> str:
        width = max((len(line.check) for line in self.lines), default=0)
        return "\n".join(
            f"{line.check:<{width}}  {line.outcome:<7}  {line.detail}".rstrip()
            for line in self.lines
        )
