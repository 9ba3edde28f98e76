"""Compares the broker's objects with the table, and declares those that are missing.

AMQP tells whether an object is there (a passive declare) and, of one that is there, the first
attribute in which it differs from a declaration (406). The rest is asked for by declaring again
with the value that was told. Nothing that exists is ever changed.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeAlias

from aiormq import Channel
from pamqp.common import FieldValue

from fetcher.adapters.amqp.connection import BrokerConnection
from fetcher.adapters.amqp.failures import (
    NOT_FOUND,
    PRECONDITION_FAILED,
    Refusal,
    call_broker,
    refusal_of,
)
from fetcher.adapters.amqp.topology import (
    CONSUMER_TIMEOUT_SINCE,
    Binding,
    Exchange,
    Queue,
    QueueType,
    TopologyNames,
    topology,
)
from fetcher.domain.errors import PortUnavailable
from fetcher.domain.probe_text import safe_error_text
from fetcher.domain.topology import Finding, FindingStatus

DECLARE_SECONDS: Final = 10.0
MAX_DIFFERENCES: Final = 20

Arguments: TypeAlias = Mapping[str, FieldValue]

_DIFFERENCE = re.compile(
    r"inequivalent arg '(?P<name>[^']{1,100})' for .{1,600}: received .{1,600} but current is "
    r"(?:(?P<none>none)|the value '(?P<value>.{0,255})' of type '(?P<type>\w{1,30})'"
    r"|'(?P<plain>.{0,255})')$",
    re.DOTALL,
)
_TEXT_TYPES = frozenset({"longstr", "shortstr"})
_TUNABLE = {
    "x-delivery-limit": "a message may be delivered without limit, and with RabbitMQ 4 20 times",
    "x-consumer-timeout": "the broker's own timeout holds: RABBITMQ_CONSUMER_TIMEOUT_SEC must not"
    " be more than that",
    "x-overflow": "the oldest dead letters are dropped when it is full",
}
"""Arguments of which a queue may do without, and what is lost by that."""


class TopologyCheck:
    """Looks at the objects over one connection. Raises PortUnavailable where it breaks."""

    def __init__(self, connection: BrokerConnection) -> None:
        self._connection = connection

    async def settle(
        self,
        names: TopologyNames,
        *,
        create: bool,
        queue_type: QueueType = QueueType.QUORUM,
        consumer_timeout_seconds: float | None = None,
    ) -> list[Finding]:
        """What is there, object by object; with ``create`` what is missing is declared."""
        knows_timeout = await self._connection.broker_version() >= CONSUMER_TIMEOUT_SINCE
        timeout_ms = None
        if consumer_timeout_seconds is not None and knows_timeout:
            timeout_ms = int(consumer_timeout_seconds * 1000)
        wanted = topology(names, queue_type=queue_type, consumer_timeout_ms=timeout_ms)
        findings = [await self._exchange(exchange, create) for exchange in wanted.exchanges]
        findings += [await self._queue(queue, create) for queue in wanted.queues]
        findings += [await self._binding(binding, create) for binding in wanted.bindings]
        return findings

    async def arguments_of(self, queue: Queue) -> Arguments | None:
        """What a queue that is there has; None where our user may not compare, or nothing tells.

        Raises PortUnavailable, also where the queue is missing."""
        there = await self._try(lambda c: c.queue_declare(queue.name, passive=True))
        if there is not None:
            raise PortUnavailable("the broker has no such queue or exchange")
        actual = await self._compared(queue)
        return None if isinstance(actual, Refusal) else actual

    async def _exchange(self, exchange: Exchange, create: bool) -> Finding:
        def found(status: FindingStatus, *details: str) -> Finding:
            return Finding(kind="exchange", name=exchange.name, status=status, details=details)

        there = await self._try(lambda c: c.exchange_declare(exchange.name, passive=True))
        if there is not None and (there.code != NOT_FOUND or not create):
            return found(_status(there), *_no_right(there))
        refusal = await self._try(
            lambda c: c.exchange_declare(exchange.name, exchange_type=exchange.kind, durable=True)
        )
        if refusal is None:
            return found(FindingStatus.OK if there is None else FindingStatus.CREATED)
        if refusal.code != PRECONDITION_FAILED:
            return found(*_comparing_failed(there is None, refusal))
        return found(FindingStatus.DIFFERS, _told_difference(refusal.text, exchange.kind))

    async def _queue(self, queue: Queue, create: bool) -> Finding:
        def found(status: FindingStatus, *details: str) -> Finding:
            return Finding(kind="queue", name=queue.name, status=status, details=details)

        there = await self._try(lambda c: c.queue_declare(queue.name, passive=True))
        if there is not None and (there.code != NOT_FOUND or not create):
            return found(_status(there), *_no_right(there))
        actual = await self._compared(queue)
        if isinstance(actual, Refusal):
            if actual.code != PRECONDITION_FAILED:
                return found(*_comparing_failed(there is None, actual))
            return found(FindingStatus.DIFFERS, _told_difference(actual.text, "durable"))
        if there is not None:
            return found(FindingStatus.CREATED)
        return found(*judge(queue, actual))

    async def _compared(self, queue: Queue) -> Arguments | Refusal:
        """Declare it until the broker agrees: the arguments that it has, or why not."""
        actual: dict[str, FieldValue] = {**queue.arguments}
        for _ in range(MAX_DIFFERENCES):
            asked = dict(actual)
            refusal = await self._try(
                lambda c: c.queue_declare(queue.name, durable=True, arguments=asked)  # noqa: B023
            )
            if refusal is None:
                break
            if refusal.code != PRECONDITION_FAILED or not _learn(actual, refusal.text):
                return refusal
            if is_classic(actual) and not is_classic(asked):
                # Of a classic queue the broker does not compare what only quorum queues have.
                actual = {**queue.classic}
        return actual

    async def _binding(self, binding: Binding, create: bool) -> Finding:
        def found(status: FindingStatus, *details: str) -> Finding:
            name = f"{binding.exchange} -> {binding.queue} ({binding.key})"
            return Finding(kind="binding", name=name, status=status, details=details)

        if not create:
            return found(
                FindingStatus.UNCHECKED,
                "AMQP tells a binding only to who sends a message through it, and that may reach a"
                " subscriber: see `rabbitmqctl list_bindings`; `declare` may be repeated safely",
                binding.unbound,
            )
        refusal = await self._try(
            lambda c: c.queue_bind(binding.queue, binding.exchange, binding.key)
        )
        if refusal is None:
            return found(FindingStatus.OK)
        return found(_status(refusal), *_no_right(refusal))

    async def _try(self, operation: Callable[[Channel], Awaitable[object]]) -> Refusal | None:
        channel = await self._connection.open_channel(confirms=False)

        async def attempt() -> Refusal | None:
            return await refusal_of(operation(channel))

        try:
            return await call_broker(DECLARE_SECONDS, attempt)
        finally:
            await self._connection.close_channel(channel)


def judge(queue: Queue, actual: Mapping[str, FieldValue]) -> tuple[FindingStatus, *tuple[str, ...]]:
    """A queue's arguments against the table: a classic one that serves is accepted, no stream."""
    have_type = actual.get("x-queue-type", "classic")
    if have_type not in tuple(QueueType) and not queue.of_any_type:
        wanted = queue.arguments.get("x-queue-type", "classic")
        return (
            FindingStatus.DIFFERS,
            f"x-queue-type is {_shown(have_type)}, should be {wanted}: nothing is ever taken off"
            " a stream",
        )
    have_classic, wants_classic = is_classic(actual), is_classic(queue.arguments)
    expected = queue.classic if have_classic else queue.arguments
    differences: list[str] = []
    remarks: list[str] = []
    for name in sorted({*expected, *actual} - {"x-queue-type"}):
        have, want = actual.get(name), expected.get(name)
        if have is None and name in _TUNABLE:
            remarks.append(f"{name} is not set: {_TUNABLE[name]}")
        elif have != want:
            differences.append(f"{name} is {_shown(have)}, should be {_shown(want)}")
    if have_classic and not wants_classic:
        remarks.insert(0, "a classic queue: it is lost with its node")
    elif wants_classic and not have_classic:
        remarks.insert(0, f"its type is {_shown(actual.get('x-queue-type'))}")
    told = [*differences, *remarks]
    if differences:
        return FindingStatus.DIFFERS, *told
    return (FindingStatus.ACCEPTED if remarks else FindingStatus.OK), *told


def is_classic(arguments: Mapping[str, FieldValue]) -> bool:
    return arguments.get("x-queue-type", "classic") == "classic"


def _learn(actual: dict[str, FieldValue], text: str) -> bool:
    """Put the argument that the broker named to what it says; False where that cannot be read."""
    told = _DIFFERENCE.search(text)
    if told is None or not told["name"].startswith("x-"):
        return False
    name = told["name"]
    if told["none"]:
        return actual.pop(name, None) is not None
    value = told["plain"] if told["value"] is None else told["value"]
    known = actual.get(name)
    is_text = told["type"] in _TEXT_TYPES or isinstance(known, str)
    if is_text:
        actual[name] = value
    elif re.fullmatch(r"-?\d{1,18}", value, re.ASCII):
        actual[name] = int(value)
    else:
        return False
    return actual[name] != known


def _told_difference(text: str, fallback: str) -> str:
    told = _DIFFERENCE.search(text)
    if told is None:
        return f"other attributes than those of the table ({fallback})"
    current = told["plain"] or told["value"] or "none"
    return safe_error_text(f"its {told['name']} is {current}")


def _status(refusal: Refusal) -> FindingStatus:
    return FindingStatus.MISSING if refusal.code == NOT_FOUND else FindingStatus.REFUSED


def _no_right(refusal: Refusal) -> tuple[str, ...]:
    if refusal.code == NOT_FOUND:
        return ()
    return (_REASONS.get(refusal.code, "the broker refused it"),)


_REASONS: Mapping[int, str] = {
    403: "our user has no right to it",
    405: "another connection holds it exclusively",
}


def _comparing_failed(exists: bool, refusal: Refusal) -> tuple[FindingStatus, *tuple[str, ...]]:
    """Who may not configure an object is not told its attributes either."""
    if exists and refusal.code == 403:
        return (
            FindingStatus.UNCHECKED,
            "it is there; our user has no right to compare its arguments",
        )
    return FindingStatus.REFUSED, *_no_right(refusal)


def _shown(value: object) -> str:
    return "not set" if value is None else safe_error_text(str(value))
