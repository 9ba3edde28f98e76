"""The headers that every message of ours carries (spec worker-and-events 2.3, 8.2)."""

from collections.abc import Mapping
from typing import Final, TypeAlias

HeaderValue: TypeAlias = str | int | bytearray
"""``str`` travels as AMQP long string, ``int`` as 32-bit integer, ``bytearray`` as byte array."""

REQUEST_ID_HEADER: Final = "X-Request-Id"
RETRY_COUNT_HEADER: Final = "x-retry-count"
TENANT_HEADER: Final = "X-Tenant-ID"

_OWNED_HEADERS = frozenset(
    {
        REQUEST_ID_HEADER,
        RETRY_COUNT_HEADER,
        TENANT_HEADER,
        "x-message-signature",
        "t",
        "signature-version",
    }
)


def envelope(
    headers: Mapping[str, HeaderValue], *, request_id: str, tenant: str
) -> dict[str, HeaderValue]:
    """``headers`` with request id, retry count and tenant set; to be signed last.

    The six headers that the envelope and the signature own are dropped from what was given (exact,
    case-sensitive names). An empty ``tenant`` sends no tenant header.
    """
    kept = {name: value for name, value in headers.items() if name not in _OWNED_HEADERS}
    kept[REQUEST_ID_HEADER] = request_id
    # always 0: nobody reads or increments it
    kept[RETRY_COUNT_HEADER] = 0
    if tenant:
        kept[TENANT_HEADER] = tenant
    return kept
