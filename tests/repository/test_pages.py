"""Laws of all pages: links lead somewhere, and what is named in them is there."""

from __future__ import annotations

import argparse
import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

import pytest

from trimtab.cli.main import parser

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [*ROOT.glob("docs/**/*.md"), *ROOT.glob("*.md"), ROOT / "bench/README.md"]
)
TOLD = [*sorted(ROOT.glob("docs/*.md")), ROOT / "README.md"]
"""What people read who use it; designs and evidence may tell of what was."""
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SPAN = re.compile(r"`([^`]+)`")
LINK = re.compile(r"\[[^]]*\]\(([^)\s]+)\)")
SHELL = ("sh", "console", "text", "")
OPTION = re.compile(r"(?<![\w-])--[a-z][a-z-]*")
VARIABLE = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b")
OTHERS = {
    *("--type", "--server-side", "--overwrite", "--from-literal", "--create-namespace"),
    *("--set", "--reuse-values"),
}
"""Options of kubectl and helm."""


def each(path: Path) -> str:
    return str(path.relative_to(ROOT))


def prose(path: Path) -> str:
    return BLOCK.sub("", path.read_text())


@cache
def anchors(path: Path) -> frozenset[str]:
    """The headings of a page, as they are in addresses."""
    titles = re.findall(r"^#+ (.+)$", prose(path), re.MULTILINE)
    plain = [re.sub(r"[^\w\- ]", "", title.lower()) for title in titles]
    return frozenset(title.replace(" ", "-") for title in plain)


@pytest.mark.parametrize("page", PAGES, ids=each)
def test_every_link_leads_to_a_page_and_to_a_heading_of_it(page: Path) -> None:
    for link in LINK.findall(prose(page)):
        place, _, heading = link.partition("#")
        if "://" in place:
            continue
        target = (page.parent / place).resolve() if place else page
        assert target.exists(), link
        assert not heading or heading in anchors(target), link


def parsers(
    made: argparse.ArgumentParser, name: str
) -> Iterator[tuple[str, argparse.ArgumentParser]]:
    """A command and all below it, by what one types."""
    yield name, made
    for action in made._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, below in action.choices.items():
                yield from parsers(below, f"{name} {word}")


@cache
def commands() -> dict[str, argparse.ArgumentParser]:
    return dict(parsers(parser(), "trimtab"))


def options(made: argparse.ArgumentParser) -> set[str]:
    return {text for action in made._actions for text in action.option_strings}


def test_every_option_says_what_it_is_and_what_it_is_without_being_said() -> None:
    for name, made in commands().items():
        for action in made._actions:
            if not action.option_strings:
                continue
            about = f"{name} {action.option_strings[-1]}"
            assert action.help, about
            plain = action.default in (None, False, "", (), []) or action.nargs == 0
            hidden = action.default == argparse.SUPPRESS
            assert plain or hidden or "default" in action.help, about


def calls(page: Path) -> Iterator[list[str]]:
    """Every call of trimtab on a page: in blocks, and between backquotes."""
    text = page.read_text()
    blocks = [block for kind, block in BLOCK.findall(text) if kind in SHELL]
    lines = [line for block in blocks for line in joined(block)]
    for span in [*lines, *SPAN.findall(" ".join(prose(page).split()))]:
        found = re.search(r"(?:^|[|$(/ ])trimtab ((?:[a-z]|--).*)", span)
        if found:
            call = re.split(r" [|#>]|  ", found[1])[0]
            yield ["trimtab", *re.sub(r"[][]", "", call).split()]


def joined(block: str) -> list[str]:
    return block.replace("\\\n", " ").splitlines()


@pytest.mark.parametrize("page", TOLD, ids=each)
def test_every_call_on_a_page_is_of_a_command_with_such_options(page: Path) -> None:
    for words in calls(page):
        name = words.pop(0)
        while words and f"{name} {words[0]}" in commands():
            name = f"{name} {words.pop(0)}"
        assert name != "trimtab" or words[:1] in ([], ["--help"], ["--version"]), words
        given = {word.split("=")[0] for word in words if word.startswith("-")}
        assert given <= options(commands()[name]), (name, words)


@pytest.mark.parametrize("page", TOLD, ids=each)
def test_every_option_on_a_page_is_one_of_some_command(page: Path) -> None:
    known = {text for made in commands().values() for text in options(made)} | OTHERS
    for option in set(OPTION.findall(page.read_text())) - known:
        # Of a program that is run by python -m.
        assert any(f'"{word}"' in source() for word in (option, option[2:])), option


@cache
def source() -> str:
    """All that is a program, as one text."""
    names = ("src", "bench", "hack", "examples", "tests/conformance")
    folders = (ROOT / name for name in names)
    files = [file for folder in folders for file in folder.rglob("*.py")]
    return "\n".join(file.read_text() for file in [*files, ROOT / "Makefile"])


@pytest.mark.parametrize("page", TOLD, ids=each)
def test_every_variable_on_a_page_is_one_that_the_code_reads(page: Path) -> None:
    for span in SPAN.findall(prose(page)):
        for name in VARIABLE.findall(span):
            assert name in source() or is_put_together(name), name


def is_put_together(name: str) -> bool:
    """Whether it is a prefix and a word, both of which are in the code."""
    places = [place.end() for place in re.finditer("_", name)]
    return any(
        f'"{name[:place]}"' in source() and f'"{name[place:]}"' in source()
        for place in places
    )


@pytest.mark.parametrize("page", TOLD, ids=each)
def test_what_the_code_of_a_page_imports_is_there(page: Path) -> None:
    for language, block in BLOCK.findall(page.read_text()):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.ImportFrom) and node.module != "greetings":
                module = import_module(node.module or "")
                for name in node.names:
                    assert hasattr(module, name.name), f"{node.module}.{name.name}"


def test_every_variable_of_the_sessions_operator_is_on_its_page() -> None:
    code = (ROOT / "src/trimtab/operators/sessions/settings.py").read_text()
    read = set(re.findall(r"(?:said|self)\.\w+\(\"([A-Z0-9_]+)\"", code))
    told = set(VARIABLE.findall((ROOT / "docs/sessions-settings.md").read_text()))
    assert len(read) > 20
    assert read - {"NAMESPACE"} <= told
