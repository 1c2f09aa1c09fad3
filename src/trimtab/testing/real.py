"""A real control plane for tests: etcd and kube-apiserver on loopback.

etcd listens on a unix socket in a private folder, so the only port is that of
kube-apiserver, and that one is held by a bound socket of ours for as long as the
cluster lives (see `reserved_port`): two clusters cannot race for it, nor can anyone
take it while kube-apiserver restarts.
"""

import base64
import contextlib
import csv
import http.client
import io
import json
import socket
import ssl
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from trimtab.testing import assets, pki
from trimtab.testing.errors import ClusterError
from trimtab.testing.options import ADMIN, Options, Token
from trimtab.testing.processes import Keeper

HOST = "127.0.0.1"
ETCD, APISERVER, CONTROLLERS = "etcd", "kube-apiserver", "kube-controller-manager"

# A relative socket, since every program runs in the folder and a path of more than
# about a hundred characters is too long for one. etcd insists on something that
# looks like a port.
ETCD_SOCKET = "etcd.sock:0"
PEER_SOCKET = "peer.sock:0"

POLL = 0.03
"""Seconds between two questions whether a program is ready."""


class ControlPlane:
    """The programs of one cluster, and when they are ready.

    Assumptions: methods block, and are called by one thread at a time.
    """

    def __init__(
        self,
        keeper: Keeper,
        *,
        programs: dict[str, Path],
        port: int,
        options: Options,
        abandoned: threading.Event,
    ) -> None:
        self.folder = keeper.folder
        self.server = f"https://{HOST}:{port}"
        self.kubeconfig = self.folder / "admin.kubeconfig"
        self._keeper = keeper
        self._programs = programs
        self._port = port
        self._options = options
        self._abandoned = abandoned

    @property
    def pids(self) -> dict[str, int]:
        """The process id of each program by its name."""
        return self._keeper.pids

    def start(self) -> None:
        """Start everything; returns when the API server is ready for use."""
        deadline = self._deadline()
        self._run(ETCD, etcd_flags(self._options))
        pki.make(self.folder)
        self._write_files()
        self._context = _tls(self.folder)
        # The socket is there before etcd serves; kube-apiserver waits for the rest.
        self._until(ETCD, (self.folder / ETCD_SOCKET).exists, deadline)
        self._run(APISERVER, apiserver_flags(self._port, self._options))
        self._until(APISERVER, self._is_ready, deadline)
        if self._options.controllers:
            self._run(CONTROLLERS, controller_flags(self._options))
            self._until(CONTROLLERS, self._has_service_account, deadline)

    def restart_apiserver(self) -> None:
        """Stop kube-apiserver and start it again on the same port and objects."""
        self._keeper.stop(APISERVER)
        self._run(APISERVER, apiserver_flags(self._port, self._options))
        self._until(APISERVER, self._is_ready, self._deadline())

    def _deadline(self) -> float:
        return time.monotonic() + self._options.ready_within

    def _run(self, name: str, flags: Sequence[str]) -> None:
        self._keeper.start(name, [str(self._programs[name]), *flags])

    def _until(self, name: str, check: Callable[[], bool], deadline: float) -> None:
        while not check():
            self._keeper.raise_if_ended()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{name} was not ready within {self._options.ready_within:g} s; "
                    f"its log ends with:\n{self._keeper.log_tail(name)}"
                )
            if self._abandoned.wait(POLL):
                raise ClusterError(f"{name} was stopped before it was ready.")

    def _is_ready(self) -> bool:
        # /readyz does not cover the namespace that everybody uses first.
        return self._answers("/readyz") and self._answers("/api/v1/namespaces/default")

    def _has_service_account(self) -> bool:
        return self._answers("/api/v1/namespaces/default/serviceaccounts/default")

    def _answers(self, path: str) -> bool:
        connection = http.client.HTTPSConnection(
            HOST, self._port, timeout=5.0, context=self._context
        )
        try:
            connection.request("GET", path)
            return connection.getresponse().status == http.HTTPStatus.OK
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()

    def _write_files(self) -> None:
        tokens = self._options.tokens
        manager = "controller-manager"
        users: dict[str, Any] = {ADMIN: _certificate(self.folder, ADMIN)}
        users |= {each.user: {"token": each.token} for each in tokens}
        self._write_kubeconfig(self.kubeconfig.name, users)
        users = {manager: _certificate(self.folder, manager)}
        self._write_kubeconfig(f"{manager}.kubeconfig", users)
        pki.write_private(self.folder / "tokens.csv", token_file(tokens))

    def _write_kubeconfig(self, name: str, users: dict[str, Any]) -> None:
        content = kubeconfig(
            self.folder.name, server=self.server, folder=self.folder, users=users
        )
        pki.write_private(self.folder / name, json.dumps(content, indent=2).encode())


@contextlib.contextmanager
def control_plane(
    options: Options, *, abandoned: threading.Event
) -> Iterator[ControlPlane]:
    """A ready control plane, gone without a trace at the end of the block.

    Guarantees: nothing stays behind, however the block, the start or this process
    ends; setting `abandoned` from another thread ends a start early.

    Errors: `AssetsMissing`; `ClusterError` with the end of a program's log when it
    ended or was not ready in time.
    """
    names = (ETCD, APISERVER, *((CONTROLLERS,) if options.controllers else ()))
    programs = assets.require(*names)
    with Keeper() as keeper, reserved_port() as port:
        plane = ControlPlane(
            keeper, programs=programs, port=port, options=options, abandoned=abandoned
        )
        plane.start()
        yield plane


@contextlib.contextmanager
def reserved_port() -> Iterator[int]:
    """A port on loopback that only a program with SO_REUSEPORT can listen on.

    The socket is bound but does not listen, so no connection ever comes to it.
    """
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as holder:
        holder.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        holder.bind((HOST, 0))
        yield holder.getsockname()[1]


def etcd_flags(options: Options) -> list[str]:
    """How etcd is started: one member, nothing durable, a leader at once."""
    client, peer = f"unix://{ETCD_SOCKET}", f"unix://{PEER_SOCKET}"
    return [
        "--name=test",
        "--data-dir=etcd",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=test={peer}",
        "--heartbeat-interval=10",
        "--election-timeout=100",
        "--unsafe-no-fsync",
        "--log-level=warn",
        *options.etcd_flags,
    ]


def apiserver_flags(port: int, options: Options) -> list[str]:
    """How kube-apiserver is started: its defaults, with RBAC, on loopback."""
    without_accounts = ["--disable-admission-plugins=ServiceAccount"]
    return [
        f"--etcd-servers=unix://{ETCD_SOCKET}",
        f"--bind-address={HOST}",
        f"--advertise-address={HOST}",
        f"--secure-port={port}",
        "--permit-port-sharing=true",
        # A loopback address is no valid endpoint for the Service `kubernetes`.
        "--endpoint-reconciler-type=none",
        "--tls-cert-file=apiserver.crt",
        "--tls-private-key-file=apiserver.key",
        "--client-ca-file=ca.crt",
        "--token-auth-file=tokens.csv",
        "--service-account-issuer=https://kubernetes.default.svc",
        "--service-account-key-file=service-account.key",
        "--service-account-signing-key-file=service-account.key",
        "--service-cluster-ip-range=10.0.0.0/24",
        "--authorization-mode=RBAC",
        "--allow-privileged=true",
        *([] if options.controllers else without_accounts),
        *options.apiserver_flags,
    ]


def controller_flags(options: Options) -> list[str]:
    """How kube-controller-manager is started: alone, and not held back."""
    return [
        "--kubeconfig=controller-manager.kubeconfig",
        "--secure-port=0",
        "--leader-elect=false",
        "--kube-api-qps=200",
        "--kube-api-burst=400",
        "--root-ca-file=ca.crt",
        "--service-account-private-key-file=service-account.key",
        "--cluster-signing-cert-file=ca.crt",
        "--cluster-signing-key-file=ca.key",
        "--use-service-account-credentials=true",
        *options.controller_flags,
    ]


def kubeconfig(
    name: str, *, server: str, folder: Path, users: dict[str, Any]
) -> dict[str, Any]:
    """A kubeconfig with a context for each user, the first of them current."""
    cluster = {"server": server, "certificate-authority-data": _data(folder / "ca.crt")}
    return config(name, cluster=cluster, users=users)


def config(
    name: str, *, cluster: dict[str, str], users: dict[str, Any]
) -> dict[str, Any]:
    """The same, of a cluster whose address and authority are known."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": name, "cluster": cluster}],
        "users": [{"name": user, "user": value} for user, value in users.items()],
        "contexts": [
            {"name": user, "context": {"cluster": name, "user": user}} for user in users
        ],
        "current-context": next(iter(users)),
    }


def token_file(tokens: Sequence[Token]) -> bytes:
    """What kube-apiserver's `--token-auth-file` reads: token, user, uid, groups."""
    text = io.StringIO()
    rows = (
        (each.token, each.user, each.user, ",".join(each.groups)) for each in tokens
    )
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _certificate(folder: Path, name: str) -> dict[str, str]:
    return {
        "client-certificate-data": _data(folder / f"{name}.crt"),
        "client-key-data": _data(folder / f"{name}.key"),
    }


def _data(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()


def decoded(data: str) -> bytes:
    """What a field of a kubeconfig that ends with `-data` holds."""
    return base64.b64decode(data)


def _tls(folder: Path) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=folder / "ca.crt")
    context.load_cert_chain(folder / "admin.crt", folder / "admin.key")
    return context
