"""What a filter condition means, before any database's words (spec datasources 9.2).

The operators of one field become predicates that are ANDed. Values are still JSON values: a data
source converts them by its column's type.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from fetcher.domain.jobs import Operator
from fetcher.domain.json_values import JsonScalar


class MalformedCondition(Exception):
    """The condition is none: an unknown operator, a wrong count or kind of values."""


@dataclass(frozen=True, slots=True)
class Membership:
    """The column equals one of ``values`` (or none of them); ``with_null`` adds NULL to the list.

    Without any value it is never true, negated always.
    """

    values: tuple[JsonScalar, ...] = field(repr=False)
    with_null: bool
    negated: bool


@dataclass(frozen=True, slots=True)
class Comparison:
    """``sign`` is one of ``< <= > >=``."""

    sign: str
    value: JsonScalar = field(repr=False)


@dataclass(frozen=True, slots=True)
class Between:
    """Inclusive at both ends; a date as the upper end of a date-time means that whole day."""

    low: JsonScalar = field(repr=False)
    high: JsonScalar = field(repr=False)


@dataclass(frozen=True, slots=True)
class Like:
    """One of the patterns matches: ``%`` any text, ``_`` one character, ``\\`` escapes."""

    patterns: tuple[str, ...] = field(repr=False)


@dataclass(frozen=True, slots=True)
class NullCheck:
    is_null: bool


Predicate: TypeAlias = Membership | Comparison | Between | Like | NullCheck


def predicates_of(condition: object) -> tuple[Predicate, ...]:
    """The predicates of one field, in the order of :class:`Operator`; raise MalformedCondition."""
    if not isinstance(condition, Mapping) or not condition:
        raise MalformedCondition
    unknown = set(condition) - set(Operator)
    if unknown:
        raise MalformedCondition
    return tuple(
        _BUILDERS[operator](_scalars(condition[operator]))
        for operator in Operator
        if operator in condition
    )


def _scalars(values: object) -> tuple[JsonScalar, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise MalformedCondition
    return tuple(values)


def _membership(*, negated: bool) -> Callable[[tuple[JsonScalar, ...]], Predicate]:
    def build(values: tuple[JsonScalar, ...]) -> Predicate:
        present = tuple(value for value in values if value is not None)
        return Membership(present, with_null=len(present) < len(values), negated=negated)

    return build


def _comparison(sign: str) -> Callable[[tuple[JsonScalar, ...]], Predicate]:
    def build(values: tuple[JsonScalar, ...]) -> Predicate:
        (value,) = _present(values, count=1)
        return Comparison(sign, value)

    return build


def _between(values: tuple[JsonScalar, ...]) -> Predicate:
    low, high = _present(values, count=2)
    return Between(low, high)


def _like(values: tuple[JsonScalar, ...]) -> Predicate:
    patterns = tuple(value for value in values if isinstance(value, str))
    if not patterns or len(patterns) < len(values):
        raise MalformedCondition
    return Like(tuple(map(_with_whole_escapes, patterns)))


def _with_whole_escapes(pattern: str) -> str:
    """A backslash at the very end escapes nothing: it stands for itself."""
    trailing = len(pattern) - len(pattern.rstrip("\\"))
    return pattern + "\\" if trailing % 2 else pattern


def _null_check(*, is_null: bool) -> Callable[[tuple[JsonScalar, ...]], Predicate]:
    def build(values: tuple[JsonScalar, ...]) -> Predicate:
        (value,) = _present(values, count=1)
        if not isinstance(value, bool):
            raise MalformedCondition
        return NullCheck(is_null is value)

    return build


def _present(values: tuple[JsonScalar, ...], *, count: int) -> tuple[JsonScalar, ...]:
    if len(values) != count or None in values:
        raise MalformedCondition
    return values


_BUILDERS: dict[Operator, Callable[[tuple[JsonScalar, ...]], Predicate]] = {
    Operator.EQ: _membership(negated=False),
    Operator.IN: _membership(negated=False),
    Operator.NE: _membership(negated=True),
    Operator.NIN: _membership(negated=True),
    Operator.GT: _comparison(">"),
    Operator.GTE: _comparison(">="),
    Operator.LT: _comparison("<"),
    Operator.LTE: _comparison("<="),
    Operator.BETWEEN: _between,
    Operator.LIKE: _like,
    Operator.IS_NULL: _null_check(is_null=True),
    Operator.NOT_NULL: _null_check(is_null=False),
}
