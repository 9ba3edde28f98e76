"""Rules between the settings of retention."""

from fetcher.settings.model import Settings


def retention_rules(settings: Settings) -> list[str]:
    """A job's record says where its result lies: it must not go first."""
    jobs, results = settings.job_retention_days, settings.result_retention_days
    if jobs and (not results or results > jobs):
        return [
            "JOB_RETENTION_DAYS: needs RESULT_RETENTION_DAYS, from 1 to as many days: a job's"
            " record says where its result lies, so it goes after it"
        ]
    return []
