"""Whatever an answer says: a value or a named error, and never a secret in a text."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from fetcher.adapters.http_client import HttpAnswer
from fetcher.domain.errors import PortError
from fetcher.domain.tenants import TenantConfig, TenantError, TenantsUnavailable
from fetcher.tenancy.manager_answers import ServiceSources, service_sources, tenant_config
from fetcher.tenancy.manager_words import Value, Word, active_in, connections_in
from tests.unit.tenancy.answers import BROKER, MONGO, POSTGRESQL, SOURCE_MONGO, an_answer

CANARY = "c4n4ry"
"""In what is told and is no secret: it is in no error, but may be in a place."""
SECRET = "s3cr3t-0f-4-t3n4nt"

scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=20).map(lambda text: text + CANARY)
    | st.sampled_from(
        ["", "mongodb://", f"mongodb://u:{SECRET}@[", f"mongodb+srv://h/?tls={CANARY}"]
    )
)
names = st.sampled_from(
    [
        *an_answer(),
        *MONGO,
        *BROKER,
        *POSTGRESQL,
        "fetcher",
        "fetcher-worker",
        "mongodb",
        "rabbitmq",
        "postgresql",
    ]
)
values = st.recursive(
    scalars,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(names, below, max_size=5),
    max_leaves=25,
)


def places(place: dict[str, Any]) -> st.SearchStrategy[dict[str, Any]]:
    """A usable one, some of whose members are anything."""
    secret = {"password": SECRET, "sslkey": SECRET}
    changes = st.dictionaries(st.sampled_from(sorted(place)), values, max_size=2)
    return changes.map(lambda changed: place | secret | changed)


modules = st.fixed_dictionaries(
    {}, optional={"mongodb": places(MONGO | SOURCE_MONGO), "postgresql": places(POSTGRESQL)}
)
near_answers = st.fixed_dictionaries(
    {"id": st.just("acme-7") | scalars, "databases": st.dictionaries(names, modules) | values},
    optional={
        "service": st.just("fetcher") | scalars,
        "status": st.just("active") | scalars,
        "isolationMode": st.sampled_from(["", "schema", "isolated"]) | values,
        "messaging": st.fixed_dictionaries({"rabbitmq": places(BROKER)}) | values,
        "rabbitmq": st.dictionaries(names, places(BROKER)) | values,
    },
)
bodies = (near_answers | values).map(lambda value: json.dumps(value).encode()) | st.binary()
statuses = st.sampled_from([200, 200, 200, 200, 204, 302, 401, 403, 404, 429])


def config_in(body: bytes) -> TenantConfig:
    return tenant_config(body, tenant_id="acme-7", broker_module="fetcher-worker")


def sources_in(body: bytes) -> ServiceSources:
    return service_sources(body, tenant_id="acme-7", service="fetcher")


def check(said: Value[Any] | Word) -> None:
    if isinstance(said, Word):
        assert isinstance(said.error, TenantError | TenantsUnavailable)
        assert type(said.error) is not PortError
        told = f"{said!r}{said.error}{vars(said.error)}"
        assert CANARY not in told
        assert SECRET not in told


@given(statuses, bodies)
def test_any_answer_is_a_configuration_or_a_named_error(status: int, body: bytes) -> None:
    said = connections_in(HttpAnswer(status=status, body=body), "acme-7", config_in)
    check(said)
    if isinstance(said, Value):
        config = said.value
        assert config.tenant_id == "acme-7"
        assert config.broker.port in range(1, 65536)
        assert (config.database.port or 1) in range(1, 65536)
        assert 1 <= config.database.max_pool_size <= 1000
        assert SECRET not in repr(config)


@given(statuses, bodies)
def test_any_answer_is_sources_or_a_named_error(status: int, body: bytes) -> None:
    said = connections_in(HttpAnswer(status=status, body=body), "acme-7", sources_in)
    check(said)
    for place in said.value.places.values() if isinstance(said, Value) else ():
        assert SECRET not in repr(place)
        assert not isinstance(place, str) or CANARY not in place


@given(statuses, bodies | st.lists(values).map(lambda value: json.dumps(value).encode()))
def test_any_answer_is_a_list_or_a_named_error(status: int, body: bytes) -> None:
    check(active_in(HttpAnswer(status=status, body=body)))
