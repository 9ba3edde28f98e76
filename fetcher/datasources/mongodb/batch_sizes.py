"""How many documents to ask a server for at a time.

A server fills 16 MiB if it is let, and the driver copies an answer several times: large documents
would cost more memory than all the rest of a job.
"""

from typing import Final

FIRST_DOCUMENTS: Final = 2
"""Nothing is known of them. One alone some drivers' versions take for a whole result."""

_BYTES: Final = 2 * 1024 * 1024
"""Of an answer: what 4000 documents of usual size are."""

_GROWTH: Final = 16
"""The first documents may be smaller than those that follow."""


class BatchSize:
    """``documents`` is what to ask for next, at most ``most``."""

    def __init__(self, most: int) -> None:
        self._most = most
        self.documents = min(FIRST_DOCUMENTS, most)

    def learn(self, documents: int, size_bytes: int) -> None:
        """What came last."""
        if documents > 0:
            fitting = max(1, _BYTES * documents // max(1, size_bytes))
            self.documents = min(fitting, _GROWTH * documents, self._most)
