"""Jobs: how many may wait, what one may take, who has it."""

from typing import Annotated, ClassVar

from pydantic import Field

from fetcher.settings.fields import (
    MANAGER,
    MOST_SECONDS,
    WORKER,
    Allowed,
    Boolean,
    SettingsGroup,
    Unset,
    positive_or_default,
)

MAX_RESULT_BYTES = 256 * 1024 * 1024


class JobSettings(SettingsGroup):
    TITLE: ClassVar[str] = "Jobs"

    engine_max_result_bytes: Annotated[
        int,
        positive_or_default(MAX_RESULT_BYTES),
        Field(description="The largest result, in bytes before it is sealed"),
        Allowed("at least 1; 0 or less: the default"),
    ] = MAX_RESULT_BYTES
    engine_timeout_sec: Annotated[
        float,
        Field(
            gt=0, le=MOST_SECONDS, description="The longest that one attempt may run, in seconds"
        ),
    ] = 300.0
    job_preflight_test: Annotated[
        Boolean, Field(description="A job's sources are tested before it is stored"), MANAGER
    ] = True
    options_enabled: Annotated[
        Boolean,
        Field(
            description="`false` refuses `dataRequest.options`: while workers of the reference"
            " share the queue"
        ),
        MANAGER,
    ] = True
    jobs_max_pending: Annotated[
        int,
        Field(
            ge=0,
            le=100_000,
            description="So many jobs may wait for a worker, then new ones are refused with 429;"
            " 0: no limit. With tenants each has the limit for itself",
        ),
        MANAGER,
    ] = 10_000
    jobs_max_pending_per_product: Annotated[
        int,
        Field(ge=0, le=100_000, description="The same for one product; 0: no limit of its own"),
        MANAGER,
    ] = 0
    result_redirect: Annotated[
        Boolean,
        Field(
            description="`GET …/result` sends callers to the bucket (an address for 60 s): they"
            " must reach `OBJECT_STORAGE_ENDPOINT` themselves"
        ),
        MANAGER,
    ] = False
    result_preview_enabled: Annotated[
        Boolean | None,
        Field(description="`GET …/result/preview` decrypts the first rows of a result here"),
        MANAGER,
        Unset("`true`, with `DEPLOYMENT_MODE=saas` `false`"),
    ] = None
    job_lease_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How long a worker has a job without renewing, in seconds; longer than the"
            " next two together",
        ),
        WORKER,
    ] = 60.0
    job_lease_renew_sec: Annotated[
        float, Field(gt=0, le=MOST_SECONDS, description="How often it renews, in seconds"), WORKER
    ] = 15.0
    job_lease_margin_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="So many seconds before the end of a lease an attempt that could not be"
            " renewed ends itself",
        ),
        WORKER,
    ] = 10.0
    job_max_wait_sec: Annotated[
        float,
        Field(
            ge=0,
            le=MOST_SECONDS,
            description="How long after a worker first took it a job may wait for a connection that"
            " is down, in seconds; then it fails. 0: it never waits",
        ),
        WORKER,
    ] = 3600.0
    job_reap_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How often leases that ran out are looked for, in seconds; with tenants at"
            " least 15 counts",
        ),
        WORKER,
    ] = 5.0
    job_dispatch_sweep_sec: Annotated[
        float,
        Field(
            gt=0,
            le=MOST_SECONDS,
            description="How often jobs that were not dispatched are looked for, in seconds; with"
            " tenants at least 15 counts",
        ),
    ] = 5.0
