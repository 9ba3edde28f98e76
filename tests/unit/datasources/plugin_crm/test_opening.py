"""Sealed documents to rows, without a server: rows of spec datasources 19.11."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import bson
import pytest

from fetcher.compat.plugin_crm import ENCRYPTED_PATHS
from fetcher.datasources.mongodb.bson_json import BsonWriter, document_starts
from fetcher.datasources.plugin_crm.opening import OpeningWriter
from fetcher.domain.jobs import JobOptions
from fetcher_engine import SourceFailure, Stage
from tests.unit.datasources.plugin_crm.sealing import ANA, KEYS, sealed


def a_writer(
    paths: Sequence[str] = ENCRYPTED_PATHS, *, max_cell_bytes: int = 1000
) -> OpeningWriter:
    inner = BsonWriter(JobOptions(), max_cell_bytes=max_cell_bytes)
    return OpeningWriter(inner, KEYS.cipher(), paths, table="holders")


def written(writer: OpeningWriter, documents: Sequence[Mapping[str, Any]]) -> list[Any]:
    data = b"".join(map(bson.encode, documents))
    found: list[Any] = json.loads(f"[{','.join(writer.rows(data, document_starts(data)))}]")
    return found


def test_all_listed_fields_that_are_there_are_opened() -> None:
    sealed_record = {
        "_id": 1,
        "document": sealed("98765432100"),
        "name": ANA,
        "status": ANA,
        "contact": {"primary_email": sealed("ana@lima.test"), "fax": ANA},
        "banking_details": {"iban": sealed("BR15")},
        "legal_person": {"representative": {"name": sealed("Größe\0\n"), "role": ANA}},
        "natural_person": {"mother_name": sealed("ü" * 300)},
    }
    assert written(a_writer(), [sealed_record]) == [
        {
            "_id": 1,
            "document": "98765432100",
            "name": "Ana Lima",
            "status": ANA,
            "contact": {"primary_email": "ana@lima.test", "fax": ANA},
            "banking_details": {"iban": "BR15"},
            "legal_person": {"representative": {"name": "Größe\0\n", "role": ANA}},
            "natural_person": {"mother_name": "ü" * 300},
        }
    ]


def test_values_that_are_no_texts_or_empty_ones_stay() -> None:
    records: list[dict[str, Any]] = [
        {"document": "", "name": 7, "contact": None},
        {"document": None, "name": {"first": "x"}, "contact": "a text"},
        {"legal_person": {"representative": "a text"}, "contact": ["primary_email"]},
        {"contact": {"primary_email": ["x"]}, "natural_person": {"mother_name": {"a": 1}}},
    ]
    assert written(a_writer(), records) == records


def test_a_broken_one_names_record_and_field_and_nothing_of_it() -> None:
    records = [{"name": ANA}, {"name": ANA}, {"name": f"{ANA[:-4]}AAAA"}, {"name": ANA}]
    with pytest.raises(SourceFailure) as caught:
        written(a_writer(), records)
    failure = caught.value
    assert (failure.stage, failure.reason) == (Stage.ROWS, "decryption_failed record_3")
    assert (failure.table, failure.column) == ("holders", "name")
    assert ANA[:20] not in repr((failure, vars(failure)))
    assert failure.__context__ is None


def test_records_are_counted_over_all_that_is_read() -> None:
    writer = a_writer()
    for _ in range(3):
        written(writer, [{"name": ANA}] * 7)
    with pytest.raises(SourceFailure, match="record_23"):
        written(writer, [{"name": ANA}, {"contact": {"other_phone": "plain"}}])


def test_only_the_shown_paths_are_opened() -> None:
    record = {"name": ANA, "document": "not sealed"}
    assert written(a_writer(["name"]), [record]) == [{"name": "Ana Lima", "document": "not sealed"}]


def test_the_limit_of_a_cell_counts_the_open_text() -> None:
    text = "x" * 900
    assert written(a_writer(), [{"name": sealed(text)}]) == [{"name": text}]


def test_many_documents_of_one_shape_are_what_each_is_alone() -> None:
    records = [{"_id": n, "name": sealed(f"n{n}" * (n % 5 + 1)), "n": n} for n in range(300)]
    rows = written(a_writer(), records)
    assert rows == [written(a_writer(), [record])[0] for record in records]
    assert rows[7] == {"_id": 7, "name": "n7n7n7", "n": 7}
