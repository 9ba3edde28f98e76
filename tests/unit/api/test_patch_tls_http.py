"""Change a connection's TLS settings: spec rest-api 7.4, 7.6."""

from fetcher.domain.connections import TlsSettings
from fetcher.domain.tls_keys import open_tls_key
from tests.unit.api.harness import (
    ReversingCipher,
    a_connection,
)
from tests.unit.api.patching import ID, KEY, PEM, an_api_with_one, kept, patch

TLS = TlsSettings(mode="verify-ca", ca=PEM)


async def test_null_takes_the_tls_settings_away() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TLS))
    answered = await patch(api, {"ssl": None})
    assert answered.status == 200
    assert "ssl" not in answered.json
    assert (await kept(api)).tls is None


async def test_null_in_another_spelling_takes_them_away_unless_the_exact_name_has_a_value() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TLS))
    await patch(api, {"SSL": None, "ssl": {"mode": "require"}})
    assert (await kept(api)).tls == TlsSettings(mode="require")
    await patch(api, {"SSL": None})
    assert (await kept(api)).tls is None


async def test_tls_values_without_a_mode_are_merged() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TlsSettings(mode="require")))
    answered = await patch(api, {"ssl": {"ca": PEM}})
    assert answered.json["ssl"] == {"mode": "require"}
    assert (await kept(api)).tls == TlsSettings(mode="require", ca=PEM)
    await patch(api, {"ssl": {"ca": ""}})
    assert (await kept(api)).tls == TlsSettings(mode="require")


async def test_a_mode_replaces_the_whole_block() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TLS))
    answered = await patch(api, {"ssl": {"mode": "verify-full"}})
    assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
    assert answered.json["fields"].keys() == {"ssl.ca"}
    assert (await patch(api, {"ssl": {"mode": "require"}})).status == 200
    assert (await kept(api)).tls == TlsSettings(mode="require")


async def test_tls_values_without_any_mode_miss_it() -> None:
    api = await an_api_with_one()
    for ssl in ({"ca": PEM}, {"mode": ""}):
        answered = await patch(api, {"ssl": ssl})
        assert answered.problem == (400, "FET-0402", "Missing Fields in Request")
        assert answered.json["fields"].keys() == {"ssl.mode"}


async def test_misspelt_tls_member_is_refused_in_a_patch_and_at_creation() -> None:
    api = await an_api_with_one()
    bodies = {"configName": "hr_db", "ssl": {"moed": "require", "a b": 1}}
    created = await api.create(bodies)
    for answered in (created, await patch(api, bodies)):
        assert answered.problem == (400, "FET-0001", "Bad Request")
        assert answered.json["fields"] == {
            'ssl["a b"]': "is not known",
            "ssl.moed": "is not known",
        }


async def test_mode_must_be_one_of_the_new_type() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TlsSettings(mode="require")))
    answered = await patch(api, {"type": "MYSQL"})
    assert answered.problem == (400, "FET-0001", "Bad Request")
    assert answered.json["entityType"] == "connection"
    assert answered.json["fields"]["ssl.mode"].startswith("FET-0413 - ")
    assert (await patch(api, {"type": "MYSQL", "ssl": {"mode": "preferred"}})).status == 200


# --- the key of a TLS client -------------------------------------------------------------------


async def test_private_key_is_stored_encrypted_and_kept_by_other_changes() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TlsSettings(mode="require")))
    assert (await patch(api, {"ssl": {"cert": PEM, "key": KEY}})).status == 200
    sealed = (await kept(api)).tls
    assert sealed is not None
    assert "BEGIN" not in sealed.key
    assert open_tls_key(sealed, ReversingCipher().decrypt).key == KEY
    assert (await patch(api, {"port": 1, "password": "n3w"})).status == 200
    assert (await kept(api)).tls == sealed


async def test_key_that_the_reference_stored_in_clear_is_encrypted_by_the_next_change() -> None:
    clear = TlsSettings(mode="require", cert=PEM, key=KEY)
    api = await an_api_with_one(a_connection(id=ID, tls=clear))
    assert (await patch(api, {"port": 1})).status == 200
    stored = (await kept(api)).tls
    assert stored is not None
    assert "BEGIN" not in stored.key
    assert open_tls_key(stored, ReversingCipher().decrypt) == clear


async def test_text_in_the_stored_form_is_no_key() -> None:
    api = await an_api_with_one(a_connection(id=ID, tls=TlsSettings(mode="require")))
    key = "fetcher-encrypted:1:c2VhbGVk"
    answered = await patch(api, {"ssl": {"cert": PEM, "key": key}})
    assert answered.json["fields"].keys() == {"ssl.key"}
