"""Volumes: the folders of a pod, made before it starts and kept up while it runs."""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from trimtab.api.kinds import (
    Container,
    DownwardAPIVolumeFile,
    HostPathVolumeSource,
    KeyToPath,
    ServiceAccountTokenProjection,
    Volume,
    VolumeMount,
    VolumeProjection,
    WholePod,
)
from trimtab.api.quantity import Quantity
from trimtab.client import Client
from trimtab.client.subresources import SERVICE_ACCOUNT
from trimtab.kubelet import fields
from trimtab.kubelet.environment import ConfigProblem, Maps, expanded
from trimtab.kubelet.processes import Mount

FILE_MODE = 0o644
TOKEN_SECONDS = 3600
DATA = "..data"

Files = dict[str, tuple[bytes, int]]
"""Content and mode by path within the volume."""


class MountProblem(Exception):
    """A volume cannot be made; the message is for an Event."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What a volume may tell of its pod and its node."""

    host: str
    address: str
    allocatable: Mapping[str, Quantity]


class Volumes:
    """The volumes of one pod, below one folder."""

    def __init__(
        self, pod: WholePod, folder: Path, client: Client, *, facts: Facts
    ) -> None:
        self.pod = pod
        self._folder = folder
        self._client = client
        self._facts = facts

    async def make(self) -> None:
        """Make every volume, or bring those with content up to date.

        Errors: :class:`MountProblem` in the kubelet's words.
        """
        maps = Maps(self._client, self.pod.metadata.namespace)
        for volume in self.pod.spec.volumes:
            try:
                await self._make(volume, maps)
            except (ConfigProblem, fields.NoSuchField, OSError) as error:
                raise MountProblem(
                    f'MountVolume.SetUp failed for volume "{volume.name}" : {error}'
                ) from error

    @property
    def refreshed(self) -> bool:
        """Whether there is content that follows the cluster."""
        return any(
            each.secret or each.configMap or each.projected or each.downwardAPI
            for each in self.pod.spec.volumes
        )

    def mounts(self, container: Container, env: Mapping[str, str]) -> list[Mount]:
        """What a container sees of them, and where."""
        by_name = {each.name: each for each in self.pod.spec.volumes}
        return [
            self._mount(by_name[each.name], each, env)
            for each in sorted(container.volumeMounts, key=lambda m: m.mountPath)
            if each.name in by_name
        ]

    def path(self, volume: Volume) -> Path:
        if volume.hostPath is not None:
            return Path(volume.hostPath.path)
        return self._folder / volume.name

    def usage(self, name: str) -> int:
        """The bytes in a volume, as ``du`` counts them."""
        total = 0
        for place, _, names in os.walk(self._folder / name):
            for each in names:
                try:
                    total += os.lstat(os.path.join(place, each)).st_blocks * 512
                except OSError:
                    continue
        return total

    def remove(self) -> None:
        shutil.rmtree(self._folder, ignore_errors=True)

    def _mount(
        self, volume: Volume, mount: VolumeMount, env: Mapping[str, str]
    ) -> Mount:
        source = self.path(volume)
        inner = expanded(mount.subPathExpr, env) or mount.subPath
        if inner:
            source = source / inner
            if ".." in inner.split("/"):
                raise MountProblem(f"subPath {inner!r} must not contain '..'")
            if not source.exists():
                source.mkdir(parents=True)
        only_read = bool(mount.readOnly) or not (volume.emptyDir or volume.hostPath)
        return Mount(
            source=str(source.resolve() if inner else source),
            target=mount.mountPath,
            readonly=only_read,
        )

    async def _make(self, volume: Volume, maps: Maps) -> None:
        folder = self._folder / volume.name
        if volume.hostPath is not None:
            return _check_host_path(volume.hostPath)
        if volume.emptyDir is not None:
            folder.mkdir(parents=True, exist_ok=True)
            folder.chmod(0o777)
            return None
        files = await self._content(volume, maps)
        if files is None:
            raise ConfigProblem("volumes of this kind are not available here")
        write_files(folder, files)
        self._hand_over(folder)
        return None

    def _hand_over(self, folder: Path) -> None:
        """Files are for their reader alone, who may be another user than we are."""
        context = self.pod.spec.securityContext
        user = context.runAsUser if context is not None else None
        if user and os.geteuid() == 0:
            for place, _, names in os.walk(folder):
                for each in (place, *(os.path.join(place, name) for name in names)):
                    os.chown(each, user, -1, follow_symlinks=False)

    async def _content(self, volume: Volume, maps: Maps) -> Files | None:
        if volume.secret is not None:
            secret = volume.secret
            held = await maps.secret(secret.secretName, optional=bool(secret.optional))
            return keyed(held, secret.items, secret.defaultMode, "secret")
        if volume.configMap is not None:
            config = volume.configMap
            held = await maps.config(config.name, optional=bool(config.optional))
            return keyed(held, config.items, config.defaultMode, "configmap")
        if volume.downwardAPI is not None:
            down = volume.downwardAPI
            return self._downward(down.items, down.defaultMode)
        if volume.projected is not None:
            made: Files = {}
            for source in volume.projected.sources or ():
                mode = volume.projected.defaultMode
                made |= await self._projected(source, mode, maps)
            return made
        return None

    async def _projected(
        self, source: VolumeProjection, mode: int | None, maps: Maps
    ) -> Files:
        if source.secret is not None:
            part = source.secret
            held = await maps.secret(part.name, optional=bool(part.optional))
            return keyed(held, part.items, mode, "secret")
        if source.configMap is not None:
            config = source.configMap
            held = await maps.config(config.name, optional=bool(config.optional))
            return keyed(held, config.items, mode, "configmap")
        if source.downwardAPI is not None:
            return self._downward(source.downwardAPI.items, mode)
        if source.serviceAccountToken is not None:
            return await self._token(source.serviceAccountToken)
        return {}

    def _downward(
        self, items: Sequence[DownwardAPIVolumeFile], mode: int | None
    ) -> Files:
        made: Files = {}
        for item in items:
            text = ""
            if item.fieldRef is not None:
                text = fields.field_of(
                    self.pod,
                    item.fieldRef.fieldPath,
                    host=self._facts.host,
                    address=self._facts.address,
                )
            elif item.resourceFieldRef is not None:
                text = fields.resource_of(
                    self.pod,
                    item.resourceFieldRef,
                    Container(name=""),
                    allocatable=self._facts.allocatable,
                )
            made[item.path] = (text.encode(), item.mode or mode or FILE_MODE)
        return made

    async def _token(self, wanted: ServiceAccountTokenProjection) -> Files:
        pod = self.pod
        spec: dict[str, Any] = {
            "audiences": [wanted.audience] if wanted.audience else [],
            "expirationSeconds": wanted.expirationSeconds or TOKEN_SECONDS,
            "boundObjectRef": {
                "apiVersion": "v1",
                "kind": "Pod",
                "name": pod.metadata.name,
                "uid": pod.metadata.uid,
            },
        }
        answer: dict[str, Any] = await self._client.subresource(
            SERVICE_ACCOUNT,
            pod.spec.serviceAccountName or "default",
            "token",
            into=dict,
            method="POST",
            body={
                "apiVersion": "authentication.k8s.io/v1",
                "kind": "TokenRequest",
                "spec": spec,
            },
            namespace=pod.metadata.namespace,
        )
        return {wanted.path: (answer["status"]["token"].encode(), 0o600)}


def keyed(
    held: Mapping[str, bytes] | None,
    items: Sequence[KeyToPath],
    mode: int | None,
    what: str,
) -> Files:
    """The files of a Secret or ConfigMap: all of its keys, or those that are named."""
    usual = FILE_MODE if mode is None else mode
    if held is None:
        return {}
    if not items:
        return {key: (value, usual) for key, value in held.items()}
    made: Files = {}
    for item in items:
        if item.key not in held:
            raise ConfigProblem(
                f"{what} references non-existent {what} key: {item.key}"
            )
        made[item.path] = (held[item.key], usual if item.mode is None else item.mode)
    return made


def write_files(folder: Path, files: Files) -> None:
    """Make the folder show exactly these files, all at one moment.

    As the kubelet does it: the files are in a folder of their own, ``..data`` points
    to it, and what is seen points through that.
    """
    folder.mkdir(parents=True, exist_ok=True)
    link = folder / DATA
    old = folder / os.readlink(link) if link.is_symlink() else None
    if old is not None and _holds(old, files):
        return
    number = int(old.name.rpartition("_")[2]) + 1 if old is not None else 0
    fresh = folder / f"..{number:06}_{number}"
    fresh.mkdir(exist_ok=True)
    for path, (content, mode) in files.items():
        if "/" in path:
            (fresh / path).parent.mkdir(parents=True, exist_ok=True)
        _write(fresh / path, content, mode)
    temporary = folder / "..data_tmp"
    temporary.symlink_to(fresh.name)
    temporary.rename(link)
    _point(folder, {Path(path).parts[0] for path in files})
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


def _write(target: Path, content: bytes, mode: int) -> None:
    number = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(number, "wb") as file:
        file.write(content)
        os.fchmod(number, mode)


def _point(folder: Path, names: set[str]) -> None:
    for entry in folder.iterdir():
        if not entry.name.startswith("..") and entry.name not in names:
            entry.unlink()
    for name in names:
        if not (folder / name).is_symlink():
            (folder / name).symlink_to(f"{DATA}/{name}")


def _holds(folder: Path, files: Files) -> bool:
    found = {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }
    return found == {path: content for path, (content, _) in files.items()}


def _check_host_path(source: HostPathVolumeSource) -> None:
    path, kind = Path(source.path), source.type or ""
    if kind == "DirectoryOrCreate":
        path.mkdir(mode=0o755, parents=True, exist_ok=True)
    elif kind == "FileOrCreate" and not path.exists():
        path.touch(0o644)
    checks = {
        "Directory": path.is_dir,
        "File": path.is_file,
        "Socket": path.is_socket,
        "CharDevice": path.is_char_device,
        "BlockDevice": path.is_block_device,
    }
    if kind in checks and not checks[kind]():
        raise ConfigProblem(f"hostPath type check failed: {path} is not a {kind}")
    if not kind and not path.exists():
        path.mkdir(mode=0o755, parents=True)
