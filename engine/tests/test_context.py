"""Tenants (spec 21.1)."""

import pytest

from fetcher_engine import ErrorCategory, TenantContext
from fetcher_engine.context import require_tenant

from .refusals import refuses


def test_tenant_id_is_trimmed() -> None:
    assert TenantContext.new("  acme-7 ").tenant_id == "acme-7"


@pytest.mark.parametrize("tenant_id", ["a", "Acme_9", "0x", "a" * 256])
def test_valid_tenant_id(tenant_id: str) -> None:
    assert TenantContext.new(tenant_id).tenant_id == tenant_id


@pytest.mark.parametrize(
    "tenant_id",
    ["", "   ", "-a", "_a", "a b", "a\0b", "a\tb", "a/b", "á", "a" * 257, "a\nb", "٣"],
)
def test_invalid_tenant_id(tenant_id: str) -> None:
    with refuses(ErrorCategory.VALIDATION, "tenant id is invalid"):
        TenantContext.new(tenant_id)


@pytest.mark.parametrize("tenant_id", ["", " t1 ", "bad id", "t1\n"])
def test_value_built_by_hand_is_checked_as_it_stands(tenant_id: str) -> None:
    with refuses(ErrorCategory.VALIDATION, "tenant scope is required"):
        require_tenant(TenantContext(tenant_id))


def test_request_id_is_set_on_a_copy() -> None:
    original = TenantContext.new("t1")
    assert original.with_request_id(" r1 ") == TenantContext("t1", "r1")
    assert original.request_id == ""


def test_zero_and_multi_tenant() -> None:
    assert TenantContext("").is_zero
    assert not TenantContext("", "r1").is_zero
    assert TenantContext("t1").is_multi_tenant
    assert not TenantContext("").is_multi_tenant
