"""Every secret that a process is given is known to what masks its log."""

import base64
from typing import Any

import pytest
from pydantic import SecretStr

from fetcher.log_secrets import LiveSecrets
from fetcher.settings import Settings, secrets_of

KEY = base64.b64encode(bytes(range(32))).decode()
OLD = base64.b64encode(bytes(range(32, 64))).decode()


def constructed(**secrets: str) -> Settings:
    """Settings with these, unjudged."""
    hidden: dict[str, Any] = {name: SecretStr(text) for name, text in secrets.items()}
    return Settings.model_construct(**hidden)


def test_every_secret_setting_is_known() -> None:
    own = {
        name: f"canary-{name}"
        for name, field in Settings.model_fields.items()
        if field.annotation is SecretStr
    }
    special = {
        "mongo_uri": "mongodb://me:canary%20uri@store.test/",
        "app_enc_key": KEY,
        "app_enc_key_previous": f"0={OLD}, 00={KEY}",
        "otel_exporter_otlp_headers": "token=canary-token",
    }
    known = set(secrets_of(constructed(**own | special)))
    wanted = {text for name, text in own.items() if name not in special}
    assert len(wanted) > 8
    assert wanted <= known
    assert {KEY, OLD, "canary-token", "canary uri", "canary%20uri"} <= known
    assert "mongodb" not in set(secrets_of(constructed(mongo_uri="mongodb")))


@pytest.mark.parametrize(
    ("headers", "text"),
    [
        ("api-key=canary-1", "canary-1"),
        ("a=other-value, api-key = canary-1,b=2", "canary-1"),
        ("authorization=Bearer canary-1", "canary-1"),
        ("authorization=Bearer%20canary%2D1", "canary-1"),
        ("authorization=Bearer%20canary%2D1", "Bearer%20canary%2D1"),
        ("authorization=Bearer canary/1", "canary%2F1"),
        ("authorization=Basic dXNlcjpjYW5hcnktMQ==", "dXNlcjpjYW5hcnktMQ=="),
        ("authorization=Basic dXNlcjpjYW5hcnktMQ==", "canary-1"),
    ],
)
def test_each_of_the_collectors_headers_is_masked_alone(headers: str, text: str) -> None:
    secrets = LiveSecrets()
    secrets.hold(secrets_of(constructed(otel_exporter_otlp_headers=headers)))
    assert secrets.masked(f"said {text}!") == "said ***!"
    assert secrets.masked("api-key authorization Bearer Basic") == (
        "api-key authorization Bearer Basic"
    )
