"""Every decoder of ours that bytes from outside reach, with good bytes to begin from."""

import base64
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import bson
from bson.errors import BSONError
from werkzeug.datastructures import MultiDict

from fetcher.adapters.auth.answers import AnswerUnreadable, verdict_of
from fetcher.adapters.auth.jwk import KeySetUnreadable, read_keys
from fetcher.adapters.mongo.connection_documents import connection_document, read_connection
from fetcher.adapters.mongo.job_documents import job_document, read_job
from fetcher.adapters.redis.schema_values import NotASchema, schema_from_json, schema_to_json
from fetcher.api.event_stream import parse_event_id
from fetcher.api.job_list_parameters import job_list_request
from fetcher.api.list_parameters import ListRules, connection_query
from fetcher.cli.letter_file import NotSaved, read_saved
from fetcher.consumer import EventRejected, ResultRejected, derive_keys, open_result, verify_event
from fetcher.crypto.credentials import CredentialError, decrypt_text, encrypt_text
from fetcher.crypto.keys import KeyRing, MasterKeyError, decode_master_key
from fetcher.crypto.sealed_fields import FieldCipher
from fetcher.datasources.mongodb.bson_json import BsonWriter, CellTooLarge, document_starts
from fetcher.datasources.mongodb.bson_walk import InvalidText, MalformedBson
from fetcher.datasources.mysql.packets import MalformedPacket, RowPackets
from fetcher.datasources.pem import pem_text
from fetcher.domain.access_tokens import TokenMalformed, read_token
from fetcher.domain.backups import (
    DATABASE,
    BackedUpFile,
    BackupRejected,
    Manifest,
    manifest_document,
    read_manifest,
)
from fetcher.domain.errors import FetcherError, PortError, RecordCorrupt
from fetcher.domain.jobs import JobOptions
from fetcher.domain.json_text import JsonTextError, parse
from fetcher.domain.reference_events import read_reference_event
from fetcher.domain.tenant_events import TenantEventInvalid, tenant_event
from fetcher.domain.tenants import TenantError
from fetcher.domain.trace_context import trace_context
from fetcher.domain.work_message import WorkMessageError, parse_work_message
from fetcher.settings import Role, SettingsRefused, load_settings, process_environment
from fetcher.settings.certificates import ca_pem
from fetcher.settings.mongo_address import AddressInvalid, hosts_of, scheme_of, uses_tls
from fetcher.tenancy.manager_answers import active_tenants, service_sources, tenant_config
from fetcher_engine import SchemaSnapshot, TableSnapshot
from tests.contract.records.builders import a_connection, a_job
from tests.reference_outbox import an_envelope
from tests.servers.certificates import Authority
from tests.unit.api.test_decoder_properties import CANARY, KINDS, answer_to
from tests.unit.crypto import vectors
from tests.unit.tenancy.answers import an_answer

_KEYS: Final = derive_keys(vectors.APP_ENC_KEY)
_RULES: Final = ListRules(max_limit=100, max_range_months=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """``decode`` may raise ``refusals`` and nothing else. ``group``: what the document calls it."""

    group: str
    seeds: Sequence[bytes]
    decode: Callable[[bytes], object]
    refusals: tuple[type[BaseException], ...] = ()


def _text(data: bytes) -> str:
    return data.decode("latin-1")


def _body(kind: str) -> Decoder:
    """A refusal is judged in there, by its code. Without the canary: a change may move it into a
    member that is no secret."""
    return Decoder(
        group="bodies of requests",
        seeds=[KINDS[kind][2].replace(CANARY.encode(), b"a-password")],
        decode=lambda data: answer_to(kind, data, []),
    )


def _pairs(data: bytes) -> MultiDict[str, str]:
    parts = [part.partition("=") for part in _text(data).split("&")]
    return MultiDict([(name, value) for name, _, value in parts])


def _event(data: bytes) -> None:
    lines = data.split(b"\n")
    headers = {"x-message-signature": _text(lines[0]), "t": _text(lines[-1])}
    verify_event(headers, data, "fetcher.job.events", "job.completed", key=_KEYS.external_hmac)


def _result(data: bytes) -> None:
    open_result(
        data,
        storage_key=_KEYS.storage,
        hmac_key=_KEYS.external_hmac,
        expected_hmac=vectors.RESULT_HMAC,
        expected_size=len(vectors.RESULT_PLAINTEXT),
    ).close()


def _rows(data: bytes) -> None:
    BsonWriter(JobOptions(), max_cell_bytes=1 << 20).rows(data, document_starts(data))


def _mysql_rows(data: bytes) -> None:
    """In pieces, as a network delivers them."""
    packets, rows = RowPackets(1), list[bytes | None]()
    for start in range(0, len(data), 7):
        if packets.ended:
            return
        packets.feed(data[start : start + 7], rows)


def _file(name: str, read: Callable[[Path], object]) -> Callable[[bytes], object]:
    folder = Path(tempfile.mkdtemp(prefix="fetcher-fuzz-"))
    FOLDERS.append(folder)

    def decode(data: bytes) -> object:
        (folder / name).write_bytes(data)
        return read(folder)

    return decode


FOLDERS: Final[list[Path]] = []
"""To be removed by whoever ran the decoders."""


def _settings(folder: Path) -> None:
    found = process_environment({}, folder)
    load_settings(found.variables, Role.ALL)


def _mongo_address(data: bytes) -> None:
    text = _text(data)
    scheme_of(text)
    uses_tls(text)
    hosts_of(text)


def _packet(number: int, row: bytes) -> bytes:
    return len(row).to_bytes(3, "little") + bytes([number]) + row


def decoders() -> dict[str, Decoder]:
    """By name; the files that some of them read lie in :data:`FOLDERS`."""
    snapshot = schema_to_json(SchemaSnapshot("db", (TableSnapshot("t", ("a", "b"), (), 7),)))
    documents = [{"_id": 1, "a": {"b": [1.5, None, "x"]}, "c": b"\0\1", "d": True}]
    tokens = json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": "A" * 43}]})
    tenant = json.dumps(an_answer()).encode()
    manifest = Manifest(
        created_at=datetime(2026, 3, 14, tzinfo=UTC),
        version="1",
        schema=1,
        files=(BackedUpFile(path=DATABASE, size_bytes=1, sha256="0" * 64),),
    )
    letter = {"exchange": "", "routingKey": "q", "reason": "r", "headers": {"a": 1}, "body": "{}"}
    pem = b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    trace = b"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    environment = b"LOG_LEVEL=info\nSERVER_PORT=4006\nREDIS_DB='1'\nA=\"${LOG_LEVEL}\"\n"
    port_errors = (PortError, TenantError)
    return {
        **{f"body: {kind}": _body(kind) for kind in KINDS},
        "JSON": Decoder(
            group="bodies of requests",
            seeds=[b'{"a":[1,2.5e3,"\\u00e9",null,true]}'],
            decode=parse,
            refusals=(JsonTextError,),
        ),
        "query of jobs": Decoder(
            group="queries and headers",
            seeds=[b"limit=10&status=failed&startDate=2026-03-01&endDate=2026-03-02"],
            decode=lambda data: job_list_request(_pairs(data), product_name=None, rules=_RULES),
            refusals=(FetcherError,),
        ),
        "query of connections": Decoder(
            group="queries and headers",
            seeds=[b"limit=10&page=2&type=MYSQL&host=h&sortOrder=asc&startDate=2026-03-01"],
            decode=lambda data: connection_query(_pairs(data), product_name=None, rules=_RULES),
            refusals=(FetcherError,),
        ),
        "event id": Decoder(
            group="queries and headers",
            seeds=[b"1773480413500-0195a0b1-7c2d-7e3f-8a4b-5c6d7e8f9a0b"],
            decode=lambda data: parse_event_id(_text(data)),
            refusals=(FetcherError,),
        ),
        "traceparent": Decoder(
            group="queries and headers",
            seeds=[trace],
            decode=lambda data: trace_context(_text(data), _text(data[::-1])),
        ),
        "access token": Decoder(
            group="tokens and published keys",
            seeds=[b"eyJhbGciOiJFZERTQSJ9.eyJ0eXBlIjoibm9ybWFsLXVzZXIifQ.AAAA"],
            decode=lambda data: read_token(_text(data)),
            refusals=(TokenMalformed,),
        ),
        "published keys": Decoder(
            group="tokens and published keys",
            seeds=[tokens.encode()],
            decode=read_keys,
            refusals=(KeySetUnreadable,),
        ),
        "authorization answer": Decoder(
            group="answers of the platform's services",
            seeds=[b'{"authorized":true}', b'{"code":"A-1","title":"t","message":"m"}'],
            decode=lambda data: verdict_of(200 + len(data) % 400, data),
            refusals=(AnswerUnreadable,),
        ),
        "tenant list": Decoder(
            group="answers of the platform's services",
            seeds=[b'[{"id":"a","status":"active"}]'],
            decode=active_tenants,
            refusals=port_errors,
        ),
        "tenant": Decoder(
            group="answers of the platform's services",
            seeds=[tenant],
            decode=lambda data: tenant_config(data, tenant_id="acme-7", broker_module="m"),
            refusals=port_errors,
        ),
        "tenant's sources": Decoder(
            group="answers of the platform's services",
            seeds=[tenant],
            decode=lambda data: service_sources(data, tenant_id="acme-7", service="fetcher"),
            refusals=port_errors,
        ),
        "tenant event": Decoder(
            group="answers of the platform's services",
            seeds=[b'{"event_id":"1","event_type":"tenant.created","tenant_id":"a","payload":{}}'],
            decode=tenant_event,
            refusals=(TenantEventInvalid,),
        ),
        "work message": Decoder(
            group="messages",
            seeds=[vectors.WORK_BODY],
            decode=lambda data: parse_work_message(data, {"X-Tenant-ID": _text(data[:9])}),
            refusals=(WorkMessageError,),
        ),
        "event": Decoder(
            group="messages",
            seeds=[vectors.COMPLETED_BODY, vectors.FAILED_BODY],
            decode=_event,
            refusals=(EventRejected,),
        ),
        "reference's event": Decoder(
            group="messages",
            seeds=[json.dumps(an_envelope(vectors.JOB_ID)).encode()],
            decode=lambda data: read_reference_event(_text(data), request_id="r"),
            refusals=(PortError, ValueError),
        ),
        "saved letter": Decoder(
            group="files",
            seeds=[json.dumps(letter).encode() + b"\n"],
            decode=_file("letters", lambda folder: read_saved(folder / "letters")),
            refusals=(NotSaved,),
        ),
        "backup's manifest": Decoder(
            group="files",
            seeds=[json.dumps(manifest_document(manifest)).encode()],
            decode=read_manifest,
            refusals=(BackupRejected,),
        ),
        "environment file": Decoder(
            group="files",
            seeds=[environment],
            decode=_file(".env", _settings),
            refusals=(SettingsRefused,),
        ),
        "PEM": Decoder(
            group="settings",
            seeds=[pem],
            decode=lambda data: pem_text(_text(data)),
            refusals=(ValueError,),
        ),
        "roots": Decoder(
            group="settings",
            seeds=[base64.b64encode(Authority().ca.encode())],
            decode=lambda data: ca_pem(_text(data)),
            refusals=(ValueError,),
        ),
        "MongoDB's address": Decoder(
            group="settings",
            seeds=[b"mongodb://u:p%40@a.test:27017,b.test/db?tls=true&replicaSet=r"],
            decode=_mongo_address,
            refusals=(AddressInvalid,),
        ),
        "master key": Decoder(
            group="settings",
            seeds=[vectors.APP_ENC_KEY.encode()],
            decode=lambda data: decode_master_key(_text(data)),
            refusals=(MasterKeyError,),
        ),
        "former keys": Decoder(
            group="settings",
            seeds=[b"1=" + base64.b64encode(bytes(40))],
            decode=lambda data: KeyRing.from_text(
                vectors.APP_ENC_KEY, version="2", previous=_text(data)
            ),
            refusals=(MasterKeyError,),
        ),
        "sealed result": Decoder(
            group="sealed values",
            seeds=[vectors.RESULT_OBJECT],
            decode=_result,
            refusals=(ResultRejected,),
        ),
        "sealed password": Decoder(
            group="sealed values",
            seeds=[encrypt_text(vectors.MASTER, "secret", nonce=bytes(12)).encode()],
            decode=lambda data: decrypt_text(vectors.MASTER, _text(data)),
            refusals=(CredentialError,),
        ),
        "sealed field": Decoder(
            group="sealed values",
            seeds=[encrypt_text(vectors.MASTER, "Ana", nonce=bytes(12)).encode()],
            decode=FieldCipher(vectors.MASTER).open,
        ),
        "remembered schema": Decoder(
            group="records and remembered values",
            seeds=[snapshot or b""],
            decode=schema_from_json,
            refusals=(NotASchema,),
        ),
        "job record": Decoder(
            group="records and remembered values",
            seeds=[bson.encode(job_document(a_job()))],
            decode=lambda data: read_job(bson.decode(data)),
            # the first is the driver's, which decodes what comes from the server
            refusals=(BSONError, RecordCorrupt),
        ),
        "connection record": Decoder(
            group="records and remembered values",
            seeds=[bson.encode(connection_document(a_connection()))],
            decode=lambda data: read_connection(bson.decode(data)),
            refusals=(BSONError, RecordCorrupt),
        ),
        "rows of MongoDB": Decoder(
            group="rows of sources",
            seeds=[b"".join(map(bson.encode, documents)), bson.encode(job_document(a_job()))],
            decode=_rows,
            refusals=(MalformedBson, InvalidText, CellTooLarge),
        ),
        "rows of MySQL": Decoder(
            group="rows of sources",
            seeds=[
                _packet(1, b'\x07{"a":1}')
                + _packet(2, b"\xfc\x05\0hello")
                + _packet(3, b"\xfb")
                + _packet(4, b"\xfe\0\0\2\0"),
                _packet(1, b"\x01x") + _packet(2, b"\xff\x15\x04#28000refused"),
            ],
            decode=_mysql_rows,
            refusals=(MalformedPacket, _driver_error()),
        ),
    }


def _driver_error() -> type[BaseException]:
    """What a server sends amid the rows, as the driver has it."""
    from pymysql.err import MySQLError  # type: ignore[import-untyped] # noqa: PLC0415 - as above

    error: type[BaseException] = MySQLError
    return error
