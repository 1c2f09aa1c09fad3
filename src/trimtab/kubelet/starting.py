"""Starting: from a container's spec to the process that it is to be."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

from trimtab.api.kinds import Container, WholePod
from trimtab.kubelet.environment import ConfigProblem, Environment, Maps, expanded
from trimtab.kubelet.images import Image
from trimtab.kubelet.processes import Mount, Order
from trimtab.kubelet.site import Site
from trimtab.kubelet.volumes import MountProblem, Volumes

HOSTS = "hosts"
MARK = "TRIMTAB_POD_UID"
MESSAGE_PATH = "/dev/termination-log"


class Place(msgspec.Struct, frozen=True, kw_only=True):
    """Where a pod is: its folder, its address, its volumes."""

    folder: Path
    address: str
    volumes: Volumes


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be started, and where it leaves its last words."""

    order: Order
    message: Path


async def plan(
    pod: WholePod,
    container: Container,
    *,
    image: Image,
    command: list[str],
    place: Place,
    site: Site,
    message: Path,
) -> Plan:
    """Everything about a container's process.

    Errors: :class:`ConfigProblem` if something that it refers to is not there.
    """
    environment = Environment(
        pod,
        Maps(site.client, pod.metadata.namespace),
        host=site.options.api[0] or "127.0.0.1",
        address=place.address,
        allocatable=site.allocatable,
    )
    env = await environment.of(container, base=_base(pod, image, place, site))
    env[MARK] = pod.metadata.uid
    user, group = _identity(pod, container)
    mounts = _mounts(pod, container, env, place, site, message)
    work = expanded(container.workingDir, env) or image.folder or str(place.folder)
    order = Order(
        argv=[expanded(word, env) for word in command],
        env=env,
        cwd=work,
        mounts=mounts,
        hostname=(pod.spec.hostname or pod.metadata.name)[:63] if mounts else "",
        staging=str(place.folder / "staging"),
        user=user,
        group=group,
    )
    return Plan(order=order, message=message)


def _base(pod: WholePod, image: Image, place: Place, site: Site) -> dict[str, str]:
    made = {
        "PATH": image.path,
        "HOME": os.path.expanduser("~"),
        "LANG": "C.UTF-8",
        "HOSTNAME": pod.spec.hostname or pod.metadata.name,
        "POD_IP": place.address,
    }
    host, port = site.options.api
    if host:
        made["KUBERNETES_SERVICE_HOST"] = host
        made["KUBERNETES_SERVICE_PORT"] = port
        made["KUBERNETES_SERVICE_PORT_HTTPS"] = port
    if pod.spec.enableServiceLinks is not False:
        made |= site.services(pod.metadata.namespace)
    if not site.can_mount:
        for volume in pod.spec.volumes:
            name = volume.name.upper().replace("-", "_").replace(".", "_")
            made[f"TRIMTAB_VOLUME_{name}"] = str(place.volumes.path(volume))
    return made


def _mounts(
    pod: WholePod,
    container: Container,
    env: dict[str, str],
    place: Place,
    site: Site,
    message: Path,
) -> list[Mount]:
    if not site.can_mount:
        return []
    try:
        made = place.volumes.mounts(container, env)
    except (MountProblem, OSError) as error:
        raise ConfigProblem(str(error)) from error
    hosts = place.folder / HOSTS
    hosts.write_text(hosts_file(pod, place.address, site))
    own = [Mount(source=str(hosts), target="/etc/hosts", optional=True)]
    target = container.terminationMessagePath or MESSAGE_PATH
    message.parent.mkdir(parents=True, exist_ok=True)
    message.write_bytes(b"")
    own.append(Mount(source=str(message), target=target, optional=True))
    taken = {each.target for each in made}
    return [*(each for each in own if each.target not in taken), *made]


def hosts_file(pod: WholePod, address: str, site: Site) -> str:
    """The hosts file of a pod: itself, its aliases, and the Services that it sees."""
    name = pod.spec.hostname or pod.metadata.name
    lines = [
        "# Kubernetes-managed hosts file.",
        "127.0.0.1\tlocalhost",
        "::1\tlocalhost ip6-localhost ip6-loopback",
        f"{address}\t{name}",
    ]
    for alias in pod.spec.hostAliases:
        lines.append(f"{alias.ip}\t{' '.join(alias.hostnames)}")
    return "\n".join(lines) + "\n" + site.hosts(pod.metadata.namespace)


def _identity(pod: WholePod, container: Container) -> tuple[int | None, int | None]:
    """Whom it runs as; only root may become somebody else, and others need not."""
    own, shared = container.securityContext, pod.spec.securityContext
    user = group = None
    for context in (shared, own):
        if context is not None and context.runAsUser is not None:
            user = context.runAsUser
        if context is not None and context.runAsGroup is not None:
            group = context.runAsGroup
    if os.geteuid() != 0:
        return None, None
    must = any(c is not None and c.runAsNonRoot for c in (shared, own))
    if must and not user:
        meta = pod.metadata
        why = "container has runAsNonRoot and image will run as root"
        if user == 0:
            why = "container's runAsUser breaks non-root policy"
        raise ConfigProblem(
            f'{why} (pod: "{meta.name}_{meta.namespace}({meta.uid})", container: '
            f"{container.name})"
        )
    return user, group
