"""The record store in MongoDB, in the reference's own collections."""

from fetcher.adapters.mongo.address import AddressInvalid, compose_uri, uses_tls
from fetcher.adapters.mongo.records import MongoRecords, open_mongo_records

__all__ = ["AddressInvalid", "MongoRecords", "compose_uri", "open_mongo_records", "uses_tls"]
