"""Whether what a host supplied is the port it should be (spec 19.4).

``isinstance`` on a runtime protocol sees neither coroutine-ness nor argument counts, and accepts
classes; a badly configured host should fail at start-up, not in its first job.
"""

import inspect
import weakref
from collections.abc import Callable
from typing import Any, TypeVar

from fetcher_engine.errors import EngineError, ErrorCategory

P = TypeVar("P")


def check_port(value: P | None, protocol: type, label: str) -> P | None:
    """The port itself, or None where it is absent.

    Absent: None, a dead weak reference, an object whose ``__engine_absent__`` is true. Truthiness
    never decides. Raise ``validation`` with ``<label> is invalid`` when a method of the protocol is
    missing, is not callable, is a coroutine function where it should not be (or the reverse), or
    cannot take the arguments; also for a class in the place of an instance.
    """
    if value is None or getattr(value, "__engine_absent__", False) is True:
        return None
    if isinstance(value, weakref.ReferenceType) and value() is None:
        return None
    methods = _methods_of(protocol)
    if inspect.isclass(value) or not all(_fits(value, n, m) for n, m in methods.items()):
        raise EngineError(ErrorCategory.VALIDATION, f"{label} is invalid")
    return value


def check_extension(value: Any, protocol: type, label: str) -> Any:
    """The value as an extension of its port, or None where it lacks one of the methods.

    A port that has all of their names offers the extension, and must offer it rightly: raise
    ``validation`` with ``<label> is invalid`` as :func:`check_port` does.
    """
    if any(not callable(getattr(value, name, None)) for name in _methods_of(protocol)):
        return None
    return check_port(value, protocol, label)


def _methods_of(protocol: type) -> dict[str, Callable[..., object]]:
    return {
        name: member
        for cls in protocol.__mro__
        if getattr(cls, "_is_protocol", False)
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def _fits(value: object, name: str, wanted: Callable[..., object]) -> bool:
    method = getattr(value, name, None)
    if not callable(method) or _is_async(method) != inspect.iscoroutinefunction(wanted):
        return False
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # some callables of C extensions have none
        return True
    positional = list(inspect.signature(wanted).parameters)[1:]
    try:
        signature.bind(*positional)
    except TypeError:
        return False
    return True


def _is_async(method: Callable[..., object]) -> bool:
    if inspect.iscoroutinefunction(method):
        return True
    if inspect.iscoroutinefunction(type(method).__call__):
        return True
    # AsyncMock says so only by the flags of a code object that it makes up
    flags = getattr(getattr(method, "__code__", None), "co_flags", 0)
    return isinstance(flags, int) and bool(flags & inspect.CO_COROUTINE)
