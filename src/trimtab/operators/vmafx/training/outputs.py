"""Outputs: where models are put, in a folder or an OCI image layout.

A folder has ``model_v000003.onnx``, ``model_v000003.onnx.sha256`` beside it, and
``latest``, which names the one to use. A layout has one manifest for each version,
tagged ``v000003``, and the tag ``latest``; every tool that copies OCI images takes it
to a registry.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path
from typing import Any, Final, Protocol

import msgspec

from trimtab.client.errors import ConfigError
from trimtab.operators.vmafx.training import durable
from trimtab.operators.vmafx.training.problems import StateProblem

_NAME = re.compile(r"^model_v(\d{6,9})\.onnx$")
_TAG = re.compile(r"^v(\d{6,9})$")
_MODE: Final = 0o644

_TYPE: Final = "application/vnd.vmafx.model"
_LAYER: Final = "application/onnx"
_MANIFEST: Final = "application/vnd.oci.image.manifest.v1+json"
_INDEX: Final = "application/vnd.oci.image.index.v1+json"
_EMPTY: Final = "application/vnd.oci.empty.v1+json"
_REF: Final = "org.opencontainers.image.ref.name"
_VERSION: Final = "org.opencontainers.image.version"
_CREATED: Final = "org.opencontainers.image.created"
_TITLE: Final = "org.opencontainers.image.title"


def version_name(version: int) -> str:
    """A version as people write it; that of no model is empty."""
    return f"v{version:06d}" if version else ""


def model_name(version: int) -> str:
    """What the file of a version is called."""
    return f"model_{version_name(version)}.onnx"


class Output(Protocol):
    """Where models are put. Errors: ``OSError`` for what the disk refuses."""

    def versions(self) -> list[int]:
        """The versions that are there, in their order."""

    def put(self, version: int, content: bytes, *, time: str) -> None:
        """Put a model there as a whole; doing it again changes nothing."""

    def read(self, version: int) -> bytes:
        """The model of a version. Errors: :class:`StateProblem` if it is gone."""

    def point(self, version: int) -> None:
        """Say that this version is the one to use; 0 that none is."""

    def remove(self, version: int) -> None:
        """Take a model away."""


def output_of(place: str) -> Output:
    """The output that ``oci:DIR``, ``file://DIR`` or a path names.

    Errors: :class:`ConfigError` for anything else, as a registry elsewhere.
    """
    scheme, _, rest = place.rpartition("://") if "://" in place else ("", "", place)
    if not scheme and place.startswith("oci:"):
        scheme, rest = "oci", place.removeprefix("oci:")
    elif scheme and not rest.startswith("/"):
        raise ConfigError(
            f"{place} is not on this machine: models are put into a folder or an OCI "
            "layout (oci:DIR), from where other tools take them."
        )
    if scheme not in ("", "file", "oci") or not rest:
        raise ConfigError(f"{place} is no place for models: name a folder or oci:DIR.")
    folder = Path(rest)
    return Layout(folder) if scheme == "oci" else Folder(folder)


class Folder:
    """Models as files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def versions(self) -> list[int]:
        names = [each.name for each in _listed(self.folder)]
        return sorted(int(found[1]) for each in names if (found := _NAME.match(each)))

    def put(self, version: int, content: bytes, *, time: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / model_name(version)
        line = f"{hashlib.sha256(content).hexdigest()}  {path.name}\n"
        # First the sum: nobody ever finds a model without one.
        durable.write(_sum(path), line.encode(), mode=_MODE)
        durable.write(path, content, mode=_MODE)

    def read(self, version: int) -> bytes:
        path = self.folder / model_name(version)
        try:
            content = path.read_bytes()
            line = _sum(path).read_text("ascii").split()
        except (OSError, ValueError) as error:
            raise StateProblem(f"{path} cannot be read: it is gone.") from error
        if line[:1] != [hashlib.sha256(content).hexdigest()]:
            raise StateProblem(f"{path} is not what its .sha256 says: do not use it.")
        return content

    def point(self, version: int) -> None:
        path = self.folder / "latest"
        if version:
            durable.write(path, f"{model_name(version)}\n".encode(), mode=_MODE)
        else:
            path.unlink(missing_ok=True)

    def remove(self, version: int) -> None:
        path = self.folder / model_name(version)
        path.unlink(missing_ok=True)
        _sum(path).unlink(missing_ok=True)


def _sum(path: Path) -> Path:
    return path.with_name(f"{path.name}.sha256")


def _listed(folder: Path) -> list[Path]:
    return list(folder.iterdir()) if folder.exists() else []


class Layout:
    """Models as artifacts in an OCI image layout; what others put there stays."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def versions(self) -> list[int]:
        tags = [_tag(each) for each in self._index()["manifests"]]
        return sorted(int(found[1]) for each in tags if (found := _TAG.match(each)))

    def put(self, version: int, content: bytes, *, time: str) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        mark = msgspec.json.encode({"imageLayoutVersion": "1.0.0"})
        durable.write(self.folder / "oci-layout", mark, mode=_MODE)
        layer = {
            **self._blob(content, type=_LAYER),
            "annotations": {_TITLE: model_name(version)},
        }
        manifest = {
            "schemaVersion": 2,
            "mediaType": _MANIFEST,
            "artifactType": _TYPE,
            "config": self._blob(b"{}", type=_EMPTY),
            "layers": [layer],
            "annotations": {_VERSION: version_name(version), _CREATED: time},
        }
        found = self._blob(msgspec.json.encode(manifest), type=_MANIFEST)
        self._tagged(version_name(version), {**found, "artifactType": _TYPE})

    def read(self, version: int) -> bytes:
        found = self._manifest(version)
        if found is None:
            raise StateProblem(f"{self.folder} has no {version_name(version)}.")
        return self._read(found[1]["layers"][0]["digest"])

    def point(self, version: int) -> None:
        found = self._manifest(version)
        self._tagged("latest", found[0] if found else None)

    def remove(self, version: int) -> None:
        found = self._manifest(version)
        if found is None:
            return
        digest = found[0]["digest"]
        index = self._index()
        kept = [each for each in index["manifests"] if each["digest"] != digest]
        self._write({**index, "manifests": kept})
        for each in (digest, found[1]["layers"][0]["digest"]):
            self._path(each).unlink(missing_ok=True)

    def _index(self) -> dict[str, Any]:
        path = self.folder / "index.json"
        if not path.exists():
            return {"schemaVersion": 2, "mediaType": _INDEX, "manifests": []}
        try:
            index: dict[str, Any] = msgspec.json.decode(path.read_bytes())
            assert isinstance(index["manifests"], list)
        except (msgspec.DecodeError, KeyError, TypeError, AssertionError) as error:
            raise StateProblem(f"{path} is no index of an OCI layout.") from error
        return index

    def _write(self, index: dict[str, Any]) -> None:
        content = msgspec.json.encode(index)
        durable.write(self.folder / "index.json", content, mode=_MODE)

    def _tagged(self, tag: str, found: dict[str, Any] | None) -> None:
        """Give a tag to a manifest, or to none any more."""
        index = self._index()
        kept = [each for each in index["manifests"] if _tag(each) != tag]
        if found is not None:
            kept.append({**found, "annotations": {_REF: tag}})
        self._write({**index, "manifests": kept})

    def _manifest(self, version: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """The descriptor and the manifest of a version."""
        for each in self._index()["manifests"]:
            if _tag(each) == version_name(version):
                return each, msgspec.json.decode(self._read(each["digest"]))
        return None

    def _blob(self, content: bytes, *, type: str) -> dict[str, Any]:
        digest = f"sha256:{hashlib.sha256(content).hexdigest()}"
        path = self._path(digest)
        path.parent.mkdir(parents=True, exist_ok=True)
        durable.write(path, content, mode=_MODE)
        return {"mediaType": type, "digest": digest, "size": len(content)}

    def _read(self, digest: str) -> bytes:
        path = self._path(digest)
        try:
            content = path.read_bytes()
        except OSError as error:
            raise StateProblem(f"{path} cannot be read: it is gone.") from error
        if f"sha256:{hashlib.sha256(content).hexdigest()}" != digest:
            raise StateProblem(f"{path} is not what its name says: do not use it.")
        return content

    def _path(self, digest: str) -> Path:
        algorithm, _, name = digest.partition(":")
        if algorithm != "sha256" or not re.fullmatch("[0-9a-f]{64}", name):
            raise StateProblem(f"{self.folder} has a digest that is none: {digest}.")
        return self.folder / "blobs" / algorithm / name


def _tag(descriptor: dict[str, Any]) -> str:
    return str((descriptor.get("annotations") or {}).get(_REF, ""))
