"""What the API document says of itself, from ``SWAGGER_*`` (spec rest-api 1.2)."""

import re

from fetcher.api.services import DocumentFacts
from fetcher.settings import Settings

_HOST = re.compile(r"[^:]+:[0-9]+", re.ASCII)
_ABSENT = ("", "null", "nil")


def document_facts(settings: Settings) -> DocumentFacts:
    """Blank values, ``null`` and ``nil`` leave the default; a host without a port is ignored."""
    defaults = DocumentFacts()
    base_path = "/" + _given(settings.swagger_base_path).strip("/")
    host = _given(settings.swagger_host)
    scheme = _given(settings.swagger_schemes) or "http"
    return DocumentFacts(
        title=_given(settings.swagger_title) or defaults.title,
        description=_given(settings.swagger_description) or defaults.description,
        version=_given(settings.swagger_version) or defaults.version,
        server=f"{scheme}://{host}{base_path}" if _HOST.fullmatch(host) else base_path,
    )


def _given(text: str) -> str:
    return "" if text.strip() in _ABSENT else text.strip()
