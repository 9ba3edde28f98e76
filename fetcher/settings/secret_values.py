"""Which values of the settings must never be seen in a log."""

import base64
import binascii
from collections.abc import Iterator
from urllib.parse import unquote

from pydantic import SecretStr

from fetcher.settings.model import Settings
from fetcher.settings.shown_values import hidden_in
from fetcher.settings.telemetry_rules import header_texts


def secrets_of(settings: Settings) -> Iterator[str]:
    """Every secret among the settings, and the parts of those that are made of parts."""
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, str):
            yield from hidden_in(name.upper(), value)
        if not isinstance(value, SecretStr):
            continue
        text = value.get_secret_value()
        if name == "mongo_uri":
            yield from hidden_in(name.upper(), text)
        elif name == "app_enc_key_previous":
            yield from (pair.partition("=")[2].strip() for pair in text.split(","))
        elif name == "otel_exporter_otlp_headers":
            for header in header_texts(settings):
                yield from _of_header(header.partition("=")[2].strip())
        else:
            yield text
    for group in settings.datasource_groups:
        yield from (group.values.get(suffix, "") for suffix in ("PASSWORD", "SSL_KEY"))


def _of_header(value: str) -> Iterator[str]:
    """A collector's token as it is sent, without ``Bearer``, and the password in ``Basic``."""
    for form in dict.fromkeys((value, unquote(value))):
        yield form
        scheme, blank, credentials = form.partition(" ")
        if not blank:
            continue
        yield credentials.strip()
        if scheme.lower() == "basic":
            yield from _password_in(credentials.strip())


def _password_in(credentials: str) -> Iterator[str]:
    try:
        text = base64.b64decode(credentials, validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return
    yield text.partition(":")[2]
