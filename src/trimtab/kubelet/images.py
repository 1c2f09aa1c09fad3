"""Images: from an image's name to a program on this machine.

There is no registry here. A name is looked up in a table; a container that says its
command itself, and whose program is there, needs no entry.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import msgspec

from trimtab.api.kinds import Container
from trimtab.client.errors import TrimtabError

OURS = "trimtab.dev/"
MODULES = {"trimtab.dev/runner": "trimtab.operators.sessions.runner"}
"""Images that are programs of this very package: each is a module that Python runs."""
ENTRYPOINT = "entrypoint"
_WORD = r"[a-z0-9]+(?:(?:[._]|__|-+)[a-z0-9]+)*"
_LABEL = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
REFERENCE = re.compile(
    rf"(?:(?:{_LABEL}(?:\.{_LABEL})*|\[[a-fA-F0-9:]+\])(?::[0-9]+)?/)?{_WORD}(?:/{_WORD})*"
    r"(?::[\w][\w.-]{0,127})?"
    r"(?:@[A-Za-z][A-Za-z0-9]*(?:[-_+.][A-Za-z][A-Za-z0-9]*)*:[0-9a-fA-F]{32,})?",
    re.ASCII,
)
"""Host, path, tag and digest of an image, of which only the path must be there."""
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class ImageProblem(TrimtabError):
    """The table of images cannot be read."""


class Unknown(Exception):
    """Nothing on this machine is known by an image's name."""


class Malformed(Exception):
    """An image's name is none that an image could have."""


class Image(msgspec.Struct, frozen=True, kw_only=True):
    """What an image is here: a command, or a folder with programs."""

    command: Sequence[str] = ()
    folder: str = ""

    @property
    def path(self) -> str:
        """Where its programs are looked for."""
        own = [self.folder, os.path.join(self.folder, "bin")] if self.folder else []
        return ":".join([*own, os.path.dirname(sys.executable), PATH])


class Images:
    """The table: names with or without a tag, each with what runs for it."""

    def __init__(self, table: Mapping[str, Image] | None = None) -> None:
        self._table = dict(table or {})

    def find(self, container: Container) -> tuple[Image, list[str]]:
        """What runs for a container: its image and its whole command line.

        Errors: :class:`Unknown`, with the reason in a sentence; :class:`Malformed`.
        """
        name = container.image
        image = self._table.get(name) or self._table.get(untagged(name))
        if image is None:
            check_name(name)
        command = list(container.command) or list(image.command if image else ())
        if image is not None:
            return image, [*_runnable(command, image, name), *container.args]
        image = Image()
        if not command and name.startswith(OURS):
            command = _ours(untagged(name))
        if not command:
            raise Unknown(_unknown(name))
        if not is_program(command[0], image.path):
            raise Unknown(
                f"{_unknown(name)}, and its command {command[0]!r} is not on this "
                "machine"
            )
        return image, [*command, *container.args]

    def knows(self, name: str) -> bool:
        return name in self._table or untagged(name) in self._table


def _ours(name: str) -> list[str]:
    if name in MODULES:
        return [sys.executable, "-m", MODULES[name]]
    return [name.rpartition("/")[2]]


def _runnable(command: list[str], image: Image, name: str) -> list[str]:
    if command:
        return command
    if is_program(ENTRYPOINT, image.path):
        return [ENTRYPOINT]
    raise Unknown(
        f"the image {name!r} is the folder {image.folder}, which has no file "
        f"{ENTRYPOINT!r}, and the container has no command"
    )


def _unknown(name: str) -> str:
    return f"no command is known for the image {name!r} (give one with --image)"


def is_program(name: str, path: str) -> bool:
    return shutil.which(name, path=path) is not None


def untagged(name: str) -> str:
    """A name without its digest and its tag; a port is not a tag."""
    name = name.partition("@")[0]
    head, colon, tail = name.rpartition(":")
    return head if colon and "/" not in tail else name


def check_name(name: str) -> None:
    """That a name is built as the names of images are.

    Errors: :class:`Malformed`, in the words that a kubelet has for it.
    """
    why = _flaw(name)
    if why is not None:
        raise Malformed(
            f'Failed to apply default image tag "{name}": couldn\'t parse image name '
            f'"{name}": invalid reference format{why}'
        )


def _flaw(name: str) -> str | None:
    head, slash, rest = name.partition("/")
    is_host = head == "localhost" or set(".:") & set(head) or head != head.lower()
    path = rest if slash and is_host else name
    repository = path.partition("@")[0].partition(":")[0]
    if repository != repository.lower():
        return f": repository name ({repository}) must be lowercase"
    whole = path if path is name else f"{head}/{path}"
    return None if REFERENCE.fullmatch(whole) else ""


def table(pairs: Iterable[str], *, file: Path | None = None) -> dict[str, Image]:
    """The images that ``NAME=COMMAND`` pairs and a file of such lines declare.

    A command is split as a shell would; an existing folder is a folder. Lines that
    begin with ``#`` say nothing. Pairs win over the file.

    Errors: :class:`ImageProblem`.
    """
    lines = [*_lines(file), *pairs] if file else list(pairs)
    return dict(map(_entry, lines))


def _lines(file: Path) -> list[str]:
    try:
        text = file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ImageProblem(
            f"The images in {file} cannot be read ({error}): name another file with "
            "--images."
        ) from error
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def _entry(text: str) -> tuple[str, Image]:
    name, equals, value = text.partition("=")
    name, value = name.strip(), value.strip()
    try:
        command = shlex.split(value)
    except ValueError:
        command = []
    if not (name and equals and command):
        raise ImageProblem(
            f"{text!r} does not say what an image is: write NAME=COMMAND, or "
            "NAME=FOLDER."
        )
    folder = Path(value).expanduser()
    if folder.is_dir():
        return name, Image(folder=str(folder.absolute()))
    return name, Image(command=command)
