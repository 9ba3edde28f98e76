"""What callers send over HTTP. The request's head is h11's to read, below hypercorn."""

from typing import Final
from uuid import UUID

from werkzeug.datastructures import MultiDict

from fetcher.api.event_stream import parse_event_id
from fetcher.api.job_list_parameters import job_list_request
from fetcher.api.list_cursors import parse_place, place_text
from fetcher.api.list_parameters import ListRules, connection_query
from fetcher.api.path_ids import job_id
from fetcher.domain.errors import FetcherError
from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.trace_context import trace_context
from tests.contract.records.builders import now
from tests.fuzz.decoders.decoder import Decoder, text_of
from tests.unit.api.test_decoder_properties import CANARY, KINDS, answer_to

_RULES: Final = ListRules(max_limit=100, max_range_months=1)
_TRACE: Final = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def bodies() -> dict[str, Decoder]:
    return {
        **{f"body: {kind}": _body(kind) for kind in KINDS},
        "JSON": Decoder(
            seeds=[b'{"a":[1,2.5e3,"\\u00e9",null,true]}'],
            decode=parse,
            refusals=(JsonTextError,),
        ),
    }


def queries_and_headers() -> dict[str, Decoder]:
    return {
        "query of jobs": Decoder(
            seeds=[b"limit=10&status=failed&startDate=2026-03-01&endDate=2026-03-02"],
            decode=lambda data: job_list_request(_pairs(data), product_name=None, rules=_RULES),
            refusals=(FetcherError,),
        ),
        "query of connections": Decoder(
            seeds=[b"limit=10&page=2&type=MYSQL&host=h&sortOrder=asc&startDate=2026-03-01"],
            decode=lambda data: connection_query(_pairs(data), product_name=None, rules=_RULES),
            refusals=(FetcherError,),
        ),
        "cursor": Decoder(
            seeds=[place_text(now(), UUID(int=7)).encode()],
            decode=lambda data: parse_place(text_of(data)),
            refusals=(FetcherError,),
        ),
        "id in a path": Decoder(
            seeds=[str(UUID(int=7)).encode(), UUID(int=7).urn.encode()],
            decode=lambda data: job_id(text_of(data)),
            refusals=(FetcherError,),
        ),
        "event id": Decoder(
            seeds=[b"1773480413500-0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"],
            decode=lambda data: parse_event_id(text_of(data)),
            refusals=(FetcherError,),
        ),
        "traceparent": Decoder(
            seeds=[_TRACE],
            decode=lambda data: trace_context(text_of(data), text_of(data[::-1])),
        ),
    }


def _body(kind: str) -> Decoder:
    """A refusal is judged in there, by its code. Without the canary: a change may move it into a
    member that is no secret."""
    return Decoder(
        seeds=[KINDS[kind][2].replace(CANARY.encode(), b"a-password")],
        decode=lambda data: answer_to(kind, data, []),
    )


def _pairs(data: bytes) -> MultiDict[str, str]:
    parts = [part.partition("=") for part in text_of(data).split("&")]
    return MultiDict([(name, value) for name, _, value in parts])
