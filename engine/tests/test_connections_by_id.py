"""Keeping connections by the host's ids (spec 21.3)."""

from dataclasses import replace

from fetcher_engine import ConnectionListParams, ConnectionPatch, ErrorCategory, ProtectedCredential

from .keepers import NOT_FOUND, T1, T2, Keeper, with_an_id
from .loops import every_loop, run
from .refusals import refuses

pytestmark = every_loop


def test_by_id_finds_its_own_and_refuses_all_else_alike() -> None:
    keeper = Keeper()
    record = with_an_id(keeper)
    assert run(keeper.by_id.get(T1, "id-1")) == record
    texts = set()
    for call in (
        keeper.by_id.get(T2, "id-1"),
        keeper.by_id.get(T1, "id-2"),
        keeper.by_id.get(T1, ""),
        keeper.by_id.update(T1, "id-2", replace(record, id=""), ConnectionPatch()),
        keeper.by_id.update(T2, "id-1", record, ConnectionPatch()),
        keeper.by_id.delete(T1, "id-2"),
        keeper.by_id.delete(T2, "id-1"),
    ):
        with refuses(NOT_FOUND) as caught:
            run(call)
        texts.add(str(caught.value))
    assert texts == {"engine: [not_found] connection not found"}
    assert run(keeper.by_id.get(T1, "id-1")) == record


def test_by_id_update_stores_what_the_host_patched_and_moves_a_renamed_record() -> None:
    keeper = Keeper(encrypted=True)
    record = with_an_id(keeper)
    renamed = replace(record, config_name="d")
    patch = ConnectionPatch(port=99).with_password("pw")
    stored = run(keeper.by_id.update(T1, "id-1", renamed, patch))
    assert stored == replace(renamed, key_version="7")
    assert run(keeper.by_name.list(T1)) == (stored,)
    assert keeper.store.protected_credential(T1, "d") == ProtectedCredential(b"wp!", "7")


def test_by_id_update_of_another_record_is_refused() -> None:
    keeper = Keeper()
    record = with_an_id(keeper)
    with refuses(ErrorCategory.VALIDATION, "connection id mismatch"):
        run(keeper.by_id.update(T1, "id-2", record, ConnectionPatch()))


def test_by_id_delete_deletes() -> None:
    keeper = Keeper()
    with_an_id(keeper)
    run(keeper.by_id.delete(T1, "id-1"))
    assert run(keeper.by_name.list(T1)) == ()


def test_page_is_the_stores_own_and_the_filter_is_not_touched() -> None:
    keeper = Keeper()
    record = with_an_id(keeper)
    page = run(keeper.by_id.list_paged(T1, ConnectionListParams(object())))
    assert (page.items, page.total) == ((record,), 1)
