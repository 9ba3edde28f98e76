"""Every field that holds a secret, with a canary in it."""

import base64
from collections.abc import Mapping
from typing import Final

from pydantic import SecretStr

from fetcher.settings import Settings
from tests.canaries.spelling import canary
from tests.e2e.cluster import KEY

IN_HEADERS: Final = frozenset(
    {"FETCHER_ACCESS_TOKEN", "MULTI_TENANT_SERVICE_API_KEY", "OBJECT_STORAGE_ACCESS_KEY_ID"}
)
"""What others send or check in a header, which has no other characters than ASCII's."""
OF_THEIR_OWN_FORM: Final = frozenset(
    {"APP_ENC_KEY", "APP_ENC_KEY_PREVIOUS", "MONGO_URI", "OTEL_EXPORTER_OTLP_HEADERS"}
)
MASTER_KEY: Final = base64.b64encode(b"zq7canary-of-the-master-key-0123").decode()
"""32 bytes that the search knows; it is its base64 that the setting has."""


def secret_settings() -> dict[str, str]:
    """Each secret setting there is with a canary of its own."""
    names = [n.upper() for n, f in Settings.model_fields.items() if f.annotation is SecretStr]
    given = {
        name: canary(name, is_ascii=name in IN_HEADERS)
        for name in names
        if name not in OF_THEIR_OWN_FORM
    }
    return given | {
        "APP_ENC_KEY": MASTER_KEY,
        "APP_ENC_KEY_PREVIOUS": f"0={KEY}",
        "OTEL_EXPORTER_OTLP_HEADERS": f"api-key={canary('collector', is_ascii=True)}",
        "MONGO_PARAMETERS": f"tlsCertificateKeyFilePassword={canary('parameter', is_ascii=True)}",
        "RABBITMQ_HEALTH_CHECK_URL": "https://me:zq7canary-a@broker.test/?key=zq7canary-b",
        "DATASOURCE_UNUSED_CONFIG_NAME": "midaz_transaction",
        "DATASOURCE_UNUSED_TYPE": "POSTGRESQL",
        "DATASOURCE_UNUSED_HOST": "127.0.0.1",
        "DATASOURCE_UNUSED_PORT": "1",
        "DATASOURCE_UNUSED_DATABASE": "d",
        "DATASOURCE_UNUSED_USER": "u",
        "DATASOURCE_UNUSED_PASSWORD": canary("internal-source"),
    }


def a_pem(kind: str, content: str) -> str:
    """One by its form alone, so that whoever reads it complains of it."""
    text = base64.b64encode(content.encode()).decode()
    return f"-----BEGIN {kind}-----\n{text}\n-----END {kind}-----\n"


def a_token(claims: Mapping[str, object] | None = None) -> str:
    """A bearer token as a caller sends it, with the mark in its signature."""
    from tests.e2e.tenancy import token_of  # noqa: PLC0415 - as others make theirs

    head, _, _ = token_of("a-tenant", **(claims or {})).rpartition(".")
    return f"{head}.zq7canary-signature"
