"""Records the field numbers of built-in kinds from the Go modules' own files.

``generated.proto`` has types and numbers; what a field is called in JSON, whether it is
inlined, and left out if empty, stands in the tags of the Go struct. Run it again for a
new version (needs the Go modules that ``hack/cluster`` builds from):
``.venv/bin/python hack/record_protobuf.py``.

One line is one message: its name, then each field as ``number name type``. A type is
``s`` string, ``b`` bytes, ``i`` integer, ``B`` boolean, ``d`` double, ``@NAME`` a
message, ``{TYPE`` a map from strings; before it ``*``: repeated; ``^``: inlined;
``?``: left out of JSON if empty; ``!``: always in protobuf, being no pointer in Go.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src/trimtab/embedded/data/protobuf.txt"
CLUSTER = ROOT / "hack/cluster"
SCALARS = {
    "string": "s",
    "bytes": "b",
    "int32": "i",
    "int64": "i",
    "uint32": "i",
    "uint64": "i",
    "bool": "B",
    "double": "d",
}
SOURCES = {
    "k8s.io/api": "*/*/generated.proto",
    "k8s.io/apimachinery": "pkg/**/generated.proto",
    "k8s.io/apiextensions-apiserver": "pkg/apis/apiextensions/v1/generated.proto",
    "k8s.io/kube-aggregator": "pkg/apis/apiregistration/v1/generated.proto",
}
LEFT_OUT = re.compile(r"alpha|beta|imagepolicy|apiserverinternal|extensions/v1beta")
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.S | re.M)
FIELD = re.compile(
    r"^\s*(optional|repeated|map<string,\s*([\w.]+)>)\s*([\w.]*)\s+?(\w+) = (\d+);",
    re.M,
)
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.S | re.M)
# Name, type and tag of a field; an embedded one has only a type.
MEMBER = re.compile(r"^\s*(?:\w+[ \t]+)?(\S+)[ \t]+`(.*?)`", re.M)
JSON_TAG = re.compile(r'json:"(?!-")([^",]*)([^"]*)"')
# Go types that can be nil, and are then not written.
NILS = ("*", "[]", "map[", "Verbs", "ExtraValue")
NUMBER = re.compile(r'protobuf:"\w+,(\d+),')


class Member(NamedTuple):
    """A field of a Go struct, in JSON: without a name it is inlined."""

    name: str
    options: str = ""
    """What its tag says of empty values; of a pointer to one, nothing."""
    always: bool = True
    """Whether Go writes it in protobuf even if it is empty."""

    def is_left_out(self, told: str) -> bool:
        """Whether an empty value is; a struct never is by ``omitempty``."""
        return "omitzero" in self.options or (
            "omitempty" in self.options and told in SCALARS.values()
        )


def module(path: str) -> Path:
    told = subprocess.run(
        ["go", "list", "-m", "-f", "{{.Dir}}", path],
        cwd=CLUSTER,
        capture_output=True,
        text=True,
        check=True,
    )
    return Path(told.stdout.strip())


def short(name: str, package: str) -> str:
    """``k8s.io.api.core.v1.Pod`` as ``core.v1.Pod``; a bare name is the package's."""
    name = name.lstrip(".")
    if "." not in name:
        return f"{package}.{name}"
    name = re.sub(
        r"^k8s\.io\.(api|apimachinery\.pkg(\.apis|\.api|\.util)?)\.", "", name
    )
    return re.sub(r"^.*\.(apiextensions|apiregistration)\.v1\.", r"\1.v1.", name)


def code(kind: str, package: str) -> str:
    return SCALARS.get(kind) or "@" + short(kind, package)


def structs(folder: Path) -> dict[str, dict[str, Member]]:
    """The fields of the structs of a package by their number."""
    found: dict[str, dict[str, Member]] = {}
    for path in folder.glob("*.go"):
        for name, body in STRUCT.findall(path.read_text()):
            for kind, tag in MEMBER.findall(body):
                number, told = NUMBER.search(tag), JSON_TAG.search(tag)
                if number and told:
                    options = "" if kind.startswith("*") else told[2]
                    always = not kind.startswith(NILS)
                    member = Member(told[1], options, always)
                    found.setdefault(name, {})[number[1]] = member
    return found


def messages(path: Path) -> Iterator[str]:
    text = re.sub(r"//.*", "", path.read_text())
    declared = re.search(r"^package ([\w.]+);", text, re.M)
    assert declared is not None, path
    package = short(declared[1] + ".X", "").rpartition(".")[0]
    known = structs(path.parent)
    for name, body in MESSAGE.findall(text):
        members = known.get(name, {})
        fields = []
        for label, value, kind, field, number in FIELD.findall(body):
            if value:
                told = "{" + code(value, package)
            else:
                told = ("*" if label == "repeated" else "") + code(kind, package)
            member = members.get(number, Member(field, always=kind in SCALARS))
            if not member.name:
                told = "^" + told
            elif member.is_left_out(told):
                told = "?" + told
            if member.always and not value and label != "repeated" and told != "b":
                told = "!" + told
            fields.append(f"{number} {member.name or field} {told}")
        yield "\t".join([f"{package}.{name}", *fields])


def main() -> None:
    lines: list[str] = []
    for name, pattern in SOURCES.items():
        root = module(name)
        for path in sorted(root.glob(pattern)):
            if not LEFT_OUT.search(str(path.relative_to(root))):
                lines += messages(path)
    DATA.write_text("\n".join(sorted(lines)) + "\n")
    print(f"{len(lines)} messages written to {DATA.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
