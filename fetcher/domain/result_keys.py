"""Where results lie: one object key an attempt (design section 4, step 5)."""

from fetcher.domain.ids import JobId


def result_key(prefix: str, job_id: JobId, attempt: int) -> str:
    """The Wire's key for the first attempt; later ones carry their number.

    A late loser therefore never overwrites the winner. ``prefix`` is put in front verbatim
    (spec worker-and-events 6).
    """
    number = "" if attempt <= 1 else f".{attempt}"
    return f"{prefix}external-data/{job_id}{number}.json"


def attempt_keys(prefix: str, job_id: JobId, attempts: int) -> list[str]:
    """Where the attempts so far may have left an object or an unfinished upload."""
    return [result_key(prefix, job_id, attempt) for attempt in range(1, attempts + 1)]
