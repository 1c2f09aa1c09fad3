"""Projects: what a new operator begins with, ready for production."""

from __future__ import annotations

import keyword
import re
import sys

import msgspec

import trimtab
from trimtab.api.names import check_custom_group, check_label, plural
from trimtab.authoring.project_templates import FILES
from trimtab.client.errors import TrimtabError

KIND = re.compile(r"[A-Z][A-Za-z0-9]{0,62}")
TAKEN = frozenset({"trimtab", "tests", "test", "src"})


class BadName(TrimtabError):
    """A project cannot have such a name."""


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What a project is called."""

    name: str
    """Of the operator, the distribution and the folder."""
    group: str = "example.com"
    kind: str = ""
    """Default: the name, in the spelling of kinds."""

    def __post_init__(self) -> None:
        if not self.kind:
            words = "".join(part.capitalize() for part in self.name.split("-"))
            msgspec.structs.force_setattr(self, "kind", words)
        try:
            check_label(self.name, what="The name")
            check_custom_group(self.group, what="The group")
        except ValueError as error:
            raise BadName(str(error)) from error
        self._check_package()
        if not KIND.fullmatch(self.kind):
            raise BadName(
                f"{self.kind!r} cannot be the name of a kind and its class; write it "
                "as BookShop."
            )

    def _check_package(self) -> None:
        package = self.package
        if not package.isidentifier() or keyword.iskeyword(package):
            raise BadName(
                f"{self.name!r} cannot be the name of a Python package; begin it with "
                "a letter, and take no word of the language."
            )
        if package in TAKEN or package in sys.stdlib_module_names:
            raise BadName(f"{package!r} is a module already; choose another name.")

    @property
    def package(self) -> str:
        return self.name.replace("-", "_")


def files_of(project: Project) -> dict[str, str]:
    """Every file of the project by its path."""
    words = {
        "@name@": project.name,
        "@package@": project.package,
        "@kind@": project.kind,
        "@plural@": plural(project.kind),
        "@group@": project.group,
        "@trimtab@": trimtab.__version__,
    }
    return {_filled(path, words): _filled(text, words) for path, text in FILES.items()}


def _filled(text: str, words: dict[str, str]) -> str:
    for word, value in words.items():
        text = text.replace(word, value)
    return text
