"""Where results lie: one object key an attempt (design section 4, step 5)."""

from typing import Final

from fetcher.domain.ids import JobId

RESULTS_FOLDER: Final = "external-data"
LATE_WRITE_SECONDS: Final = 20 * 60.0
"""How long after an attempt has ended its object may still come to be: a store refuses requests
that were signed more than 15 minutes ago, and carries out soon what it took before then."""


def result_key(prefix: str, job_id: JobId, attempt: int) -> str:
    """The Wire's key for the first attempt; later ones carry their number.

    A late loser therefore never overwrites the winner. ``prefix`` is put in front verbatim
    (spec worker-and-events 6).
    """
    number = "" if attempt <= 1 else f".{attempt}"
    return f"{prefix}{RESULTS_FOLDER}/{job_id}{number}.json"


def attempt_keys(prefix: str, job_id: JobId, attempts: int) -> list[str]:
    """Where the attempts so far may have left an object or an unfinished upload."""
    return [result_key(prefix, job_id, attempt) for attempt in range(1, attempts + 1)]
