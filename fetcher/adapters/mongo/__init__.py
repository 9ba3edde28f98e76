"""The record store in MongoDB, in the reference's own collections."""

from fetcher.adapters.mongo.indexes import IndexedDatabases
from fetcher.adapters.mongo.records import MongoRecords, open_mongo_records
from fetcher.adapters.mongo.shared_clients import SharedMongoClients, open_shared_clients

__all__ = [
    "IndexedDatabases",
    "MongoRecords",
    "SharedMongoClients",
    "open_mongo_records",
    "open_shared_clients",
]
