"""Trust roots in settings: base64 of PEM."""

import base64
import binascii
import ssl


def ca_pem(text: str) -> str:
    """The roots as PEM, empty where there are none; raise ValueError for what is no PEM."""
    if not text:
        return ""
    try:
        pem = base64.b64decode(text.strip(), validate=True).decode("ascii")
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem)
    except (binascii.Error, UnicodeError, ssl.SSLError, ValueError):
        pem = ""
    if not pem:
        raise ValueError("no certificates")
    return pem


def ca_rules(name: str, text: str) -> list[str]:
    """The rule for the setting ``name``, where its text is no PEM."""
    try:
        ca_pem(text)
    except ValueError:
        return [f"{name}: must be the base64 of certificates in PEM"]
    return []
