"""A connection whose end is the file's end."""

import sqlite3
from typing import Any
from weakref import WeakSet


class SourceConnection(sqlite3.Connection):
    """Closes with itself the cursors that ``execute`` made.

    SQLite keeps a closed connection's file open, under a read lock, for as long as a statement of
    it is left (``sqlite3_close_v2``). Somebody who was cancelled leaves one in the traceback of
    that, until the garbage is collected.
    """

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._cursors: WeakSet[sqlite3.Cursor] = WeakSet()

    def execute(self, *args: Any) -> sqlite3.Cursor:
        """By a cursor that is known here."""
        cursor = self.cursor()
        self._cursors.add(cursor)
        return cursor.execute(*args)

    def close(self) -> None:
        """Not while another thread is in a call."""
        for cursor in list(self._cursors):
            cursor.close()
        super().close()
