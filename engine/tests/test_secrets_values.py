"""The types that carry secrets show none, and what leaves a success holds none."""

import copy
import json
import pickle
import pprint
from dataclasses import asdict, replace

import pytest

from fetcher_engine import (
    ConnectionDescriptor,
    ConnectionListParams,
    ConnectionPage,
    DirectResult,
    EncodedBatch,
    ExtractionResult,
    ProtectedCredential,
    ResultIntegrity,
    RowBatch,
    Secret,
    StreamRequest,
)
from fetcher_engine.timestamps import utc_now

from .faulty_ports import RECORD, TENANT, World
from .leaks import SECRET, shows_no_secret
from .loops import every_loop, run
from .refusals import SENTINEL
from .secret_faults import outcome_of
from .secret_operations import FILTERS, NEW, OPERATIONS, PATCH, PLAN, REQUEST, STEP

DIRECT = DirectResult(
    data=SENTINEL.encode(),
    row_count=1,
    integrity=ResultIntegrity(),
    completed_at=utc_now(),
)
CARRIERS = [
    NEW,
    PATCH,
    RECORD,
    NEW.password,
    NEW.to_descriptor(),
    PATCH.apply(RECORD),
    ConnectionPage((RECORD,), 1),
    ConnectionListParams(SENTINEL),
    ProtectedCredential(SENTINEL.encode(), "7"),
    StreamRequest(config_name="c", tables=STEP.fields, filters=FILTERS),
    RowBatch("t", [{"x": SENTINEL}]),
    EncodedBatch("t", SENTINEL.encode(), 1),
]
PLANNED = [REQUEST, STEP, PLAN, DIRECT]
"""Their projections hold conditions or the document by intention."""


@pytest.mark.parametrize("value", CARRIERS, ids=lambda value: type(value).__name__)
def test_carrier_of_a_secret_shows_none(value: object) -> None:
    shows_no_secret(value)
    shows_no_secret(copy.copy(value))
    shows_no_secret([value])
    assert SECRET not in pprint.pformat(value)
    assert SECRET not in f"{value!s} {value!r} {[value]!s} { {'of': value} }"


@pytest.mark.parametrize("value", PLANNED, ids=lambda value: type(value).__name__)
def test_text_form_of_what_holds_conditions_or_rows_does_not_show_them(value: object) -> None:
    result = (
        ExtractionResult(state=None, row_counts={}, direct=value)  # type: ignore[arg-type]  # not looked at
        if isinstance(value, DirectResult)
        else value
    )
    assert SECRET not in f"{value} {value!r} {result!r}" + pprint.pformat(value)


@pytest.mark.parametrize("value", [NEW, PATCH, NEW.password])
def test_password_is_never_pickled(value: object) -> None:
    with pytest.raises(TypeError, match=r"^a secret cannot be pickled$"):
        pickle.dumps(value)


def test_dictionary_of_an_input_keeps_its_password_to_itself() -> None:
    fields = asdict(replace(NEW, host_attributes={}))
    assert SECRET not in str(fields)
    assert SECRET not in json.dumps(fields, default=str)
    with pytest.raises(TypeError):
        json.dumps(fields)


def test_comparing_passwords_that_are_no_unicode_does_not_fail() -> None:
    odd = f"{SENTINEL}\ud800"
    assert Secret(odd) == Secret(odd)
    assert Secret(odd) != Secret(SENTINEL)


@every_loop
@pytest.mark.parametrize("operation", OPERATIONS)
def test_success_shows_and_prints_no_secret(
    operation: str, capsys: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> None:
    world = World()
    assert outcome_of(world, operation) is None
    for state in world.states:
        shows_no_secret(state)
    assert capsys.readouterr() == ("", "")
    assert not recwarn.list


@every_loop
@pytest.mark.parametrize("name", ["new", "c"])
def test_password_goes_to_the_protector_alone(name: str) -> None:
    world = World()
    run(lambda: OPERATIONS["create" if name == "new" else "update"](world))
    credential = world.store.protected_credential(TENANT, name)
    assert credential == ProtectedCredential(b"sealed " + SENTINEL.encode(), "7")
    stored = run(world.store.find_connection(TENANT, name))
    assert isinstance(stored, ConnectionDescriptor)
    assert stored.key_version == "7"
    assert SECRET not in str(asdict(replace(stored, host_attributes={})))


@every_loop
def test_connection_that_is_refused_costs_no_word_of_its_password() -> None:
    world = World()
    twice = replace(NEW, config_name="c")
    with pytest.raises(Exception, match=r"^engine: \[conflict\] connection already exists$") as e:
        run(lambda: world.engine.connections.create(TENANT, twice))
    assert SECRET not in str(vars(e.value))
    assert "protector.protect" not in world.reached
