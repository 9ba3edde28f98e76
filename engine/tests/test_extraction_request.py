"""A request as a value (spec 4.9)."""

from fetcher_engine import ExtractionRequest, Limits


def test_json_of_a_request() -> None:
    request = ExtractionRequest(
        mapped_fields={"ledger-pg": {"accounts": ["id", "status"]}},
        filters={"ledger-pg": {"accounts": {"status": {"in": ["open"]}}}},
        metadata={"source": "billing"},
        overrides=Limits(max_result_bytes=1048576),
    )
    assert request.to_public_dict() == {
        "mappedFields": {"ledger-pg": {"accounts": ["id", "status"]}},
        "filters": {"ledger-pg": {"accounts": {"status": {"in": ["open"]}}}},
        "metadata": {"source": "billing"},
        "overrides": {"maxResultBytes": 1048576},
    }
