"""What a tenant may be called, and what its things are called after it."""

import pytest

from fetcher.domain.ids import new_job_id
from fetcher.domain.result_keys import attempt_keys, result_key
from fetcher.domain.tenants import NO_TENANT, Tenant, is_tenant_id

NO_IDS = [
    *("-a", "_a", "a/b", "a:b", "a\\b", "a%2f", "é1", "a\N{SUPERSCRIPT ONE}", ".", ".."),
    *("a" * 257, " a", "a ", "a\n", "a\x00"),
]


@pytest.mark.parametrize("tenant_id", ["a", "0", "A_9-z", "a" * 256])
def test_ids_of_the_allowed_form(tenant_id: str) -> None:
    assert is_tenant_id(tenant_id)
    assert Tenant(tenant_id).id == tenant_id


@pytest.mark.parametrize("tenant_id", NO_IDS)
def test_no_tenant_has_another_id(tenant_id: str) -> None:
    assert not is_tenant_id(tenant_id)
    with pytest.raises(ValueError, match=r"^the tenant's id has an invalid form$"):
        Tenant(tenant_id)


def test_no_id_is_no_tenant() -> None:
    assert not is_tenant_id("")
    assert Tenant("") == NO_TENANT


@pytest.mark.parametrize(
    ("tenant", "key_prefix", "key"),
    [
        (Tenant("t1"), "fx/", "fx/t1/external-data/{job}.json"),
        (Tenant("t1"), "", "t1/external-data/{job}.json"),
        (NO_TENANT, "fx/", "fx/external-data/{job}.json"),
        (NO_TENANT, "", "external-data/{job}.json"),
    ],
)
def test_a_tenants_results_lie_in_a_folder_of_its_own(
    tenant: Tenant, key_prefix: str, key: str
) -> None:
    job_id = new_job_id()
    first = key.format(job=job_id)
    prefix = tenant.object_prefix(key_prefix)
    assert result_key(prefix, job_id, 1) == first
    assert attempt_keys(prefix, job_id, 2) == [first, key.format(job=f"{job_id}.2")]


def test_what_a_tenant_is_called_elsewhere() -> None:
    acme = Tenant("acme")
    assert (acme.engine_id, acme.event_id) == ("acme", "acme")
    assert (NO_TENANT.engine_id, NO_TENANT.event_id) == ("default", "single-tenant")
    assert (acme.limiter_key("k"), NO_TENANT.limiter_key("k")) == ("tenant:acme:k", "k")
