"""How long what has ended is kept."""

from typing import Annotated, ClassVar

from pydantic import Field

from fetcher.settings.fields import MOST_SECONDS, WORKER, SettingsGroup


class RetentionSettings(SettingsGroup):
    TITLE: ClassVar[str] = "How long things are kept"

    result_retention_days: Annotated[
        int,
        Field(
            ge=0,
            le=36_500,
            description="A result is deleted so many days after its job's end; 0: never",
        ),
    ] = 0
    job_retention_days: Annotated[
        int,
        Field(
            ge=0,
            le=36_500,
            description="An ended job's record is deleted after so many days; 0: never. Needs"
            " `RESULT_RETENTION_DAYS`, as many or fewer",
        ),
        WORKER,
    ] = 0
    audit_retention_days: Annotated[
        int,
        Field(
            ge=0,
            le=36_500,
            description="Entries of the audit trail are deleted after so many days; 0: never",
        ),
        WORKER,
    ] = 365
    event_file_max_mib: Annotated[
        int,
        Field(
            ge=0,
            le=1_048_576,
            description="`events.jsonl` of the embedded queue is set aside before it is larger, in"
            " MiB; 0: never for its size",
        ),
    ] = 64
    event_file_max_days: Annotated[
        int,
        Field(
            ge=0,
            le=36_500,
            description="It holds events of so many days at most; 0: never set aside for that",
        ),
    ] = 30
    event_files_kept: Annotated[
        int,
        Field(ge=0, le=100_000, description="So many set aside are kept, the youngest; 0: all"),
    ] = 12
    retention_sweep_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How often what has had its time is looked for, in seconds",
        ),
        WORKER,
    ] = 3600.0
