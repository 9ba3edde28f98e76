"""Factories by datasource type."""

from fetcher_engine.failures import unknown_type
from fetcher_engine.ports import ConnectorFactory


class MemoryRegistry:
    """A dictionary of factories."""

    def __init__(self, factories: dict[str, ConnectorFactory] | None = None) -> None:
        self._factories = dict(factories or {})

    def register(self, datasource_type: str, factory: ConnectorFactory) -> None:
        """The last one registered for a type wins."""
        self._factories[datasource_type] = factory

    def connector(self, datasource_type: str) -> ConnectorFactory | None:
        return self._factories.get(datasource_type)

    def lookup_or_error(self, datasource_type: str) -> ConnectorFactory:
        """Raise ``not_found`` for a type that nobody registered."""
        factory = self.connector(datasource_type)
        if factory is None:
            raise unknown_type(datasource_type)
        return factory
