"""``trimtab``: chooses the command, and says in one sentence why it failed.

A command is a module with ``add``, which describes its arguments, and ``run``, which is
given them. What costs time to import is imported by ``run``.
"""

from __future__ import annotations

import argparse
import os
import select
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import trimtab
from trimtab.cli.common import INTERRUPTED

COMMANDS = (
    "new",
    "run",
    "dev",
    "sim",
    "crd",
    "rbac",
    "chart",
    "why",
    "top",
    "log",
    "migrate",
    "up",
    "kubelet",
    "pool",
    "vmafx",
    "sessions",
)
PACKAGES = {
    "aiohttp": "embedded",
    "cronsim": "sessions",
    "cryptography": "webhooks",
    "grpc": "vmafx",
    "jwt": "vmafx",
    "matplotlib": "plot",
    "numpy": "training",
    "onnx": "training",
    "onnxruntime": "training",
}
"""The extra that brings each package which not everybody has."""
UNREAD = 141
"""What a shell says of a program whose reader has gone: 128 and SIGPIPE."""
TRACEBACK = "TRIMTAB_TRACEBACK"


class Formatter(argparse.HelpFormatter):
    """As wide as the terminal. Argparse would ask :mod:`shutil`, which is large."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=_columns() - 2)


def _columns() -> int:
    try:
        return int(os.environ.get("COLUMNS", "")) or 80
    except ValueError:
        pass
    try:
        return os.get_terminal_size().columns or 80
    except OSError:  # there is none
        return 80


class Parser(argparse.ArgumentParser):
    """Argparse, but a mistake is answered with one sentence and the exit code 1."""

    def _get_formatter(self) -> argparse.HelpFormatter:
        return Formatter(self.prog)

    def error(self, message: str) -> NoReturn:
        self.exit(1, f"{self.prog}: {message}; see {self.prog} --help.\n")


def parser(only: str = "") -> Parser:
    """All commands and their arguments, or ``only`` one of them."""
    made = Parser(
        prog="trimtab",
        description="Operators for Kubernetes in Python, and a cluster to run them on.",
    )
    version = f"trimtab {trimtab.__version__}"
    made.add_argument("--version", action="version", version=version)
    commands = made.add_subparsers(metavar="COMMAND", parser_class=Parser)
    for name in [only] if only in COMMANDS else COMMANDS:
        import_module(f"trimtab.cli.{name}").add(commands)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run what the arguments name; the exit code.

    Guarantees: a failure is one sentence on stderr and the code 1. With
    ``TRIMTAB_TRACEBACK=1`` in the environment it is a traceback. Whoever reads what is
    printed may stop reading, as ``head`` does: then nothing is said.
    """
    try:
        options = _options(sys.argv[1:] if arguments is None else arguments)
        if "run" not in options:
            return 0
        code: int = options.run(options)
        sys.stdout.flush()
    except BrokenPipeError as error:
        if _is_read():
            return _failed(error)
        # What is still in the buffer goes nowhere when the interpreter ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return UNREAD
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        return _failed(error)
    return code


def _failed(error: Exception) -> int:
    if os.environ.get(TRACEBACK):
        raise error
    print(f"trimtab: {_sentence(error)}", file=sys.stderr)
    return 1


def _is_read() -> bool:
    """Whether anybody still reads what is printed."""
    printed = select.poll()
    printed.register(sys.stdout.fileno(), 0)
    return not any(event & select.POLLERR for _, event in printed.poll(0))


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    """What the arguments say; the parser is not kept while an operator runs."""
    made = parser(arguments[0] if arguments else "")
    options = made.parse_args(arguments)
    if "run" not in options:
        made.print_help()
    return options


def _sentence(error: Exception) -> str:
    # Here, because the client takes longer to import than --help to answer.
    from trimtab.client.errors import TrimtabError

    text = " ".join(str(error).split())
    if isinstance(error, TrimtabError):
        return text
    if isinstance(error, ModuleNotFoundError) and error.name in PACKAGES:
        return (
            f"this needs {error.name}, which is not installed: "
            f"pip install 'trimtab[{PACKAGES[error.name]}]'."
        )
    return (
        f"this failed in a way that nobody foresaw ({type(error).__name__}: {text}): "
        f"set {TRACEBACK}=1 to see where, and tell us."
    )
