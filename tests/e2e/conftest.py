"""The fixtures of a whole cluster."""

from tests.e2e.fixtures import cluster, shop

__all__ = ["cluster", "shop"]
