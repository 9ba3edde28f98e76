"""How long what has ended is kept (decision 035)."""

from dataclasses import dataclass

from fetcher.domain.job_store import EndedCursor

DAY_SECONDS = 86_400.0


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptResult:
    """A stored result that the record does not call gone, and its job's place among the ended."""

    place: EndedCursor
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetentionTimes:
    """Days, or parts of one, since a job ended or an audit entry was made; 0 keeps for ever."""

    job_days: float = 0
    result_days: float = 0
    audit_days: float = 0

    @property
    def keeps_everything(self) -> bool:
        return not (self.job_days or self.result_days or self.audit_days)
