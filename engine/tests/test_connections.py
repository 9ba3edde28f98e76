"""Keeping connections by their names (spec 21.3)."""

from dataclasses import replace

import pytest

from fetcher_engine import ConnectionDescriptor, ConnectionPatch, ProtectedCredential, TenantContext

from .keepers import CONFLICT, NOT_FOUND, T1, T2, UNAVAILABLE, Keeper, a_connection
from .loops import every_loop, run
from .refusals import leaky, refuses

pytestmark = every_loop


def test_without_encrypted_persistence_the_password_is_not_stored() -> None:
    keeper = Keeper()
    created = run(keeper.by_name.create(T1, a_connection(password="pw")))
    assert created == run(keeper.by_name.get(T1, "c"))
    assert keeper.store.protected_credential(T1, "c") is None
    assert keeper.protector.calls == 0


def test_name_is_unique_within_its_tenant_and_a_refused_one_costs_no_sealing() -> None:
    keeper = Keeper(encrypted=True)
    run(keeper.by_name.create(T1, a_connection(password="pw")))
    with refuses(CONFLICT, "connection already exists"):
        run(keeper.by_name.create(T1, a_connection(password="pw")))
    assert keeper.protector.calls == 1


def test_loser_of_a_race_to_create_gets_the_same_conflict() -> None:
    keeper = Keeper()

    async def find_nothing(tenant: TenantContext, config_name: str) -> None: ...

    run(keeper.by_name.create(T1, a_connection()))
    keeper.store.find_connection = find_nothing  # type: ignore[method-assign]  # the race
    with refuses(CONFLICT, "connection already exists"):
        run(keeper.by_name.create(T1, a_connection()))


def test_tenants_have_their_own_names_and_host_attributes() -> None:
    keeper = Keeper()
    for tenant in (T1, T2):
        new = a_connection(host_attributes={"of": tenant.tenant_id})
        run(keeper.by_name.create(tenant, new))
    assert [run(keeper.by_name.get(tenant, "c")).host_attributes for tenant in (T1, T2)] == [
        {"of": "t1"},
        {"of": "t2"},
    ]


def test_password_is_sealed_and_the_descriptor_names_its_key() -> None:
    keeper = Keeper(encrypted=True)
    created = run(keeper.by_name.create(T1, a_connection(password="pw")))
    assert created.key_version == "7"
    assert keeper.store.protected_credential(T1, "c") == ProtectedCredential(b"wp!", "7")


def test_empty_password_is_not_sealed_on_create() -> None:
    keeper = Keeper(encrypted=True)
    run(keeper.by_name.create(T1, a_connection()))
    assert keeper.protector.calls == 0
    assert keeper.store.protected_credential(T1, "c") is None


def test_failed_sealing_stores_nothing_and_tells_nothing() -> None:
    keeper = Keeper(encrypted=True)
    keeper.protector.error = leaky()
    with refuses(UNAVAILABLE, "failed to protect connection credential") as caught:
        run(keeper.by_name.create(T1, a_connection(password="pw")))
    assert caught.value.unwrap() is None
    assert run(keeper.by_name.list(T1)) == ()


def test_unknown_name_and_another_tenants_name_are_told_apart_by_nothing() -> None:
    keeper = Keeper()
    run(keeper.by_name.create(T1, a_connection()))
    texts = set()
    for call in (
        keeper.by_name.get(T2, "c"),
        keeper.by_name.get(T1, "x"),
        keeper.by_name.delete(T1, "x"),
        keeper.by_name.update(T1, "x", ConnectionPatch(port=2)),
    ):
        with refuses(NOT_FOUND) as caught:
            run(call)
        texts.add(str(caught.value))
    assert texts == {"engine: [not_found] connection not found"}


def test_deleted_connection_is_gone() -> None:
    keeper = Keeper()
    run(keeper.by_name.create(T1, a_connection()))
    run(keeper.by_name.delete(T1, "c"))
    assert run(keeper.by_name.list(T1)) == ()
    with refuses(NOT_FOUND):
        run(keeper.by_name.get(T1, "c"))


def test_list_is_in_the_order_of_names_and_of_one_tenant() -> None:
    keeper = Keeper()
    for name in "zam":
        run(keeper.by_name.create(T1, a_connection(name)))
    run(keeper.by_name.create(T2, a_connection("b")))
    listed = run(keeper.by_name.list(T1))
    assert [descriptor.config_name for descriptor in listed] == ["a", "m", "z"]


def test_update_changes_what_the_patch_names_alone() -> None:
    keeper = Keeper()
    attributes = {"k": object()}
    old = run(keeper.by_name.create(T1, a_connection(host_attributes=attributes)))
    new = run(keeper.by_name.update(T1, "c", ConnectionPatch(port=9)))
    assert new == replace(old, port=9)
    assert run(keeper.by_name.get(T1, "c")).host_attributes is attributes


def test_update_of_every_field() -> None:
    keeper = Keeper()
    run(keeper.by_name.create(T1, a_connection()))
    fresh = {"n": 1}
    patch = ConnectionPatch(
        type="U",
        host="i",
        port=2,
        database_name="d",
        schema="s",
        username="u",
        ssl_mode="m",
        host_attributes=fresh,
    )
    assert run(keeper.by_name.update(T1, "c", patch)) == ConnectionDescriptor(
        config_name="c",
        type="U",
        host="i",
        port=2,
        database_name="d",
        schema="s",
        username="u",
        ssl_mode="m",
        host_attributes=fresh,
    )


def test_update_without_a_password_keeps_the_sealed_one() -> None:
    keeper = Keeper(encrypted=True)
    run(keeper.by_name.create(T1, a_connection(password="pw")))
    keeper.protector.key_version = "8"
    updated = run(keeper.by_name.update(T1, "c", ConnectionPatch(port=2)))
    assert (updated.key_version, keeper.protector.calls) == ("7", 1)
    assert keeper.store.protected_credential(T1, "c") == ProtectedCredential(b"wp!", "7")


@pytest.mark.parametrize(("password", "sealed"), [("new", b"wen!"), ("", b"!")])
def test_update_with_a_password_seals_it_anew(password: str, sealed: bytes) -> None:
    keeper = Keeper(encrypted=True)
    run(keeper.by_name.create(T1, a_connection(password="pw")))
    keeper.protector.key_version = "8"
    patch = ConnectionPatch().with_password(password)
    assert run(keeper.by_name.update(T1, "c", patch)).key_version == "8"
    assert keeper.store.protected_credential(T1, "c") == ProtectedCredential(sealed, "8")


def test_update_whose_sealing_fails_changes_nothing() -> None:
    keeper = Keeper(encrypted=True)
    old = run(keeper.by_name.create(T1, a_connection(password="pw")))
    keeper.protector.error = leaky()
    with refuses(UNAVAILABLE, "failed to protect connection credential"):
        run(keeper.by_name.update(T1, "c", ConnectionPatch(port=2).with_password("new")))
    assert run(keeper.by_name.get(T1, "c")) == old
