"""Texts from files that the operator names: bounded, and told apart by what is wrong with them."""

import os
import stat
from typing import Final

MAX_SECRET_BYTES: Final = 64 * 1024


class FileUnusable(Exception):
    """``str()`` says what is wrong, to stand behind a name and a colon; never the content."""


def secret_of(file_name: str) -> str:
    """The file's text without its last line end. Raise FileUnusable."""
    text = text_of(file_name, max_bytes=MAX_SECRET_BYTES)
    secret = text.removesuffix("\n").removesuffix("\r")
    if not secret.strip():
        raise FileUnusable("the file is empty")
    return secret


def text_of(file_name: str | os.PathLike[str], *, max_bytes: int) -> str:
    """The text of a regular file. Raise FileUnusable, also for what would never end or answer."""
    try:
        descriptor = os.open(file_name, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            is_regular = stat.S_ISREG(os.fstat(descriptor).st_mode)
            content = file.read(max_bytes + 1) if is_regular else b""
    except (OSError, ValueError):
        raise FileUnusable("the file cannot be read") from None
    if not is_regular:
        raise FileUnusable("it is no regular file")
    if len(content) > max_bytes:
        raise FileUnusable(f"the file is larger than {max_bytes // 1024} KiB")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError:
        raise FileUnusable("the file is not UTF-8") from None
