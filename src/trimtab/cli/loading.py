"""Loading: from a file that declares operators to the operators."""

from __future__ import annotations

import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

from trimtab.client.errors import TrimtabError
from trimtab.runtime.operator import Operator


class NotAnOperator(TrimtabError):
    """The file cannot be run as an operator."""


def operator_in(file: Path, *, name: str | None = None) -> Operator:
    """The operator that a file declares; ``name`` chooses among several.

    Errors: :class:`NotAnOperator` when the file is not there, fails, or declares none
    or several.
    """
    operator = _chosen(file, name)
    try:
        operator.controllers()
    except ValueError as error:
        raise NotAnOperator(f"{file}: {error}") from error
    return operator


def _chosen(file: Path, name: str | None) -> Operator:
    module = _module(file)
    found = {
        each.name: each for each in vars(module).values() if isinstance(each, Operator)
    }
    if name is not None:
        if name not in found:
            raise NotAnOperator(
                f"{file} declares no operator {name!r}; it has {_names(found)}."
            )
        return found[name]
    if len(found) != 1:
        raise NotAnOperator(
            f"{file} declares {_names(found)}; "
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


def _module(file: Path) -> ModuleType:
    if not file.is_file():
        raise NotAnOperator(f"There is no file {file}; name the one with the operator.")
    spec = spec_from_file_location(_free_name(file), file)
    if spec is None or spec.loader is None:
        raise NotAnOperator(f"{file} is not a Python file; its name ends in .py.")
    module = module_from_spec(spec)
    # So that what stands beside the file can be imported, as python itself would.
    sys.path.insert(0, str(file.resolve().parent))
    sys.modules[spec.name] = module
    try:
        spec.loader.exec_module(module)
    except (Exception, SystemExit) as error:
        where = _line(error, file)
        raise NotAnOperator(
            f"{file}{where} cannot be loaded: {type(error).__name__}: {error}"
        ) from error
    return module


def _free_name(file: Path) -> str:
    """A name for the module: not one that others import, such as ``operator``."""
    name = file.stem.replace("-", "_")
    taken = name in sys.modules or name in sys.stdlib_module_names
    return f"trimtab_run_{name}" if taken else name


def _line(error: BaseException, file: Path) -> str:
    """The last line of the file itself that the error came through."""
    file = file.absolute()
    if isinstance(error, SyntaxError) and Path(error.filename or "") == file:
        return f":{error.lineno}"
    line, trace = "", error.__traceback__
    while trace is not None:
        if Path(trace.tb_frame.f_code.co_filename) == file:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line
