"""The last line of defence for texts that leave the process (spec worker-and-events 8.5).

Our texts are built from safe parts; these rules hold should one ever carry more than it may.
"""

import re
from typing import Final

MAX_MESSAGE_CHARS: Final = 2000
MARKER: Final = "[redacted]"

# work is bounded before the rules run; what lies beyond could not be shown anyway
_MAX_INPUT_CHARS = 20_000

_RULES: Final = tuple(
    (re.compile(pattern, re.ASCII | flags), replacement)
    for pattern, replacement, flags in (
        # the four of the reference, in its order; the look-behind only spares a quadratic search
        (r"(?<!\w)\w++://[^\s]+", MARKER, 0),
        (r"\b(dial (?:tcp|udp)|read tcp|write tcp|lookup)\s+\S+", rf"\1 {MARKER}", 0),
        (r"Addr:\s+\S+", f"Addr: {MARKER}", 0),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}(?::\d+)?\b", MARKER, 0),
        # ours: secrets as key=value, and the host as drivers of today name it
        (
            r"((?:password|passwd|pwd|passphrase|secret|token|api[_-]?key|access[_-]?key)"
            r"[\w-]{0,32}\s{0,8}=\s{0,8})"
            r"""(?:"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)*'?|\S)\S*""",
            rf"\1{MARKER}",
            re.IGNORECASE,
        ),
        (
            r"""\b(server (?:at|on)\s{1,8})(?:"[^"]*+"?|'[^']*+'?)""",
            rf"\1{MARKER}",
            re.IGNORECASE,
        ),
    )
)


def redact(text: str) -> str:
    """``text`` without addresses, hosts and secrets, at most 2000 characters."""
    text = text[:_MAX_INPUT_CHARS]
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text[:MAX_MESSAGE_CHARS]
