"""Connections as values, and their secret (spec 4.2 to 4.5, 21.1)."""

import copy
import dataclasses
import json
import pickle
import pprint

import pytest

from fetcher_engine import (
    ConnectionDescriptor,
    ConnectionInput,
    ConnectionPatch,
    ErrorCategory,
    ProtectedCredential,
    Secret,
)

from .refusals import refuses

INPUT = ConnectionInput(
    config_name="ledger-pg",
    type="POSTGRESQL",
    host="db7.example.net",
    port=5432,
    database_name="ledger",
    username="reader",
    ssl_mode="require",
    password=Secret("hunter2"),
    host_attributes={"pem": "k3y"},
)


def test_password_shows_nowhere_but_through_its_accessor() -> None:
    shown = [
        str(INPUT),
        repr(INPUT),
        f"{INPUT}",
        f"{INPUT.password:>12}",
        json.dumps(INPUT.to_public_dict()),
        str(dataclasses.asdict(INPUT)),
        pprint.pformat(INPUT),
        repr(copy.deepcopy(INPUT.password)),
    ]
    assert "hunter2" not in "".join(shown)
    assert INPUT.to_public_dict()["password"] == "[REDACTED]"
    assert INPUT.password.reveal() == "hunter2"


def test_secret_cannot_be_pickled_hashed_or_ordered() -> None:
    with pytest.raises(TypeError, match="cannot be pickled"):
        pickle.dumps(Secret("hunter2"))
    with pytest.raises(TypeError):
        hash(Secret("hunter2"))


def test_secrets_compare_by_value() -> None:
    assert Secret("ü") == Secret("ü")
    assert Secret("a") != Secret("b")
    assert Secret("a") != "a"
    assert not Secret()


def test_no_password_is_an_empty_text_in_json() -> None:
    bare = dataclasses.replace(INPUT, password=Secret())
    assert not bare.has_password
    assert bare.to_public_dict()["password"] == ""


def test_descriptor_carries_host_attributes_by_reference_and_shows_them_nowhere() -> None:
    descriptor = INPUT.to_descriptor()
    assert descriptor.host_attributes is INPUT.host_attributes
    shown = repr(descriptor) + json.dumps(descriptor.to_public_dict())
    assert "k3y" not in shown
    assert "pem" not in shown


def test_json_of_a_descriptor() -> None:
    descriptor = dataclasses.replace(INPUT.to_descriptor(), key_version="3")
    assert descriptor.to_public_dict() == {
        "configName": "ledger-pg",
        "type": "POSTGRESQL",
        "host": "db7.example.net",
        "port": 5432,
        "databaseName": "ledger",
        "userName": "reader",
        "sslMode": "require",
        "keyVersion": "3",
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"config_name": " "}, "connection config name is required"),
        ({"type": ""}, "connection type is required"),
        ({"port": -1}, "connection port is invalid"),
        ({"port": 65536}, "connection port is invalid"),
        ({"port": True}, "connection port is invalid"),
    ],
)
def test_input_that_cannot_be_a_connection_is_refused(
    changes: dict[str, object], message: str
) -> None:
    with refuses(ErrorCategory.VALIDATION, message):
        dataclasses.replace(INPUT, **changes).validate()  # type: ignore[arg-type]  # wrong on purpose


def test_patch_changes_what_is_set_and_an_empty_text_clears() -> None:
    old = dataclasses.replace(INPUT.to_descriptor(), id="7", schema="public")
    patched = ConnectionPatch(port=5433, schema="").apply(old)
    assert patched == dataclasses.replace(old, port=5433, schema="")
    assert patched.host_attributes is old.host_attributes


def test_patch_replaces_host_attributes_as_a_whole() -> None:
    assert ConnectionPatch(host_attributes={}).apply(INPUT.to_descriptor()).host_attributes == {}


def test_empty_password_of_a_patch_is_a_password() -> None:
    patch = ConnectionPatch()
    assert not patch.has_password
    assert patch.with_password("").has_password
    assert not patch.has_password


@pytest.mark.parametrize("patch", [ConnectionPatch(port=70000), ConnectionPatch(type=" ")])
def test_patch_that_makes_no_connection_is_refused(patch: ConnectionPatch) -> None:
    with refuses(ErrorCategory.VALIDATION):
        patch.apply(ConnectionDescriptor(config_name="c", type="T"))


def test_sealed_bytes_do_not_show() -> None:
    assert "c1ph3r" not in repr(ProtectedCredential(b"c1ph3r", "1"))
