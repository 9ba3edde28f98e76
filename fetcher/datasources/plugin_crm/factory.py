"""Builds connectors of ``plugin_crm`` for one request: MongoDB's, with a layout of their own."""

from collections.abc import Callable, Mapping
from typing import Final

from fetcher.datasources.mongodb.factory import MongodbFactory
from fetcher.datasources.mongodb.layout import Layout, RowWriter
from fetcher.datasources.plugin_crm.layout import OrganisationCollections
from fetcher.domain.connections import Connection
from fetcher_engine import EngineError, ErrorCategory

ORGANISATIONS: Final = "organizationIds"
"""The connection's metadata by which only some organisations are read."""


class PluginCrmFactory(MongodbFactory):
    """Documents again: an empty list of fields is whole documents."""

    def _layout(self, record: Connection, new_writer: Callable[[], RowWriter]) -> Layout:
        return OrganisationCollections(
            config_name=record.config_name,
            requested=self._requested(record),
            wanted=self._scope.fields(record.config_name),
            organisations=organisations_of(record.metadata, config_name=record.config_name),
            keys=self._settings.sealed_field_keys,
            new_writer=new_writer,
        )


def organisations_of(metadata: Mapping[str, object], *, config_name: str) -> frozenset[str] | None:
    """A list of texts, or one text with commas; None where the connection names none.

    Raise ``validation`` for anything else: what cannot be read must not mean all of them.
    """
    if ORGANISATIONS not in metadata:
        return None
    stated = metadata[ORGANISATIONS]
    listed = stated.split(",") if isinstance(stated, str) else stated
    if isinstance(listed, list | tuple) and all(isinstance(each, str) for each in listed):
        found = frozenset(each.strip() for each in listed)
        if found and "" not in found:
            return found
    text = f"connection metadata {ORGANISATIONS} must name organisations"
    raise EngineError(ErrorCategory.VALIDATION, text, source=config_name)
