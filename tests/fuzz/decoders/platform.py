"""What the platform's services answer, and the tokens that they issue."""

import json

from fetcher.adapters.auth.answers import AnswerUnreadable, verdict_of
from fetcher.adapters.auth.jwk import KeySetUnreadable, read_keys
from fetcher.domain.access_tokens import TokenMalformed, read_token
from fetcher.domain.errors import PortError
from fetcher.domain.tenant_events import TenantEventInvalid, tenant_event
from fetcher.domain.tenants import TenantError
from fetcher.tenancy.manager_answers import active_tenants, service_sources, tenant_config
from tests.fuzz.decoders.decoder import Decoder, text_of
from tests.unit.tenancy.answers import an_answer


def tokens() -> dict[str, Decoder]:
    keys = json.dumps({"keys": [{"kty": "OKP", "crv": "Ed25519", "kid": "1", "x": "A" * 43}]})
    return {
        "access token": Decoder(
            seeds=[b"eyJhbGciOiJFZERTQSJ9.eyJ0eXBlIjoibm9ybWFsLXVzZXIifQ.AAAA"],
            decode=lambda data: read_token(text_of(data)),
            refusals=(TokenMalformed,),
        ),
        "published keys": Decoder(
            seeds=[keys.encode()],
            decode=read_keys,
            refusals=(KeySetUnreadable,),
        ),
    }


def answers() -> dict[str, Decoder]:
    tenant = json.dumps(an_answer()).encode()
    port_errors = (PortError, TenantError)
    return {
        "authorization answer": Decoder(
            seeds=[b'{"authorized":true}', b'{"code":"A-1","title":"t","message":"m"}'],
            decode=lambda data: verdict_of(200 + len(data) % 400, data),
            refusals=(AnswerUnreadable,),
        ),
        "tenant list": Decoder(
            seeds=[b'[{"id":"a","status":"active"}]'],
            decode=active_tenants,
            refusals=port_errors,
        ),
        "tenant": Decoder(
            seeds=[tenant],
            decode=lambda data: tenant_config(data, tenant_id="acme-7", broker_module="m"),
            refusals=port_errors,
        ),
        "tenant's sources": Decoder(
            seeds=[tenant],
            decode=lambda data: service_sources(data, tenant_id="acme-7", service="fetcher"),
            refusals=port_errors,
        ),
        "tenant event": Decoder(
            seeds=[b'{"event_id":"1","event_type":"tenant.created","tenant_id":"a","payload":{}}'],
            decode=tenant_event,
            refusals=(TenantEventInvalid,),
        ),
    }
