"""Bodies of the operators' routes to dead letters."""

from collections.abc import Sequence
from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import ConfigDict, Field

from fetcher.api.models.connections import Answer, Id, Timestamp
from fetcher.api.models.job_parts import shown_time
from fetcher.api.models.operations import Count
from fetcher.api.payloads import StrictPart
from fetcher.commands.dead_letters import Examined, Redriven
from fetcher.commands.operate_dead_letters import Looked, Stop

MOST_SHOWN_CHARACTERS: Final = 256
"""Of what strangers may have written: anybody who reaches the broker can send dead letters."""
MOST_REDRIVEN: Final = 1000


class DeadLetterAnswer(Answer):
    """Of one that is not ``genuine`` anybody may have written every member."""

    position: int
    job_id: Id | None = None
    genuine: bool
    reason: str
    exchange: str
    routing_key: str
    sent_at: Timestamp | None = None
    bytes: Count

    @classmethod
    def of(cls, each: Examined) -> Self:
        letter = each.letter
        return cls(
            position=each.position,
            job_id=str(each.job_id) if each.job_id is not None else None,
            genuine=each.is_genuine,
            reason=letter.reason[:MOST_SHOWN_CHARACTERS],
            exchange=letter.exchange[:MOST_SHOWN_CHARACTERS],
            routing_key=letter.routing_key[:MOST_SHOWN_CHARACTERS],
            sent_at=shown_time(each.sent_at),
            bytes=len(letter.body),
        )


StoppedBy: TypeAlias = Literal["deadline", "examined", "delivery_limit"]


class DeadLettersAnswer(Answer):
    """``total`` counts all that lie there, whatever their reason, ``examined`` those that were
    looked through. ``stoppedBy`` tells what ended that before enough were found."""

    total: Count
    examined: Count
    stopped_by: StoppedBy | None = None
    letters: list[DeadLetterAnswer]

    @classmethod
    def of(cls, looked: Looked, letters: Sequence[DeadLetterAnswer]) -> Self:
        return cls(
            total=looked.total,
            examined=looked.examined,
            stopped_by=looked.stop.value if looked.stop is not None else None,
            letters=list(letters),
        )


class RedriveRequest(StrictPart):
    """Which letters: of one reason, and so many."""

    # a body that is null counts as an empty object (spec rest-api 5.1), and nothing is required
    model_config = ConfigDict(json_schema_extra={"type": ["object", "null"]})

    reason: Annotated[str, Field(min_length=1, max_length=MOST_SHOWN_CHARACTERS)] | None = None
    limit: Annotated[int, Field(ge=1, le=MOST_REDRIVEN)] | None = None


class RedrivenAnswer(Answer):
    position: int
    job_id: Id | None = None
    result: Literal[
        "dispatched",
        "unknown",
        "unreadable",
        "ended",
        "in_hand",
        "waits",
        "held_back",
        "unverified",
    ]


class RedriveAnswer(Answer):
    """Those of ``dispatched`` jobs are gone from the dead letters, the others still lie there.
    ``stoppedBy`` tells what ended it before enough were found."""

    dispatched: Count
    stopped_by: StoppedBy | None = None
    letters: list[RedrivenAnswer]

    @classmethod
    def of(cls, results: Sequence[tuple[Examined, Redriven]], stop: Stop | None) -> Self:
        return cls(
            dispatched=sum(result is Redriven.DISPATCHED for _, result in results),
            stopped_by=stop.value if stop is not None else None,
            letters=[
                RedrivenAnswer(
                    position=each.position,
                    job_id=str(each.job_id) if each.job_id is not None else None,
                    result=result.value,
                )
                for each, result in results
            ],
        )
