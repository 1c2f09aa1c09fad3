"""Running commands in this process: what they print, and how they fail."""

from __future__ import annotations

import pytest

from trimtab.cli.main import main


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one sentence that a command fails with; nothing is printed before it."""
    try:
        code = main(list(arguments))
    except SystemExit as error:  # argparse's own
        code = int(error.code or 0)
    said = capsys.readouterr()
    assert (code, said.out) == (1, ""), said
    assert said.err.count("\n") == 1, said.err
    assert "Traceback" not in said.err
    assert "nobody foresaw" not in said.err
    return said.err


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints on standard output."""
    assert main(list(arguments)) == code
    said = capsys.readouterr()
    assert said.err == ""
    return said.out
