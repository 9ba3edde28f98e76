"""What the package offers: complete lists of names, docstrings that promise something, types."""

import ast
import inspect
import re
from collections.abc import Callable, Iterator
from enum import Enum
from pathlib import Path
from types import ModuleType

import pytest

import fetcher_engine
import fetcher_engine.memory
from fetcher_engine import ports

PACKAGE = Path(fetcher_engine.__file__).parent
MODULES = [fetcher_engine, fetcher_engine.memory]

NEITHER_CLASS_NOR_FUNCTION = {"Batch", "Job", "REDACTED", "Write", "encode_text"}

PORT_METHODS = {
    name
    for port in vars(ports).values()
    if inspect.isclass(port) and getattr(port, "_is_protocol", False)
    for name in vars(port)
    if not name.startswith("_")
}
"""A fake's method of such a name promises what its port does, whose docstring says it."""


def exported(module: ModuleType) -> Iterator[tuple[str, object]]:
    yield from ((name, getattr(module, name)) for name in module.__all__)


def exported_classes(module: ModuleType) -> Iterator[type]:
    yield from (value for _, value in exported(module) if inspect.isclass(value))


def public_methods(cls: type) -> Iterator[tuple[str, Callable[..., object]]]:
    """A class's own methods and properties, and what makes an instance of it."""
    for name, member in vars(cls).items():
        if name.startswith("_") and name != "__init__":
            continue
        function = (
            member.fget
            if isinstance(member, property)
            else inspect.unwrap(getattr(member, "__func__", member))
        )
        if inspect.isfunction(function) and function.__module__.startswith("fetcher_engine"):
            yield name, function


def words(text: str) -> set[str]:
    return set(re.findall(r"[a-z]+", re.sub(r"([A-Z])", r" \1", text).lower()))


def says_more_than(name: str, docstring: str | None) -> bool:
    """Whether a docstring has words that the name has not; dataclasses write one that repeats."""
    if not docstring or docstring.startswith(f"{name}("):
        return False
    return len(words(docstring) - words(name)) >= 2


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_list_of_names_is_sorted_as_ruff_sorts_it_and_complete(module: ModuleType) -> None:
    tree = ast.parse(inspect.getsource(module))
    imports = [node for node in tree.body if isinstance(node, ast.ImportFrom)]
    names = [alias.asname or alias.name for node in imports for alias in node.names]
    assert sorted(module.__all__) == sorted(names)
    assert len(set(names)) == len(names)
    assert [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)] == []
    constants = [name for name in module.__all__ if name.isupper()]
    classes = [name for name in module.__all__ if name[0].isupper() and not name.isupper()]
    functions = [name for name in module.__all__ if name.islower()]
    assert module.__all__ == [*sorted(constants), *sorted(classes), *sorted(functions)]


def test_every_name_is_a_class_or_a_function_but_these() -> None:
    others = {
        name
        for module in MODULES
        for name, value in exported(module)
        if not inspect.isclass(value) and not inspect.isfunction(value)
    }
    assert others == NEITHER_CLASS_NOR_FUNCTION


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_class_and_function_says_what_it_is_for(module: ModuleType) -> None:
    silent = [
        name
        for name, value in exported(module)
        if name not in NEITHER_CLASS_NOR_FUNCTION
        and not says_more_than(
            name, vars(value).get("__doc__") if inspect.isclass(value) else value.__doc__
        )
    ]
    assert silent == []


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_public_method_says_what_it_promises(module: ModuleType) -> None:
    known = PORT_METHODS if module is fetcher_engine.memory else set()
    silent = [
        f"{cls.__name__}.{name}"
        for cls in exported_classes(module)
        for name, function in public_methods(cls)
        if name != "__init__" and name not in known and not says_more_than(name, function.__doc__)
    ]
    assert silent == []


@pytest.mark.parametrize("module", MODULES, ids=lambda m: m.__name__)
def test_every_signature_is_annotated(module: ModuleType) -> None:
    functions: list[Callable[..., object]] = [
        value for _, value in exported(module) if inspect.isfunction(value)
    ]
    for cls in exported_classes(module):
        functions.extend(function for _, function in public_methods(cls))
    assert len(functions) > 30
    bare = [f.__qualname__ for f in functions if not is_annotated(f)]
    assert bare == []


def is_annotated(function: Callable[..., object]) -> bool:
    signature = inspect.signature(function)
    parameters = [p for name, p in signature.parameters.items() if name not in ("self", "cls")]
    annotations = [signature.return_annotation, *(p.annotation for p in parameters)]
    return inspect.Signature.empty not in annotations


def test_no_public_signature_speaks_of_any() -> None:
    """``Any`` would switch a host's type checker off."""
    loose = [
        function.__qualname__
        for module in MODULES
        for cls in exported_classes(module)
        for _, function in public_methods(cls)
        if re.search(r"\bAny\b", str(inspect.signature(function)))
    ]
    assert loose == []


def test_values_cannot_be_changed() -> None:
    values = [
        cls for cls in exported_classes(fetcher_engine) if hasattr(cls, "__dataclass_fields__")
    ]
    assert len(values) > 20
    assert [cls.__name__ for cls in values if "__setattr__" not in vars(cls)] == []
    assert [cls.__name__ for cls in values if "__slots__" not in vars(cls)] == []


def test_closed_sets_are_texts() -> None:
    enums = [cls for cls in exported_classes(fetcher_engine) if issubclass(cls, Enum)]
    assert len(enums) > 4
    assert [cls.__name__ for cls in enums if not issubclass(cls, str)] == []


def test_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").read_text() == ""


@pytest.mark.parametrize(
    ("name", "docstring", "expected"),
    [
        ("has_table", None, False),
        ("has_table", "", False),
        ("has_table", "Has table.", False),
        ("Page", "Page(items: tuple[int, ...], total: int)", False),
        ("has_table", "Whether there is a table of exactly this name.", True),
    ],
)
def test_docstring_that_repeats_the_name_is_found(
    name: str, docstring: str | None, expected: bool
) -> None:
    assert says_more_than(name, docstring) is expected
