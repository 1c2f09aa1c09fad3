"""Loading: from a file or a module that declares operators to the operators."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from importlib.machinery import SourceFileLoader
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from types import CodeType, ModuleType
from typing import TypeAlias

import msgspec

from trimtab.client.errors import TrimtabError
from trimtab.runtime.operator import Operator

Name: TypeAlias = str | os.PathLike[str]
"""Of a file. :mod:`pathlib` is left to those who need more of it: it is large."""


class _Fresh(SourceFileLoader):
    """Compiles the file as it is: of two saves in one second Python keeps the first."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        code: CodeType = self.source_to_code(self.get_data(path), path)
        return code


class NotAnOperator(TrimtabError):
    """The file cannot be run as an operator."""


class Source(msgspec.Struct, frozen=True):
    """A file or module that was loaded, and what it declares."""

    name: str
    """As the user named it."""
    module: ModuleType

    def operators(self) -> dict[str, Operator]:
        """Every operator of the module, by its name.

        Errors: :class:`NotAnOperator` when two have one name.
        """
        every = [each for each in vars(self.module).values() if _is_operator(each)]
        found: dict[str, Operator] = {}
        for each in every:
            if found.setdefault(each.name, each) is not each:
                raise NotAnOperator(
                    f"{self.name} declares two operators named {each.name!r}, which "
                    "would share one lease; give one of them another name."
                )
        return found

    def operator(self, *, name: str | None = None) -> Operator:
        """The one operator; ``name`` chooses among several."""
        operator = _chosen(self, name)
        check(operator, source=self.name)
        return operator


def check(operator: Operator, *, source: str) -> None:
    """Refuse an operator that reconciles nothing, or finalizes only."""
    try:
        operator.controllers()
    except ValueError as error:
        raise NotAnOperator(f"{source}: {error}") from error


def source_of(target: Name) -> Source:
    """Load a file (``website.py``) or a module (``shop.operator``).

    Errors: :class:`NotAnOperator` when it is not there, or fails.
    """
    text = os.fspath(target)
    if text is not target or text.endswith(".py") or os.path.isfile(text):
        return Source(text, module_in(text))
    if "/" in text or not all(part.isidentifier() for part in text.split(".")):
        return Source(text, module_in(text))
    return Source(text, _imported(text))


def operators_of(targets: Sequence[str], *, name: str | None = None) -> list[Operator]:
    """The operators of several files and modules, each name once.

    Errors: :class:`NotAnOperator` when a target has none, or two have one name.
    """
    found: dict[str, tuple[str, Operator]] = {}
    for target in targets:
        source = source_of(target)
        chosen = [source.operator(name=name)]
        if name is None and len(targets) > 1:
            chosen = list(source.operators().values()) or chosen
        for each in chosen:
            check(each, source=source.name)
            other, held = found.setdefault(each.name, (source.name, each))
            if held is not each:
                raise NotAnOperator(
                    f"{other} and {source.name} both declare an operator named "
                    f"{each.name!r}, which would share one lease; give one of them "
                    "another name."
                )
    return [operator for _, operator in found.values()]


def operator_in(file: Name, *, name: str | None = None) -> Operator:
    """The operator that a file declares; ``name`` chooses among several.

    Errors: :class:`NotAnOperator` when the file is not there, fails, or declares none
    or several.
    """
    return source_of(file).operator(name=name)


def _is_operator(each: object) -> bool:
    return isinstance(each, Operator)


def _chosen(source: Source, name: str | None) -> Operator:
    found = source.operators()
    if name is not None:
        if name not in found:
            raise NotAnOperator(
                f"{source.name} declares no operator {name!r}; it has {_names(found)}."
            )
        return found[name]
    if len(found) != 1:
        raise NotAnOperator(
            f"{source.name} declares {_names(found)}; "
            + (
                "choose one with --operator."
                if found
                else "write app = trimtab.Operator('NAME') and decorate a function "
                "with @app.reconciles(…)."
            )
        )
    return next(iter(found.values()))


def _names(found: dict[str, Operator]) -> str:
    return ", ".join(map(repr, found)) or "no operator"


def module_in(name: Name) -> ModuleType:
    """A file, loaded as a module.

    Errors: :class:`NotAnOperator` when it is not there, or fails.
    """
    file = os.fspath(name)
    if not os.path.isfile(file):
        raise NotAnOperator(f"There is no file {file}; name the one with the operator.")
    if not file.endswith(".py"):
        raise NotAnOperator(f"{file} is not a Python file; its name ends in .py.")
    free = _free_name(file)
    spec = spec_from_file_location(free, file, loader=_Fresh(free, file))
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    # So that what stands beside the file can be imported, as python itself would.
    sys.path.insert(0, os.path.dirname(os.path.realpath(file)))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        where = _line(error, file)
        raise NotAnOperator(
            f"{file}{where} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return module


def _imported(name: str) -> ModuleType:
    """A module by its name, as ``python -m`` finds it: from here, or installed."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        known = find_spec(name) is not None
    except (ImportError, ValueError, AttributeError):
        known = False
    if not known:
        raise NotAnOperator(
            f"There is no file and no module {name}; name the one with the operator."
        )
    try:
        return import_module(name)
    except (Exception, SystemExit) as error:
        raise NotAnOperator(
            f"{name} cannot be loaded: {type(error).__name__}: {error}"
        ) from error


def _free_name(file: str) -> str:
    """A name for the module: not one that others import, such as ``operator``."""
    stem = os.path.splitext(os.path.basename(file))[0]
    name = stem.replace("-", "_")
    chosen, number = name, 0
    # A file that is loaded again is another module: classes look up by its name what
    # their annotations mean.
    while chosen in sys.modules or chosen in sys.stdlib_module_names:
        number += 1
        chosen = f"trimtab_run_{name}" + (f"_{number}" if number > 1 else "")
    return chosen


def _line(error: BaseException, file: str) -> str:
    """The last line of the file itself that the error came through."""
    file = os.path.abspath(file)
    if isinstance(error, SyntaxError) and os.path.abspath(error.filename or "") == file:
        return f":{error.lineno}"
    line, trace = "", error.__traceback__
    while trace is not None:
        if os.path.abspath(trace.tb_frame.f_code.co_filename) == file:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
