"""The record store in MongoDB, in the reference's own collections."""

from fetcher.adapters.mongo.indexes import IndexedDatabases
from fetcher.adapters.mongo.records import MongoRecords, open_mongo_records

__all__ = ["IndexedDatabases", "MongoRecords", "open_mongo_records"]
