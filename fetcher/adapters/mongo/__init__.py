"""The record store in MongoDB, in the reference's own collections."""

from fetcher.adapters.mongo.records import MongoRecords, open_mongo_records

__all__ = ["MongoRecords", "open_mongo_records"]
