"""Whether what a host supplied is the port it should be (spec 19.4).

``isinstance`` on a runtime protocol sees neither coroutine-ness nor argument counts, and accepts
classes; a badly configured host should fail at start-up, not in its first job.
"""

import functools
import inspect
import weakref
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, TypeVar

from fetcher_engine.errors import EngineError, ErrorCategory

P = TypeVar("P")


def check_port(value: P | None, protocol: type, label: str) -> P | None:
    """The port itself, or None where it is absent.

    Absent: None, a dead weak reference, an object whose ``__engine_absent__`` is truthy. Its own
    truthiness never decides. Raise ``validation`` with ``<label> is invalid`` when a method of the
    protocol is missing (a stub inherited from the protocol is missing too), is not callable, is a
    coroutine function where it should not be (or the reverse), or cannot take the arguments; also
    for a class in the place of an instance.
    """
    if value is None or _attribute(value, "__engine_absent__"):
        return None
    kind = type(value)  # `isinstance` would ask a proxy, which may stand for what is gone
    if issubclass(kind, weakref.ReferenceType) and value() is None:  # type: ignore[operator]  # it is a reference
        return None
    methods = _methods_of(protocol)
    wrong = [name for name, method in methods.items() if not _fits(value, name, method)]
    if wrong or issubclass(kind, type):
        raise _invalid(label, f"see {protocol.__name__}.{wrong[0]}" if wrong else "it is a class")
    return value


def check_extension(value: Any, protocol: type, port: type, label: str) -> Any:
    """The value as an extension of its ``port``, or None where it has none of its methods.

    One that has some of them means to offer it, and must offer it rightly: raise ``validation``
    with ``<label> is invalid`` as :func:`check_port` does.
    """
    own = _methods_of(protocol).keys() - _methods_of(port).keys()
    if not any(callable(_attribute(value, name)) for name in own):
        return None
    return check_port(value, protocol, label)


def _invalid(label: str, what: str) -> EngineError:
    failure = EngineError(ErrorCategory.VALIDATION, f"{label} is invalid")
    # for whoever wires the host: the text is fixed, a traceback shows this too
    failure.add_note(what)
    return failure


def _attribute(value: object, name: str) -> Any:
    """None also where the object cannot be asked: a proxy of what is gone, a broken property."""
    with suppress(Exception):
        return getattr(value, name, None)
    return None


@functools.cache
def _methods_of(protocol: type) -> Mapping[str, Callable[..., object]]:
    """Asked again and again, for a few protocols: a host may make an Engine for each request."""
    return {
        name: member
        for cls in protocol.__mro__
        if getattr(cls, "_is_protocol", False)
        for name, member in vars(cls).items()
        if inspect.isfunction(member) and not name.startswith("_")
    }


def _fits(value: object, name: str, wanted: Callable[..., object]) -> bool:
    method = _attribute(value, name)
    if not callable(method) or getattr(method, "__func__", None) is wanted:
        return False
    if _is_async(method) != inspect.iscoroutinefunction(wanted):
        return False
    try:
        signature = inspect.signature(method)
    except (TypeError, ValueError):  # some callables of C extensions have none
        return True
    try:
        signature.bind(*_positional(wanted))
    except TypeError:
        return False
    return True


@functools.cache
def _positional(wanted: Callable[..., object]) -> tuple[str, ...]:
    return tuple(inspect.signature(wanted).parameters)[1:]


def _is_async(method: Callable[..., object]) -> bool:
    while isinstance(method, functools.partial):
        method = method.func
    if inspect.iscoroutinefunction(method):
        return True
    if inspect.iscoroutinefunction(type(method).__call__):
        return True
    # AsyncMock and types.coroutine say so only by the flags of their code objects
    flags = getattr(getattr(method, "__code__", None), "co_flags", 0)
    coroutine = inspect.CO_COROUTINE | inspect.CO_ITERABLE_COROUTINE
    return isinstance(flags, int) and bool(flags & coroutine)
