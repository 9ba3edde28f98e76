"""Every decoder of ours that bytes from outside reach, with good bytes to begin from."""

from typing import Final

from tests.fuzz.decoders import (
    broker,
    command_line,
    files,
    platform,
    records,
    requests,
    rows,
    sealed_values,
    settings,
    sources,
    stores,
)
from tests.fuzz.decoders.decoder import Decoder

_GROUPS: Final = {
    "bodies of requests": requests.bodies,
    "queries and headers": requests.queries_and_headers,
    "tokens and published keys": platform.tokens,
    "answers of the platform's services": platform.answers,
    "messages": broker.messages,
    "what the broker says": broker.answers,
    "answers of the object store and Redis": stores.decoders,
    "files": files.decoders,
    "settings": settings.decoders,
    "arguments of commands": command_line.decoders,
    "sealed values": sealed_values.decoders,
    "records and remembered values": records.decoders,
    "what sources say before their rows": sources.decoders,
    "rows of sources": rows.decoders,
}
"""By what the document calls them."""


def decoders() -> dict[str, dict[str, Decoder]]:
    """By group and name; the files that some of them read lie in :data:`.decoder.FOLDERS`."""
    return {group: made() for group, made in _GROUPS.items()}
