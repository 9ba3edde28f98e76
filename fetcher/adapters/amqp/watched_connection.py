"""aiormq's connection, of which one can ask whether the broker takes anything from it now."""

from typing import Final

import aiormq
from aiormq import spec

HOOKS: Final = (
    "_Connection__handle_connection_blocked",
    "_Connection__handle_connection_unblocked",
)
"""Private names of aiormq: a test looks whether they are still there."""


class WatchedConnection(aiormq.Connection):
    """``is_blocked``: an alarm (memory, disk) keeps the broker from reading what we send, since it
    said ``connection.blocked`` and until it says ``connection.unblocked``. It says so to a
    connection that publishes; one that consumes goes on."""

    is_blocked = False

    async def _Connection__handle_connection_blocked(self, _: spec.Connection.Blocked) -> None:  # noqa: N802 - aiormq's
        self.is_blocked = True

    async def _Connection__handle_connection_unblocked(self, _: spec.Connection.Unblocked) -> None:  # noqa: N802 - aiormq's
        self.is_blocked = False
