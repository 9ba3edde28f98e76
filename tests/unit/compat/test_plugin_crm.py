"""The rules of plugin_crm: spec engine 17.8, tables 21.14 and datasources 19.11."""

from collections.abc import Callable

import pytest

from fetcher.compat.plugin_crm import (
    ENCRYPTED_PATHS,
    SEARCH_FIELDS,
    asked_field,
    decrypted_paths,
    extracted_collections,
    failure_code,
    is_crm,
    is_crm_source,
    search_filters,
)
from fetcher.domain.jobs import Operator
from fetcher_engine import (
    EngineError,
    ErrorCategory,
    FailureType,
    SourceFailure,
    Stage,
    ValidationFailure,
)

ACME = "5f0c2a52-8c0e-4c3b-9c57-2f6f0d3b1a77"
OTHER_NAMES = ["Plugin_CRM", "my_plugin_crm", "plugin_crm ", "plugin_crm2", ""]


def hashed(text: str) -> str:
    return f"#{text}"


# --- which source it is ----------------------------------------------------------------------


def test_it_is_known_by_its_whole_name() -> None:
    assert is_crm("plugin_crm")
    assert [name for name in OTHER_NAMES if is_crm(name)] == []


def test_extraction_also_wants_its_type() -> None:
    assert is_crm_source("plugin_crm", "MONGODB")
    assert not is_crm_source("plugin_crm", "POSTGRESQL")
    assert not is_crm_source("plugin_crm", "mongodb")
    assert [name for name in OTHER_NAMES if is_crm_source(name, "MONGODB")] == []


# --- collections -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("logical", "physical", "found"),
    [
        ("holders", ["holders_2", "holders_1", "alias_3"], ("holders_1", "holders_2")),
        ("holders", ["holders_b", "holders", "holders_B"], ("holders_B", "holders_b")),
        ("holders", ["holders_1", "holders_1"], ("holders_1",)),
        ("holders", ["holders"], ()),
        ("holders", ["Holders_1", "holders-1", "xholders_1"], ()),
        ("holders_1", ["holders_1", "holders_2"], ()),
        ("a.b", ["axb_1", "a.b_1"], ("a.b_1",)),
        ("holders", [], ()),
    ],
)
def test_extraction_reads_every_collection_with_the_prefix(
    logical: str, physical: list[str], found: tuple[str, ...]
) -> None:
    assert extracted_collections(logical, physical) == found


@pytest.mark.parametrize(
    "organisation", [ACME, ACME.upper(), ACME.replace("-", ""), "5f0c2a528c0e4c3b9c572f6f"]
)
def test_a_prefix_does_not_swallow_a_longer_name_where_organisations_are_known(
    organisation: str,
) -> None:
    """Spec datasources 15.1."""
    physical = [f"alias_history_{organisation}", f"alias_{organisation}", "alias_x"]
    assert extracted_collections("alias", physical) == (f"alias_{organisation}",)
    assert extracted_collections("alias_history", physical) == (f"alias_history_{organisation}",)


@pytest.mark.parametrize("rest", [ACME[:-1], f"{ACME}0", "5f0c2a528c0e4c3b9c572f6", "g" * 24])
def test_what_is_almost_an_id_is_none(rest: str) -> None:
    assert extracted_collections("a", [f"a_{rest}", "a_b"]) == tuple(sorted(["a_b", f"a_{rest}"]))


# --- filters ---------------------------------------------------------------------------------


def test_each_searchable_field_has_its_place() -> None:
    assert dict(SEARCH_FIELDS) == {
        "document": "search.document",
        "name": "search.name",
        "banking_details.account": "search.banking_details_account",
        "banking_details.iban": "search.banking_details_iban",
        "contact.primary_email": "search.contact_primary_email",
        "contact.secondary_email": "search.contact_secondary_email",
        "contact.mobile_phone": "search.contact_mobile_phone",
        "contact.other_phone": "search.contact_other_phone",
    }


@pytest.mark.parametrize("operator", ["eq", "ne", "in", "nin"])
@pytest.mark.parametrize("field", list(SEARCH_FIELDS))
def test_texts_are_compared_by_their_hash(field: str, operator: str) -> None:
    filters = {field: {operator: ("98765432100", "b")}}
    assert search_filters(filters, hashed, table="holders") == {
        SEARCH_FIELDS[field]: {operator: ("#98765432100", "#b")}
    }


@pytest.mark.parametrize("operator", ["like", "gt", "gte", "lt", "lte", "between"])
@pytest.mark.parametrize("field", list(SEARCH_FIELDS))
def test_what_a_hash_cannot_answer_is_refused(field: str, operator: str) -> None:
    """Voided row of 19.11 (``like`` only: no filter): a filter never vanishes, design section 7."""
    with pytest.raises(SourceFailure) as refused:
        search_filters({field: {"eq": ("a",), operator: ("a",)}}, hashed, table="holders")
    failure = refused.value
    assert (failure.stage, failure.reason) == (Stage.QUERY, "invalid_filter")
    assert (failure.table, failure.column) == ("holders", field)


def test_every_operator_is_either_hashed_or_refused_or_asks_for_no_value() -> None:
    outcomes = {}
    for operator in Operator:
        try:
            found = search_filters({"name": {operator: ("a",)}}, hashed, table="t")
        except SourceFailure:
            outcomes[operator] = "refused"
        else:
            ((place, operators),) = found.items()
            outcomes[operator] = f"{place}: {operators[operator][0]}"
    refused = {"like", "gt", "gte", "lt", "lte", "between"}
    asked_of_itself = {"is_null", "not_null"}
    assert outcomes == {
        o: "refused" if o in refused else "name: a" if o in asked_of_itself else "search.name: #a"
        for o in Operator
    }


def test_only_texts_that_are_not_empty_are_hashed() -> None:
    filters = {"document": {"in": ["a", 7, "", None, True]}}
    assert search_filters(filters, hashed, table="t") == {
        "search.document": {"in": ("#a", 7, "", None, True)}
    }


@pytest.mark.parametrize("operator", ["is_null", "not_null"])
@pytest.mark.parametrize("field", ENCRYPTED_PATHS)
def test_whether_a_field_is_null_it_tells_itself(field: str, operator: str) -> None:
    """A field without a hash (an empty text has none) is not null for that."""
    filters = {field: {operator: (True,)}}
    assert search_filters(filters, hashed, table="t") == filters


def test_a_hash_and_a_presence_are_two_conditions() -> None:
    filters = {"name": {"not_null": (True,), "ne": ("a", None)}}
    assert search_filters(filters, hashed, table="t") == {
        "name": {"not_null": (True,)},
        "search.name": {"ne": ("#a", None)},
    }


@pytest.mark.parametrize("field", sorted(set(ENCRYPTED_PATHS) - set(SEARCH_FIELDS)))
@pytest.mark.parametrize("operator", sorted(set(Operator) - {"is_null", "not_null"}))
def test_what_has_no_hash_is_not_compared_with_ciphertext(field: str, operator: str) -> None:
    """The reference passed it on, and found nothing: as good as a filter that vanished."""
    with pytest.raises(SourceFailure, match="invalid_filter") as refused:
        search_filters({field: {operator: ("a",)}}, hashed, table="t")
    assert refused.value.column == field


@pytest.mark.parametrize("condition", ["x = 1", {"eq": "a"}, {"eq": None}, ["a"], None, {}])
def test_a_condition_that_is_none_is_refused(condition: object) -> None:
    for field in ("name", "status"):
        with pytest.raises(SourceFailure, match="invalid_filter"):
            search_filters({field: condition}, hashed, table="t")


def test_half_a_character_has_no_hash() -> None:
    def strict(text: str) -> str:
        return text.encode().hex()

    with pytest.raises(SourceFailure) as refused:
        search_filters({"name": {"eq": ("\ud800",)}}, strict, table="t")
    assert (refused.value.reason, refused.value.column) == ("invalid_filter_value", "name")


def test_the_field_behind_a_hash() -> None:
    assert {asked_field(place): place for place in SEARCH_FIELDS.values()} == dict(SEARCH_FIELDS)
    assert asked_field("status") == "status"


@pytest.mark.parametrize(
    "field", ["status", "Document", "contact", "contact.fax", "search.note", "names"]
)
@pytest.mark.parametrize("operator", list(Operator))
def test_other_fields_keep_name_operators_and_values(field: str, operator: str) -> None:
    def never(text: str) -> str:
        raise AssertionError(text)

    filters = {field: {operator: ("a", 1)}}
    assert search_filters(filters, never, table="t") == filters


def test_two_filters_that_become_one_are_refused() -> None:
    for filters in (
        {"name": {"eq": ("a",)}, "search.name": {"eq": ("b",)}},
        {"search.name": {"eq": ("b",)}, "name": {"eq": ("a",)}},
    ):
        with pytest.raises(SourceFailure, match="invalid_filter"):
            search_filters(filters, hashed, table="t")


def test_a_field_and_its_hash_may_be_asked_for_different_things() -> None:
    filters = {"name": {"eq": ("a",)}, "search.name": {"not_null": (True,)}}
    assert search_filters(filters, hashed, table="t") == {
        "search.name": {"eq": ("#a",), "not_null": (True,)}
    }


def test_no_filters_are_no_filters() -> None:
    assert search_filters({}, hashed, table="t") == {}


# --- organisations ---------------------------------------------------------------------------


def test_only_named_organisations_are_read_where_some_are_named() -> None:
    physical = [f"holders_{ACME}", "holders_b", "holders_c", "alias_b", "holders"]
    assert extracted_collections("holders", physical, {"b", ACME, "z"}) == (
        f"holders_{ACME}",
        "holders_b",
    )
    assert extracted_collections("holders", physical, {"z"}) == ()
    assert extracted_collections("holders", physical, frozenset()) == ()


# --- failures --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reason", "code"),
    [
        ("driver_missing", "FET-0055"),
        ("hash_key_missing", "FET-0057"),
        ("encrypt_key_missing", "FET-0058"),
        ("encrypt_key_unusable", "FET-0064"),
        ("decryption_failed record_3", "FET-0065"),
        ("timeout", None),
        (None, None),
    ],
)
def test_failures_have_the_specs_codes(reason: str | None, code: str | None) -> None:
    failure = EngineError(ErrorCategory.UNAVAILABLE, "x", source="plugin_crm", reason=reason)
    assert failure_code(failure) == code


def test_a_collection_that_nobody_has_has_the_specs_code() -> None:
    missing = ValidationFailure(FailureType.TABLE_NOT_FOUND, "plugin_crm", "holders")
    unknown = ValidationFailure(FailureType.FIELD_NOT_FOUND, "plugin_crm", "alias", "x")
    other = ValidationFailure(FailureType.TABLE_NOT_FOUND, "sales_db", "orders")
    for failures, code in (
        ((unknown, missing), "FET-0059"),
        ((unknown,), None),
        ((unknown, other), None),
    ):
        error = EngineError(ErrorCategory.VALIDATION, "x", source="plugin_crm", failures=failures)
        assert failure_code(error) == code


# --- what is decrypted -----------------------------------------------------------------------


def test_the_encrypted_paths_are_these() -> None:
    contact = ("primary_email", "secondary_email", "mobile_phone", "other_phone")
    assert set(ENCRYPTED_PATHS) == {
        "document",
        "name",
        *(f"contact.{name}" for name in contact),
        "banking_details.account",
        "banking_details.iban",
        *(f"legal_person.representative.{name}" for name in ("name", "document", "email")),
        "natural_person.mother_name",
        "natural_person.father_name",
    }
    assert len(ENCRYPTED_PATHS) == 13


@pytest.mark.parametrize("path", ENCRYPTED_PATHS)
def test_an_encrypted_path_that_is_selected_is_decrypted(path: str) -> None:
    assert decrypted_paths(["status", path]) == (path,)


def below(parent: str) -> Callable[[str], bool]:
    return lambda path: path.startswith(f"{parent}.")


@pytest.mark.parametrize(
    "parent",
    [
        "contact",
        "banking_details",
        "legal_person",
        "legal_person.representative",
        "natural_person",
    ],
)
def test_a_parent_shows_all_that_lies_below_it(parent: str) -> None:
    """The reference let ciphertext into the result here."""
    expected = tuple(filter(below(parent), ENCRYPTED_PATHS))
    assert expected
    assert decrypted_paths([parent]) == expected


@pytest.mark.parametrize("fields", [["*"], ["status", "*"], []])
def test_whole_documents_show_all(fields: list[str]) -> None:
    assert decrypted_paths(fields) == ENCRYPTED_PATHS


@pytest.mark.parametrize(
    "fields",
    [["status"], ["_id", "Document"], ["address.city"], ["contact.fax"], ["names"], ["conta"]],
)
def test_what_shows_nothing_encrypted_needs_no_key(fields: list[str]) -> None:
    """``address.city`` asked for a key in the reference, where there was nothing to decrypt."""
    assert decrypted_paths(fields) == ()
