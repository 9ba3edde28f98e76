"""The two keys of a consumer, as `fetcher keys derive` prints them, from the environment."""

from collections.abc import Mapping
from typing import Final

from fetcher.log_secrets import live_secrets

EXTERNAL_KEY: Final = "FETCHER_EXTERNAL_HMAC_KEY"
STORAGE_KEY: Final = "FETCHER_STORAGE_KEY"
KEY_BYTES: Final = 32


class ConsumerKeyMalformed(Exception):
    """Names the variable, never its value."""


def consumer_key_in(environment: Mapping[str, str], name: str) -> bytes | None:
    """The key, masked in logs from then on; None where the variable is not set or blank.

    Raise ConsumerKeyMalformed.
    """
    text = environment.get(name, "").strip()
    if not text:
        return None
    live_secrets.hold([text])
    try:
        key = bytes.fromhex(text)
    except ValueError:
        key = b""
    if len(key) != KEY_BYTES:
        raise ConsumerKeyMalformed(f"{name}: not {2 * KEY_BYTES} hexadecimal digits")
    return key
