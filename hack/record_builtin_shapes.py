"""Records how Go writes each built-in type, for trimtab.embedded.builtin.

A real API server reads JSON into Go structs and writes it back: what is empty is left
out or not, depending on the type and the tag of each field, and quantities and times
come back in their canonical form. The Go sources of the types say which; read they are
from the module cache that ``hack/cluster/build.py`` fills. Written is
``src/trimtab/embedded/builtin/data/shapes.json``: for each type its fields, each as

===========  ===================================================================
``s i b f``  string, integer, boolean, float; ``:`` and the Go type may follow
``y``        bytes, in base64
``t u d``    an instant, one with microseconds, a duration
``q x j``    a quantity, an integer or string, anything
``@Name``    a struct
``[T {T``    a list, a map from strings
``*T``       a pointer: only null is left out
``!T``       never left out, even if empty
``?T``       left out if zero, though a struct
``~N~T``     a field of the struct N, whose fields are written as its parent's
===========  ===================================================================

Messages print values as the server holds them, which is in other, internal types.
``internal.json`` says of some of those, for each field in Go's order, its name there,
the name that clients give it, and its type in the same notation (``+T``: a struct whose
fields are its parent's).

So::

    python hack/record_builtin_shapes.py
"""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "src" / "trimtab" / "embedded"
SHAPES = DATA / "builtin" / "data" / "shapes.json"
INTERNAL = DATA / "builtin" / "data" / "internal.json"
VERSION = "v0.36.3"
KUBERNETES = "kubernetes@v1.36.3/pkg/apis"
ELSEWHERE = {
    "meta": f"apimachinery@{VERSION}/pkg/apis/meta",
    "apiregistration": f"kube-aggregator@{VERSION}/pkg/apis/apiregistration",
}

PREFIX = "io.k8s.api."
AGGREGATOR = "io.k8s.kube-aggregator.pkg.apis."
META = "io.k8s.apimachinery.pkg.apis.meta.v1."
EXTRA = (
    "policy.v1.Eviction",
    "autoscaling.v1.Scale",
    "authentication.v1.TokenRequest",
    "core.v1.Binding",
)
PRINTED = (
    "core.PodTemplateSpec",
    "core.EphemeralContainer",
    "core.PersistentVolumeClaimSpec",
    "core.PersistentVolumeSpec",
    "core.PersistentVolumeSource",
    "core.ServicePort",
    "core.Taint",
    "core.PodIP",
    "core.HostIP",
    "rbac.RoleRef",
    "policy.PodDisruptionBudgetSpec",
    "batch.SuccessPolicy",
    "batch.PodFailurePolicy",
    "apps.DaemonSetUpdateStrategy",
    "apps.DeploymentStrategy",
    "apps.StatefulSetUpdateStrategy",
    "batch.UncountedTerminatedPods",
    "networking.NetworkPolicyPort",
    "networking.IPBlock",
    "networking.IngressBackend",
    "storage.VolumeAttachmentSpec",
    "storage.CSINodeDriver",
    "discovery.EndpointPort",
    "autoscaling.HPAScalingRules",
    "autoscaling.MetricSpec",
    "scheduling.PriorityClass",
    "flowcontrol.FlowSchemaSpec",
    "flowcontrol.PriorityLevelConfigurationSpec",
    "networking.ServiceCIDRSpec",
    "networking.ParentReference",
    "certificates.CertificateSigningRequestCondition",
    "resource.ResourceClaimSpec",
    "resource.ResourceClaimTemplateSpec",
    "resource.ResourceClaimStatus",
    "resource.ResourceSliceSpec",
)
"""Internal types that stand in messages, or hold what does."""
VALUES = {
    "metav1.Time": "t",
    "Time": "t",
    "metav1.MicroTime": "u",
    "MicroTime": "u",
    "metav1.Duration": "d",
    "resource.Quantity": "q",
    "intstr.IntOrString": "x",
    "runtime.RawExtension": "j",
    "metav1.FieldsV1": "j",
    "FieldsV1": "j",
    "string": "s",
    "bool": "b",
    "int": "i:int",
    "int32": "i:int32",
    "int64": "i:int64",
    "uint32": "i:uint32",
    "uint64": "i:uint64",
    "float64": "f:float64",
    "types.UID": "s:types.UID",
    "types.NodeName": "s:types.NodeName",
    "[]byte": "y",
}

_type = re.compile(r"^type (\w+) ?(struct \{|=?.*)$")
_field = re.compile(
    r"^\s+(?:(\w+)\s+)?([\w.*\[\]{}]+)\s+`[^`]*?json:\"([^\"]*)\"[^`]*`"
)
_import = re.compile(r'^\s+(\w+ )?"k8s\.io/(api|apimachinery)/([\w/.-]+)"')


class Package:
    """One Go package of types: what each of its names is."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.aliases: dict[str, str] = {}
        self.structs: dict[str, list[tuple[str, str, str]]] = {}
        self.imports: dict[str, str] = {}
        for path in sorted(folder.glob("*types*.go")):
            self._read(path.read_text().splitlines())

    def _read(self, lines: list[str]) -> None:
        current: list[tuple[str, str, str]] | None = None
        for line in lines:
            if found := _import.match(line):
                self._add_import(*found.groups())
            elif found := _type.match(line):
                current = self._open(found[1], found[2])
            elif line == "}":
                current = None
            elif current is not None and (found := _field.match(line)):
                current.append((found[1] or "", found[2], found[3]))

    def _add_import(self, alias: str | None, module: str, path: str) -> None:
        where = path.split("/")
        local = (alias or where[-1]).strip()
        if module == "api":
            self.imports[local] = ".".join(where)

    def _open(self, name: str, rest: str) -> list[tuple[str, str, str]] | None:
        if rest == "struct {":
            return self.structs.setdefault(name, [])
        if rest.strip() and not rest.startswith("interface"):
            self.aliases[name] = rest.strip().removeprefix("= ")
        return None


class Reader:
    """Types as they are asked for, each with its fields written in short."""

    def __init__(self, modules: Path) -> None:
        self._modules = modules
        self._packages: dict[str, Package] = {}
        self.shapes: dict[str, dict[str, str]] = {}

    def package(self, name: str) -> Package:
        if name not in self._packages:
            group, version = name.split(".")
            base = ELSEWHERE.get(group, f"api@{VERSION}/{group}")
            folder = self._modules / base / version
            self._packages[name] = Package(folder, name)
        return self._packages[name]

    def add(self, shape: str) -> None:
        """Read a struct, and those that it is made of."""
        if shape in self.shapes:
            return
        group, version, name = shape.split(".")
        self.shapes[shape] = {}
        package = self.package(f"{group}.{version}")
        self.shapes[shape] |= dict(self._fields(package, name))

    def _fields(self, package: Package, name: str) -> Iterator[tuple[str, str]]:
        for go_name, go_type, tag in package.structs[name]:
            written, *options = tag.split(",")
            if "inline" in options or (not go_name and not written):
                if not go_type.endswith("TypeMeta"):
                    yield from self._inline(package, go_type)
                else:
                    yield from (("kind", "s"), ("apiVersion", "s"))
            elif written != "-":
                code = self._code(package, go_type)
                mark = "?" if "omitzero" in options else ""
                yield written, (mark if "omitempty" in options else "!") + code

    def _inline(self, package: Package, go_type: str) -> Iterator[tuple[str, str]]:
        where, _, name = go_type.removeprefix("*").rpartition(".")
        for field, code in self._fields(self._where(package, where), name):
            yield field, code if code.startswith("~") else f"~{name}~{code}"

    def _where(self, package: Package, local: str) -> Package:
        if not local:
            return package
        if local in ("metav1", "v1") and local not in package.imports:
            return self.package("meta.v1")
        return self.package(package.imports[local])

    def _code(self, package: Package, go_type: str) -> str:
        if go_type in VALUES:
            return VALUES[go_type]
        if go_type.startswith("*"):
            return "*" + self._code(package, go_type[1:])
        if go_type.startswith("[]"):
            return "[" + self._code(package, go_type[2:])
        if go_type.startswith("map["):
            return "{" + self._code(package, go_type.partition("]")[2])
        return self._named(package, go_type)

    def _named(self, package: Package, go_type: str) -> str:
        where, _, name = go_type.rpartition(".")
        home = self._where(package, where)
        if name in home.structs:
            self.add(f"{home.name}.{name}")
            return f"@{home.name}.{name}"
        code = self._code(home, home.aliases[name])
        short = f"{home.name.partition('.')[2]}.{name}"
        return f"{code.partition(':')[0]}:{short}" if code[0] in "sif" else code


_plain_field = re.compile(r"^\t(?:(\w+)\s+)?([\w.*\[\]]+)(?:\s*`[^`]*`)?\s*(?://.*)?$")


class Printer:
    """Internal types as they are asked for: what Go prints of them."""

    def __init__(self, modules: Path, reader: Reader) -> None:
        self._modules = modules
        self._reader = reader
        self._packages: dict[str, Package] = {}
        self.shapes: dict[str, list[tuple[str, str, str]]] = {}

    def add(self, shape: str) -> None:
        """Read a struct, and those that it is made of."""
        if shape in self.shapes:
            return
        self.shapes[shape] = []
        group, name = shape.split(".")
        self.shapes[shape] += self._fields(group, name, self._names(group, name))

    def _names(self, group: str, name: str) -> dict[str, str]:
        """The name that clients give to each field of Go."""
        version = "v2" if group == "autoscaling" else "v1"
        package = self._reader.package(f"{group}.{version}")
        found = {}
        for go_name, go_type, tag in package.structs.get(name, ()):
            written = tag.split(",")[0]
            if go_name and written:
                found[go_name] = written
            elif not go_name and "." not in go_type:
                found |= self._names(group, go_type.removeprefix("*"))
        return found

    def _package(self, group: str) -> Package:
        if group not in self._packages:
            folder = self._modules / KUBERNETES / group
            self._packages[group] = Plain(folder, group)
        return self._packages[group]

    def _fields(
        self, group: str, name: str, names: dict[str, str]
    ) -> Iterator[tuple[str, str, str]]:
        for go_name, go_type, _ in self._package(group).structs[name]:
            if go_name:
                first = go_name[:1].lower() + go_name[1:]
                written = names.get(go_name, first)
                yield go_name, written, self._code(group, go_type)
            elif go_type == "metav1.ObjectMeta":
                yield "", "metadata", "+meta.v1.ObjectMeta"
            elif go_type != "metav1.TypeMeta":
                inner = go_type.removeprefix("*")
                yield from self._fields(group, inner, names)

    def _code(self, group: str, go_type: str) -> str:
        if go_type in VALUES:
            return VALUES[go_type].partition(":")[0]
        if go_type.startswith("*"):
            return "*" + self._code(group, go_type[1:])
        if go_type.startswith("[]"):
            return "[" + self._code(group, go_type[2:])
        if go_type.startswith("map["):
            return "{" + self._code(group, go_type.partition("]")[2])
        return self._named(group, go_type)

    def _named(self, group: str, go_type: str) -> str:
        where, _, name = go_type.rpartition(".")
        if where in ("metav1", "v1"):
            self._reader.add(f"meta.v1.{name}")
            return f"@meta.v1.{name}"
        home = "core" if where in ("api", "core") else group
        package = self._package(home)
        if name in package.structs:
            self.add(f"{home}.{name}")
            return f"@{home}.{name}"
        return self._code(home, package.aliases[name])


class Plain(Package):
    """A package whose fields have no tags."""

    def _read(self, lines: list[str]) -> None:
        current: list[tuple[str, str, str]] | None = None
        for line in lines:
            if found := _type.match(line):
                current = self._open(found[1], found[2])
            elif line == "}":
                current = None
            elif current is not None and (found := _plain_field.match(line)):
                current.append((found[1] or "", found[2], ""))


def roots() -> Iterator[str]:
    """Every type that is a kind of its own, but CRDs."""
    for line in (DATA / "data" / "resources.jsonl").read_text().splitlines():
        name = json.loads(line)["definition"]
        for prefix in (PREFIX, AGGREGATOR):
            if name.startswith(prefix):
                yield name.removeprefix(prefix)
    yield from EXTRA


def main() -> None:
    """Read the sources, write the shapes."""
    found = subprocess.run(
        ["go", "env", "GOMODCACHE"], check=True, capture_output=True, text=True
    )
    reader = Reader(Path(found.stdout.strip()) / "k8s.io")
    for shape in roots():
        reader.add(shape)
    printer = Printer(Path(found.stdout.strip()) / "k8s.io", reader)
    for shape in PRINTED:
        printer.add(shape)
    rows = [
        f"{json.dumps(name)}: {json.dumps(fields, separators=(',', ':'))}"
        for name, fields in sorted(reader.shapes.items())
    ]
    SHAPES.parent.mkdir(exist_ok=True)
    SHAPES.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    rows = [
        f"{json.dumps(name)}: {json.dumps(fields, separators=(',', ':'))}"
        for name, fields in sorted(printer.shapes.items())
    ]
    INTERNAL.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
