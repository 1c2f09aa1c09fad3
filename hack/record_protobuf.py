"""Records the field numbers of built-in kinds from the Go modules' own files.

``generated.proto`` has names, types and numbers; that a field is inlined in JSON stands
in the tags of the Go struct. Run it again for a new version (needs the Go modules that
``hack/cluster`` builds from): ``.venv/bin/python hack/record_protobuf.py``.

One line is one message: its name, then each field as ``number name type``. A type is
``s`` string, ``b`` bytes, ``i`` integer, ``B`` boolean, ``d`` double, ``@NAME`` a
message, ``{TYPE`` a map from strings; before it ``*``: repeated; ``^``: inlined.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

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
}
LEFT_OUT = re.compile(r"alpha|beta|imagepolicy|apiserverinternal|extensions/v1beta")
MESSAGE = re.compile(r"^message (\w+) \{(.*?)^\}", re.S | re.M)
FIELD = re.compile(
    r"^\s*(optional|repeated|map<string,\s*([\w.]+)>)\s*([\w.]*)\s+?(\w+) = (\d+);",
    re.M,
)
STRUCT = re.compile(r"^type (\w+) struct \{(.*?)^\}", re.S | re.M)
INLINED = re.compile(r'json:",inline" protobuf:"[^"]*name=(\w+)"')


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
    return re.sub(r"^.*\.apiextensions\.v1\.", "apiextensions.v1.", name)


def code(kind: str, package: str) -> str:
    return SCALARS.get(kind) or "@" + short(kind, package)


def inlined(folder: Path) -> dict[str, set[str]]:
    """Which fields of which structs are inlined, by the Go sources of a package."""
    found: dict[str, set[str]] = {}
    for path in folder.glob("*.go"):
        for name, body in STRUCT.findall(path.read_text()):
            fields = set(INLINED.findall(body))
            if fields:
                found[name] = fields
    return found


def messages(path: Path) -> Iterator[str]:
    text = re.sub(r"//.*", "", path.read_text())
    declared = re.search(r"^package ([\w.]+);", text, re.M)
    assert declared is not None, path
    package = short(declared[1] + ".X", "").rpartition(".")[0]
    flat = inlined(path.parent)
    for name, body in MESSAGE.findall(text):
        fields = []
        for label, value, kind, field, number in FIELD.findall(body):
            if value:
                told = "{" + code(value, package)
            else:
                told = ("*" if label == "repeated" else "") + code(kind, package)
            if field in flat.get(name, ()):
                told = "^" + told
            fields.append(f"{number} {field} {told}")
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
