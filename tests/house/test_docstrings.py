"""What every public docstring of the mathematics says: ranges or units, errors, source, and each argument by name.

The rule is mechanical: a function, or a public method with arguments, that a module of `parco.privacy` names in
`__all__` has a docstring in which stand "Source" (or "source"), "raise" or the name of an error, some range or unit,
and each parameter (as written, or with blanks for underscores). A class names its fields.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import pkgutil
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import parco.privacy

RANGE_OR_UNIT = re.compile(r"[<>]=?|\bin \(|\bin \[|\bnats\b|\bunits\b|10\^-|shape")
ERROR = re.compile(r"[Rr]ais(e|ing)|\b\w+Error\b")


def modules() -> list[str]:
    """The modules of the room; of a package within it, what its front page names: the rest is its own."""
    found = [module.name for module in pkgutil.iter_modules(parco.privacy.__path__, "parco.privacy.")]
    return [name for name in found if not name.rsplit(".", 1)[1].startswith("_")]


def public() -> Iterator[tuple[str, Any]]:
    for name in modules():
        module = importlib.import_module(name)
        for own in module.__all__:
            yield f"{name}.{own}", getattr(module, own)


def functions() -> Iterator[tuple[str, Callable[..., Any]]]:
    for name, found in public():
        if inspect.isfunction(found):
            yield name, found
        elif inspect.isclass(found):
            methods = [(own, method) for own, method in vars(found).items() if inspect.isfunction(method)]
            yield from ((f"{name}.{own}", method) for own, method in methods if _is_asked(own, method))


def _is_asked(name: str, method: Callable[..., Any]) -> bool:
    """Public, and with an argument: what only shows a record tells by its first line what it shows."""
    return not name.startswith("_") and len(inspect.signature(method).parameters) > 1


def faults(function: Callable[..., Any]) -> list[str]:
    text = inspect.getdoc(function) or ""
    names = [name for name in inspect.signature(function).parameters if name != "self"]
    missing = [name for name in names if not _named(name, text)]
    checks = {
        "a source": re.search(r"\b[Ss]ource\b", text),
        "its errors": ERROR.search(text),
        "a range or unit": not names or RANGE_OR_UNIT.search(text),
    }
    return missing + [what for what, stands in checks.items() if not stands]


def _named(name: str, text: str) -> bool:
    return any(re.search(rf"\b{form}\b", text, flags=re.IGNORECASE) for form in (name, name.replace("_", r"\s+")))


@pytest.mark.parametrize(("name", "function"), [pytest.param(*case, id=case[0]) for case in functions()])
def test_a_public_docstring_of_the_mathematics_is_complete(name: str, function: Callable[..., Any]) -> None:
    assert faults(function) == []


def test_a_public_record_of_the_mathematics_names_its_fields() -> None:
    for name, found in public():
        if dataclasses.is_dataclass(found):
            text = inspect.getdoc(found) or ""
            assert [field.name for field in dataclasses.fields(found) if not _named(field.name, text)] == [], name


def test_the_rule_bites() -> None:
    def half_told(mu_squared: float, delta: float) -> float:
        """For every mu squared >= 0, returns something."""
        return mu_squared + delta

    assert faults(half_told) == ["delta", "a source", "its errors"]
    assert len(list(functions())) >= 50


def test_every_section_that_is_cited_is_there() -> None:
    root = Path(__file__).parents[2]
    headings = set(re.findall(r"^#+ (.+)$", (root / "docs" / "mathematics.md").read_text("utf-8"), flags=re.MULTILINE))
    cited = [
        (path.name, re.sub(r"\s+", " ", name))
        for path in (root / "src").rglob("*.py")
        for name in re.findall(r'docs/mathematics\.md,\s+"([^"]+)"', path.read_text("utf-8"))
    ]
    assert len(cited) > 50
    assert [place for place in cited if place[1] not in headings] == []
