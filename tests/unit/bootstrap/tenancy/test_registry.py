"""No two tenants that are open have the same database or virtual host."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from fetcher.bootstrap.tenancy.registry import OpenTenants
from fetcher.domain.tenants import BrokerPlace, MongoPlace, TenantConfig, TenantNotConfigured

DATABASE = MongoPlace(host="m.test", port=27017, database="one", user="u", password="canary-1")
BROKER = BrokerPlace(host="b.test", port=5672, vhost="one", user="u", password="canary-2")
ONE = TenantConfig(tenant_id="one", database=DATABASE, broker=BROKER)
OTHER = TenantConfig(
    tenant_id="other",
    database=replace(DATABASE, database="other"),
    broker=replace(BROKER, vhost="other"),
)


@pytest.mark.parametrize(
    ("changed", "what"),
    [
        (replace(OTHER, database=DATABASE), "database"),
        (replace(OTHER, database=replace(DATABASE, user="v", host="M.test")), "database"),
        (
            replace(OTHER, database=replace(DATABASE, uri="mongodb://v:w@m.test:27017/x?tls=true")),
            "database",
        ),
        (replace(OTHER, database=replace(DATABASE, uri="mongodb://m.test/?w=1")), "database"),
        (replace(OTHER, database=replace(DATABASE, uri="mongodb://m.test?w=1")), "database"),
        (replace(OTHER, database=replace(DATABASE, uri="mongodb://n.test,m.test")), "database"),
        (replace(OTHER, broker=BROKER), "virtual host"),
        (replace(OTHER, broker=replace(BROKER, user="v", host="B.test")), "virtual host"),
    ],
)
def test_a_place_of_an_open_tenant_is_refused_to_another(changed: TenantConfig, what: str) -> None:
    tenants = OpenTenants()
    with tenants.owning_places(ONE):
        with pytest.raises(TenantNotConfigured) as refused, tenants.owning_places(changed):
            pytest.fail("it was opened")
        assert (
            str(refused.value) == f"tenant service not configured: its {what} is another tenant's"
        )
        with tenants.owning_places(OTHER):
            pass
    with tenants.owning_places(changed):
        pass
    assert tenants._owners == {}


def test_one_server_of_several_is_enough() -> None:
    tenants = OpenTenants()
    set_of_three = replace(DATABASE, uri="mongodb://u:w@[::1],m.test:27017,n.test:1/?w=1")
    with tenants.owning_places(replace(ONE, database=set_of_three)):
        for uri in ("mongodb://[::1]:27017", "mongodb://n.test:1,m.test:9"):
            changed = replace(OTHER, database=replace(DATABASE, uri=uri))
            with pytest.raises(TenantNotConfigured), tenants.owning_places(changed):
                pytest.fail("it was opened")
    assert tenants._owners == {}


def test_an_address_in_brackets_is_the_same_server() -> None:
    tenants = OpenTenants()
    with tenants.owning_places(replace(ONE, database=replace(DATABASE, host="::1"))):
        changed = replace(OTHER, database=replace(DATABASE, uri="mongodb://u:w@[::1]/?w=1"))
        with pytest.raises(TenantNotConfigured), tenants.owning_places(changed):
            pytest.fail("it was opened")


def test_a_tenant_that_is_renewed_may_keep_its_places() -> None:
    tenants = OpenTenants()
    with tenants.owning_places(ONE):
        with tenants.owning_places(replace(ONE, broker=replace(BROKER, password="new"))):
            pass
        with (
            pytest.raises(TenantNotConfigured),
            tenants.owning_places(replace(OTHER, database=DATABASE)),
        ):
            pytest.fail("it was opened")


def test_what_is_told_of_all_never_loses_what_one_has_counted() -> None:
    tenants = OpenTenants()

    def tenant(dropped: int) -> Any:
        return cast(
            "Any", SimpleNamespace(hints_dropped={"relay": dropped}, session_use=(dropped, 1))
        )

    with tenants.holding(tenant(2)):
        with tenants.holding(tenant(5)):
            assert tenants.hints_dropped() == {"relay": 7}
            assert tenants.session_use() == (7, 2)
        assert tenants.hints_dropped() == {"relay": 7}
        assert tenants.session_use() == (2, 1)
    assert tenants.hints_dropped() == {"relay": 7}
