"""``Idempotency-Key`` (decisions)."""

import re

from quart import Request

from fetcher.domain.errors import FetcherError

IDEMPOTENCY_KEY = "Idempotency-Key"
_KEY = re.compile(r"[!-~]{1,255}", re.ASCII)


def sent_idempotency_key(request: Request) -> str | None:
    """None where there is no such header. Raise ``FET-0403``."""
    sent = request.headers.getlist(IDEMPOTENCY_KEY)
    if not sent:
        return None
    if len(sent) > 1 or not _KEY.fullmatch(sent[0]):
        raise FetcherError(
            "FET-0403",
            "Invalid header",
            f"{IDEMPOTENCY_KEY} must be one text of 1 to 255 visible ASCII characters",
        )
    return sent[0]
