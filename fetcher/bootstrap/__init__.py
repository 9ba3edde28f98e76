"""The one composition root: settings to adapters, adapters to actors."""

from fetcher.bootstrap.service import run_service
from fetcher.bootstrap.stores import open_object_store, open_record_store

__all__ = ["open_object_store", "open_record_store", "run_service"]
