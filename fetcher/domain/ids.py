"""Identifiers: what a job and a connection are called."""

import os
import time
from typing import NewType
from uuid import UUID

JobId = NewType("JobId", UUID)
ConnectionId = NewType("ConnectionId", UUID)

DEFAULT_TENANT = "default"
"""On whose behalf everything runs where there is one tenant only (spec engine 17.5)."""

SINGLE_TENANT = "single-tenant"
"""What stands for the tenant on events where there is none (spec worker-and-events 8.2)."""


def uuid7() -> UUID:
    """A time-ordered identifier (RFC 9562, section 5.7).

    48 bits of Unix milliseconds, the version, then 74 random bits from the operating system.
    Python gets one of its own in 3.14 only.
    """
    milliseconds = time.time_ns() // 1_000_000
    random_bits = int.from_bytes(os.urandom(10), "big")
    rand_a = random_bits >> 68
    rand_b = random_bits & ((1 << 62) - 1)
    return UUID(int=milliseconds << 80 | 7 << 76 | rand_a << 64 | 0b10 << 62 | rand_b)


def new_job_id() -> JobId:
    return JobId(uuid7())


def new_connection_id() -> ConnectionId:
    return ConnectionId(uuid7())
