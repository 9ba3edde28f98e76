"""The fixtures of a whole cluster."""

from tests.e2e.failing_view import broken
from tests.e2e.fixtures import cluster, shop, stock, tenancy

__all__ = ["broken", "cluster", "shop", "stock", "tenancy"]
