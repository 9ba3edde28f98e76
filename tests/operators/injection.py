"""Values and names that would be something else, if they were ever pasted (case 11)."""

from typing import Final

_TEXTS: Final = (
    "x'; DROP TABLE t; --",
    "x' OR '1'='1",
    "x\\' OR 1=1 -- ",
    "x'; SELECT pg_sleep(9); --",
    "'; EXEC xp_cmdshell('id'); --",
    "' || (SELECT password FROM users) || '",
    '{"$gt": ""}',
    "$where",
    "@P1",
    ":1",
    "%s %(x)s {0}",
    "\u02bc OR 1=1",
    "\u00bf\u0027 OR 1=1 --",
    "/*", "*/", "--", "#", ";", "`", '"', "[", "$$", "\\",
)  # fmt: skip

ATTEMPTS: Final = (
    *({"eq": [text]} for text in _TEXTS),
    *({"like": [text]} for text in _TEXTS),
    {"in": [*_TEXTS]},
    {"like": ["%_\\"]},
    {"gt": ["z'; DROP TABLE t; --"], "lt": ["z'; DROP TABLE t; --"]},
)
"""Conditions on the names of the rows; none of them holds."""

IDENTIFIERS: Final = ('t"; --', "name; --", "name`", "name]", "1=1", "*", "name\\", "x'")
"""Fields that there are none of."""
