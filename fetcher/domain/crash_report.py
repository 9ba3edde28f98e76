"""What a log may say of a crash: types and places, never texts.

An exception that nobody expected may carry anything in its text: a driver's message, an address, a
row. Its type and the lines it came through are what a programmer needs.
"""

import traceback

MAX_FRAMES = 12


def crash_types(crash: BaseException) -> str:
    """``KeyError``, or for a group ``ExceptionGroup(KeyError, ValueError)``."""
    if isinstance(crash, BaseExceptionGroup):
        inner = ", ".join(crash_types(error) for error in crash.exceptions)
        return f"{type(crash).__name__}({inner})"
    return type(crash).__name__


def crash_places(crash: BaseException) -> list[str]:
    """The last frames of the first innermost exception, as ``file:line function``."""
    while isinstance(crash, BaseExceptionGroup):
        crash = crash.exceptions[0]
    frames = traceback.extract_tb(crash.__traceback__)[-MAX_FRAMES:]
    return [f"{frame.filename}:{frame.lineno} {frame.name}" for frame in frames]
