"""Records in one SQLite file."""

from fetcher.adapters.sqlite.records import SqliteRecordStore, open_sqlite_records
from fetcher.adapters.sqlite.recovery import Recovered

__all__ = ["Recovered", "SqliteRecordStore", "open_sqlite_records"]
