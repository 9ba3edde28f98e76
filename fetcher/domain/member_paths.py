"""How an error names a member of a request: ``dataRequest.filters.db["public.orders"].id.eq``."""

import json
import re

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*", re.ASCII)
MAX_KEY_CHARACTERS = 100


def member(parent: str, key: str) -> str:
    """The path of a member below ``parent``; long keys are cut, unusual ones quoted."""
    shown = key if len(key) <= MAX_KEY_CHARACTERS else f"{key[:MAX_KEY_CHARACTERS]}…"
    if _PLAIN.fullmatch(shown):
        return f"{parent}.{shown}" if parent else shown
    return f"{parent}[{json.dumps(shown, ensure_ascii=False)}]"
