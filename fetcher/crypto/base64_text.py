"""Standard base64 with padding, read as strictly as the contract reads it."""

import base64
import binascii


def decode_base64(text: str) -> bytes | None:
    """The bytes behind ``text``, None where it is not standard base64 with padding.

    CR and LF are ignored, any other foreign character is an error (spec worker-and-events 4.1).
    None instead of an exception: the caller says what was wrong without a trace of the text.
    """
    try:
        return base64.b64decode(text.replace("\r", "").replace("\n", ""), validate=True)
    except (binascii.Error, ValueError):
        return None
