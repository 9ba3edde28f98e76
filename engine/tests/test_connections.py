"""Keeping connections, and the conflict gate (spec 21.3, 21.4)."""

from collections.abc import Callable, Coroutine, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from fetcher_engine import (
    ConnectionDescriptor,
    ConnectionInput,
    ConnectionListParams,
    ConnectionPatch,
    Engine,
    EngineError,
    ErrorCategory,
    ExtractionRequest,
    ProtectedCredential,
    SchemaSnapshot,
    SchemaValidationRequest,
    Secret,
    TenantContext,
)
from fetcher_engine.memory import (
    MemoryConnectionIdStore,
    MemoryConnectorFactory,
    MemoryRegistry,
    MemorySchemaCache,
    MemorySource,
    run_trampoline,
)

from .refusals import leaky, refuses

T1, T2 = TenantContext.new("t1"), TenantContext.new("t2")
NOT_FOUND, CONFLICT, UNAVAILABLE = (
    ErrorCategory.NOT_FOUND,
    ErrorCategory.CONFLICT,
    ErrorCategory.UNAVAILABLE,
)


def a_connection(name: str = "c", password: str = "", **changes: Any) -> ConnectionInput:
    return ConnectionInput(
        config_name=name, type="T", host="h", port=1, password=Secret(password), **changes
    )


class Protector:
    def __init__(self) -> None:
        self.calls = 0
        self.error: Exception | None = None
        self.key_version = "7"

    async def protect(self, tenant: TenantContext, plaintext: bytes) -> ProtectedCredential:
        self.calls += 1
        if self.error is not None:
            raise self.error
        return ProtectedCredential(plaintext[::-1] + b"!", self.key_version)


class Checker:
    def __init__(self, answer: bool | Exception) -> None:
        self.answer = answer
        self.asked: list[tuple[str, str]] = []

    async def has_active_executions(self, tenant: TenantContext, config_name: str) -> bool:
        self.asked.append((tenant.tenant_id, config_name))
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@dataclass
class Keeper:
    """An Engine that keeps connections, with what it keeps them in."""

    encrypted: bool = False
    checker: Checker | None = None
    cache: MemorySchemaCache | None = None
    store: MemoryConnectionIdStore = field(default_factory=MemoryConnectionIdStore)
    protector: Protector = field(default_factory=Protector)

    def __post_init__(self) -> None:
        self.engine = Engine(
            MemoryRegistry({"T": MemoryConnectorFactory(MemorySource())}),
            connection_store=self.store,
            credential_protector=self.protector,
            encrypted_persistence=self.encrypted,
            active_execution_checker=self.checker,
            schema_cache=self.cache,
        )
        self.by_name = self.engine.connections
        self.by_id = self.engine.connections_by_id


def test_without_encrypted_persistence_the_password_is_not_stored() -> None:
    keeper = Keeper()
    created = run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    assert created == run_trampoline(keeper.by_name.get(T1, "c"))
    assert keeper.store.protected_credential(T1, "c") is None
    assert keeper.protector.calls == 0


def test_name_is_unique_within_its_tenant_and_a_refused_one_costs_no_sealing() -> None:
    keeper = Keeper(encrypted=True)
    run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    with refuses(CONFLICT, "connection already exists"):
        run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    assert keeper.protector.calls == 1


def test_loser_of_a_race_to_create_gets_the_same_conflict() -> None:
    keeper = Keeper()

    async def find_nothing(tenant: TenantContext, config_name: str) -> None: ...

    run_trampoline(keeper.by_name.create(T1, a_connection()))
    keeper.store.find_connection = find_nothing  # type: ignore[method-assign]  # the race
    with refuses(CONFLICT, "connection already exists"):
        run_trampoline(keeper.by_name.create(T1, a_connection()))


def test_tenants_have_their_own_names_and_host_attributes() -> None:
    keeper = Keeper()
    for tenant in (T1, T2):
        new = a_connection(host_attributes={"of": tenant.tenant_id})
        run_trampoline(keeper.by_name.create(tenant, new))
    assert [
        run_trampoline(keeper.by_name.get(tenant, "c")).host_attributes for tenant in (T1, T2)
    ] == [{"of": "t1"}, {"of": "t2"}]


def test_password_is_sealed_and_the_descriptor_names_its_key() -> None:
    keeper = Keeper(encrypted=True)
    created = run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    assert created.key_version == "7"
    assert keeper.store.protected_credential(T1, "c") == ProtectedCredential(b"wp!", "7")


def test_empty_password_is_not_sealed_on_create() -> None:
    keeper = Keeper(encrypted=True)
    run_trampoline(keeper.by_name.create(T1, a_connection()))
    assert keeper.protector.calls == 0
    assert keeper.store.protected_credential(T1, "c") is None


def test_failed_sealing_stores_nothing_and_tells_nothing() -> None:
    keeper = Keeper(encrypted=True)
    keeper.protector.error = leaky()
    with refuses(UNAVAILABLE, "failed to protect connection credential") as caught:
        run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    assert caught.value.unwrap() is None
    assert run_trampoline(keeper.by_name.list(T1)) == ()


def test_unknown_name_and_another_tenants_name_are_told_apart_by_nothing() -> None:
    keeper = Keeper()
    run_trampoline(keeper.by_name.create(T1, a_connection()))
    texts = set()
    for call in (
        keeper.by_name.get(T2, "c"),
        keeper.by_name.get(T1, "x"),
        keeper.by_name.delete(T1, "x"),
        keeper.by_name.update(T1, "x", ConnectionPatch(port=2)),
    ):
        with refuses(NOT_FOUND) as caught:
            run_trampoline(call)
        texts.add(str(caught.value))
    assert texts == {"engine: [not_found] connection not found"}


def test_deleted_connection_is_gone() -> None:
    keeper = Keeper()
    run_trampoline(keeper.by_name.create(T1, a_connection()))
    run_trampoline(keeper.by_name.delete(T1, "c"))
    assert run_trampoline(keeper.by_name.list(T1)) == ()
    with refuses(NOT_FOUND):
        run_trampoline(keeper.by_name.get(T1, "c"))


def test_list_is_in_the_order_of_names_and_of_one_tenant() -> None:
    keeper = Keeper()
    for name in "zam":
        run_trampoline(keeper.by_name.create(T1, a_connection(name)))
    run_trampoline(keeper.by_name.create(T2, a_connection("b")))
    listed = run_trampoline(keeper.by_name.list(T1))
    assert [descriptor.config_name for descriptor in listed] == ["a", "m", "z"]


def test_update_changes_what_the_patch_names_alone() -> None:
    keeper = Keeper()
    attributes = {"k": object()}
    old = run_trampoline(keeper.by_name.create(T1, a_connection(host_attributes=attributes)))
    new = run_trampoline(keeper.by_name.update(T1, "c", ConnectionPatch(port=9)))
    assert new == replace(old, port=9)
    assert run_trampoline(keeper.by_name.get(T1, "c")).host_attributes is attributes


def test_update_of_every_field() -> None:
    keeper = Keeper()
    run_trampoline(keeper.by_name.create(T1, a_connection()))
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
    assert run_trampoline(keeper.by_name.update(T1, "c", patch)) == ConnectionDescriptor(
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
    run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    keeper.protector.key_version = "8"
    updated = run_trampoline(keeper.by_name.update(T1, "c", ConnectionPatch(port=2)))
    assert (updated.key_version, keeper.protector.calls) == ("7", 1)
    assert keeper.store.protected_credential(T1, "c") == ProtectedCredential(b"wp!", "7")


@pytest.mark.parametrize(("password", "sealed"), [("new", b"wen!"), ("", b"!")])
def test_update_with_a_password_seals_it_anew(password: str, sealed: bytes) -> None:
    keeper = Keeper(encrypted=True)
    run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    keeper.protector.key_version = "8"
    patch = ConnectionPatch().with_password(password)
    assert run_trampoline(keeper.by_name.update(T1, "c", patch)).key_version == "8"
    assert keeper.store.protected_credential(T1, "c") == ProtectedCredential(sealed, "8")


def test_update_whose_sealing_fails_changes_nothing() -> None:
    keeper = Keeper(encrypted=True)
    old = run_trampoline(keeper.by_name.create(T1, a_connection(password="pw")))
    keeper.protector.error = leaky()
    with refuses(UNAVAILABLE, "failed to protect connection credential"):
        run_trampoline(keeper.by_name.update(T1, "c", ConnectionPatch(port=2).with_password("new")))
    assert run_trampoline(keeper.by_name.get(T1, "c")) == old


def with_an_id(keeper: Keeper) -> ConnectionDescriptor:
    record = ConnectionDescriptor(config_name="c", type="T", id="id-1")
    keeper.store.put(T1, record)
    return record


def test_by_id_finds_its_own_and_refuses_all_else_alike() -> None:
    keeper = Keeper()
    record = with_an_id(keeper)
    assert run_trampoline(keeper.by_id.get(T1, "id-1")) == record
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
            run_trampoline(call)
        texts.add(str(caught.value))
    assert texts == {"engine: [not_found] connection not found"}
    assert run_trampoline(keeper.by_id.get(T1, "id-1")) == record


def test_by_id_update_stores_what_the_host_patched_and_moves_a_renamed_record() -> None:
    keeper = Keeper(encrypted=True)
    record = with_an_id(keeper)
    renamed = replace(record, config_name="d")
    patch = ConnectionPatch(port=99).with_password("pw")
    stored = run_trampoline(keeper.by_id.update(T1, "id-1", renamed, patch))
    assert stored == replace(renamed, key_version="7")
    assert run_trampoline(keeper.by_name.list(T1)) == (stored,)
    assert keeper.store.protected_credential(T1, "d") == ProtectedCredential(b"wp!", "7")


def test_by_id_update_of_another_record_is_refused() -> None:
    keeper = Keeper()
    record = with_an_id(keeper)
    with refuses(ErrorCategory.VALIDATION, "connection id mismatch"):
        run_trampoline(keeper.by_id.update(T1, "id-2", record, ConnectionPatch()))


def test_by_id_delete_deletes() -> None:
    keeper = Keeper()
    with_an_id(keeper)
    run_trampoline(keeper.by_id.delete(T1, "id-1"))
    assert run_trampoline(keeper.by_name.list(T1)) == ()


def test_page_is_the_stores_own_and_the_filter_is_not_touched() -> None:
    keeper = Keeper()
    record = with_an_id(keeper)
    page = run_trampoline(keeper.by_id.list_paged(T1, ConnectionListParams(object())))
    assert (page.items, page.total) == ((record,), 1)


Call = Callable[[Keeper, TenantContext], Coroutine[Any, Any, object]]
RECORD = ConnectionDescriptor(config_name="c", type="T", id="id-1")
REQUEST = ExtractionRequest(mapped_fields={"c": {"t": ["f"]}})
OPERATIONS: dict[str, Call] = {
    "create": lambda k, t: k.by_name.create(t, a_connection()),
    "get": lambda k, t: k.by_name.get(t, "c"),
    "list": lambda k, t: k.by_name.list(t),
    "update": lambda k, t: k.by_name.update(t, "c", ConnectionPatch()),
    "delete": lambda k, t: k.by_name.delete(t, "c"),
    "get_by_id": lambda k, t: k.by_id.get(t, "id-1"),
    "list_paged": lambda k, t: k.by_id.list_paged(t, ConnectionListParams()),
    "update_by_id": lambda k, t: k.by_id.update(t, "id-1", RECORD, ConnectionPatch()),
    "delete_by_id": lambda k, t: k.by_id.delete(t, "id-1"),
    "test": lambda k, t: k.engine.test_connection(t, "c"),
    "discover": lambda k, t: k.engine.discover_schema(t, "c"),
    "discover_fresh": lambda k, t: k.engine.discover_schema_fresh(t, "c"),
    "validate": lambda k, t: k.engine.validate_schema(
        t, SchemaValidationRequest.of({"c": {"t": ["f"]}})
    ),
    "plan": lambda k, t: k.engine.plan_extraction(t, REQUEST),
}


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_exception_of_a_store_leaves_as_unavailable_with_the_original_to_unwrap(
    operation: Call,
) -> None:
    keeper = Keeper()
    keeper.store.error = leaky(OSError)
    with refuses(UNAVAILABLE, "connection store unavailable") as caught:
        run_trampoline(operation(keeper, T1))
    assert caught.value.unwrap() is keeper.store.error


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_engine_error_of_a_store_passes(operation: Call) -> None:
    keeper = Keeper()
    keeper.store.error = EngineError(ErrorCategory.FORBIDDEN, "not yours")
    with refuses(ErrorCategory.FORBIDDEN) as caught:
        run_trampoline(operation(keeper, T1))
    assert caught.value is keeper.store.error


@pytest.mark.parametrize("tenant_id", ["", "bad id"])
@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_malformed_tenant_reaches_no_store(operation: Call, tenant_id: str) -> None:
    keeper = Keeper()
    with refuses(ErrorCategory.VALIDATION, "tenant scope is required"):
        run_trampoline(operation(keeper, TenantContext(tenant_id)))
    assert keeper.store.calls == []


class Spans:
    """Records each span when it ends, with the category it ended with."""

    def __init__(self) -> None:
        self.ended: list[tuple[str, str]] = []

    def start_span(self, operation: str) -> AbstractContextManager[object]:
        @contextmanager
        def span() -> Iterator[None]:
            category = ""
            try:
                yield
            except EngineError as error:
                category = error.category
                raise
            finally:
                self.ended.append((operation, str(category)))

        return span()


@pytest.mark.parametrize(
    ("operation", "name"),
    [
        ("create", "engine.connection.create"),
        ("get", "engine.connection.get"),
        ("list", "engine.connection.list"),
        ("update", "engine.connection.update"),
        ("delete", "engine.connection.delete"),
        ("get_by_id", "engine.connection.get_by_id"),
        ("list_paged", "engine.connection.list_paged"),
        ("update_by_id", "engine.connection.update_by_id"),
        ("delete_by_id", "engine.connection.delete_by_id"),
        ("test", "engine.connection.test"),
        ("discover", "engine.schema.discover"),
        ("discover_fresh", "engine.schema.discover_fresh"),
        ("validate", "engine.schema.validate"),
        ("plan", "engine.extraction.plan"),
    ],
)
def test_every_operation_has_one_span_that_ends_with_the_failures_category(
    operation: str, name: str
) -> None:
    spans = Spans()
    keeper = Keeper()
    keeper.engine = Engine(MemoryRegistry(), connection_store=keeper.store, observability=spans)
    keeper.by_name = keeper.engine.connections
    keeper.by_id = keeper.engine.connections_by_id
    keeper.store.error = leaky()
    with refuses(UNAVAILABLE):
        run_trampoline(OPERATIONS[operation](keeper, T1))
    assert spans.ended == [(name, "unavailable")]


def test_validation_within_planning_has_a_span_of_its_own() -> None:
    spans = Spans()
    source = MemorySource.of_rows({"t": [{"f": 1}]})
    store = MemoryConnectionIdStore()
    store.put(T1, RECORD)
    engine = Engine(
        MemoryRegistry({"T": MemoryConnectorFactory(source)}),
        connection_store=store,
        observability=spans,
    )
    plan = run_trampoline(engine.plan_extraction(T1, REQUEST))
    run_trampoline(engine.execute_extraction(plan))
    assert spans.ended == [
        ("engine.schema.validate", ""),
        ("engine.extraction.plan", ""),
        ("engine.extraction.execute", ""),
    ]


def test_span_of_a_success_ends_without_a_category() -> None:
    spans = Spans()
    engine = Engine(
        MemoryRegistry(), connection_store=MemoryConnectionIdStore(), observability=spans
    )
    run_trampoline(engine.connections.create(T1, a_connection()))
    run_trampoline(engine.connections.authorize_access(T1))
    run_trampoline(engine.connections.check_active_executions(T1, "c"))
    assert spans.ended == [
        ("engine.connection.create", ""),
        ("engine.connection.authorize_access", ""),
        ("engine.connection.check_active_executions", ""),
    ]


# --- the conflict gate -------------------------------------------------------------------------


def with_checker(answer: bool | Exception) -> tuple[Keeper, Checker, ConnectionDescriptor]:
    checker = Checker(answer)
    keeper = Keeper(checker=checker)
    return keeper, checker, run_trampoline(keeper.by_name.create(T1, a_connection()))


def test_connection_in_use_is_neither_changed_nor_deleted() -> None:
    keeper, checker, old = with_checker(True)
    for call in (
        keeper.by_name.update(T1, "c", ConnectionPatch(port=2)),
        keeper.by_name.delete(T1, "c"),
        keeper.by_name.check_active_executions(T1, "c"),
    ):
        with refuses(CONFLICT, "connection has active executions"):
            run_trampoline(call)
    assert run_trampoline(keeper.by_name.get(T1, "c")) == old
    assert checker.asked == [("t1", "c")] * 3


def test_idle_connection_is_changed_and_deleted() -> None:
    keeper, _checker, _old = with_checker(False)
    run_trampoline(keeper.by_name.check_active_executions(T1, "c"))
    assert run_trampoline(keeper.by_name.update(T1, "c", ConnectionPatch(port=2))).port == 2
    run_trampoline(keeper.by_name.delete(T1, "c"))
    assert run_trampoline(keeper.by_name.list(T1)) == ()


def test_checker_that_fails_stops_the_write_without_a_trace() -> None:
    keeper, _checker, old = with_checker(leaky())
    for call in (
        keeper.by_name.update(T1, "c", ConnectionPatch(port=2)),
        keeper.by_name.delete(T1, "c"),
    ):
        with refuses(UNAVAILABLE, "failed to check for active executions"):
            run_trampoline(call)
    assert run_trampoline(keeper.by_name.get(T1, "c")) == old


def test_checker_that_fails_in_the_gate_alone_shows_its_own_exception() -> None:
    keeper, checker, _old = with_checker(leaky(OSError))
    with pytest.raises(OSError) as caught:
        run_trampoline(keeper.by_name.check_active_executions(T1, "c"))
    assert caught.value is checker.answer


def test_checker_is_not_asked_about_a_connection_that_is_missing() -> None:
    keeper, checker, _old = with_checker(True)
    for call in (
        keeper.by_name.update(T1, "x", ConnectionPatch()),
        keeper.by_name.delete(T1, "x"),
    ):
        with refuses(NOT_FOUND):
            run_trampoline(call)
    assert checker.asked == []


@pytest.mark.parametrize("tenant_id", ["", "bad id"])
def test_gate_and_access_check_judge_the_tenant(tenant_id: str) -> None:
    keeper, checker, _old = with_checker(True)
    for call in (
        keeper.by_name.check_active_executions(TenantContext(tenant_id), "c"),
        keeper.by_name.authorize_access(TenantContext(tenant_id)),
    ):
        with refuses(ErrorCategory.VALIDATION, "tenant scope is required"):
            run_trampoline(call)
    assert checker.asked == []


# --- stale schemas -----------------------------------------------------------------------------


@pytest.mark.parametrize("operation", ["create", "update", "delete", "update_by_id"])
def test_writing_a_connection_forgets_its_cached_schema(operation: str) -> None:
    cache = MemorySchemaCache()
    keeper = Keeper(cache=cache)
    if operation != "create":
        keeper.store.put(T1, RECORD)
    run_trampoline(cache.put_schema(T1, SchemaSnapshot("c"), "f"))
    run_trampoline(OPERATIONS[operation](keeper, T1))
    assert cache.stored(T1, "c") is None


def test_cache_that_cannot_forget_stops_no_write() -> None:
    class Stubborn(MemorySchemaCache):
        async def invalidate_schema(self, tenant: TenantContext, config_name: str) -> None:
            raise leaky()

    keeper = Keeper(cache=Stubborn())
    run_trampoline(keeper.by_name.create(T1, a_connection()))
    assert len(run_trampoline(keeper.by_name.list(T1))) == 1
