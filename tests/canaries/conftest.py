"""The fixtures of whole processes."""

from tests.e2e.failing_view import broken
from tests.e2e.fixtures import cluster, shop, tenancy

__all__ = ["broken", "cluster", "shop", "tenancy"]
