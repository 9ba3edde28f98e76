"""A lock of pymongo's that must not be lost.

Its operations wait for a server on a condition, by ``asyncio.wait_for``. Before Python 3.12 that
runs the wait in a task of its own, which has to take the lock again. A cancellation that arrives
just after the time was over leaves it behind: the operation goes on without the lock, and the task
takes it for ever. From then on nothing of this client ever ends, nor can it be cancelled. With an
outage both come at the same moment: our deadline, and the driver's.
"""

import sys
from typing import Final

import pymongo.lock

from fetcher.bridge import wait_in_place

WAITS_IN_ITS_OWN_TASK: Final = sys.version_info < (3, 12)


def keep_locks() -> None:
    """Let pymongo wait in place, in this process. May be repeated."""
    if WAITS_IN_ITS_OWN_TASK:
        pymongo.lock.wait_for = wait_in_place  # type: ignore[attr-defined,assignment] # a name of its own
