"""An embedded API server for tests: `trimtab up` in a process beside the test's.

A process of its own, so that a test can stop, kill and restart it, and so that a test
that holds up its own event loop does not hold up the server too. The keeper sees to it
that the process never outlives the test run.
"""

import contextlib
import http.client
import json
import ssl
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from trimtab.testing import assets, real
from trimtab.testing.errors import ClusterError
from trimtab.testing.kubectl import Kubectl
from trimtab.testing.options import ADMIN, Options
from trimtab.testing.pki import write_private
from trimtab.testing.processes import Keeper

NAME = "trimtab"
READY, WRITTEN, TOKENS = "ready.json", "written.kubeconfig", "tokens.csv"
POLL = 0.01
"""Seconds between two looks whether it is ready."""

FURNISHED_WITHIN = 10.0
"""Seconds for a new namespace to get its service account."""

# The same Trimtab as the test's, wherever that one was imported from.
BOOT = (
    "import sys; sys.path.insert(0, sys.argv.pop(1)); "
    "from trimtab.cli.main import main; sys.exit(main())"
)
SOURCE = str(Path(__file__).resolve().parents[2])


class EmbeddedPlane:
    """The process of one embedded server, and when it is ready.

    Assumptions: methods block, and are called by one thread at a time.
    """

    def __init__(
        self, keeper: Keeper, *, options: Options, abandoned: threading.Event
    ) -> None:
        self.folder = keeper.folder
        self.kubeconfig = self.folder / f"{ADMIN}.kubeconfig"
        self.server = ""
        self._keeper = keeper
        self._options = options
        self._abandoned = abandoned
        self._port = 0
        self._kept: http.client.HTTPSConnection | None = None

    @property
    def pids(self) -> dict[str, int]:
        """The process id of the server by its name."""
        return self._keeper.pids

    def start(self) -> None:
        """Start it; returns when it is ready for use."""
        tokens = self._options.tokens
        write_private(self.folder / TOKENS, real.token_file(tokens))
        self._run()
        content = json.loads((self.folder / WRITTEN).read_bytes())
        write_private(self.kubeconfig, json.dumps(self._contexts(content)).encode())

    def restart_apiserver(self) -> None:
        """Stop the server and start it again on the same port and objects."""
        self.close()
        self._keeper.stop(NAME)
        self._run()

    def call(self, method: str, path: str, body: Any = None) -> int:
        """Ask the server as its administrator; the status that it answered with.

        The connection is kept: shaking hands costs more than what every test asks.
        One that the server has closed meanwhile is made anew.
        """
        if self._kept is not None:
            with contextlib.suppress(http.client.HTTPException, OSError):
                return self._ask(self._kept, method, path, body)
            self.close()
        context = ssl.create_default_context(cadata=self._ca)
        context.load_cert_chain(self.folder / "admin.pem")
        self._kept = http.client.HTTPSConnection(
            real.HOST, self._port, timeout=10.0, context=context
        )
        return self._ask(self._kept, method, path, body)

    def close(self) -> None:
        """Close the connection of the administrator."""
        if self._kept is not None:
            self._kept.close()
            self._kept = None

    def _ask(
        self, connection: http.client.HTTPSConnection, method: str, path: str, body: Any
    ) -> int:
        headers = {"Content-Type": "application/json"}
        text = None if body is None else json.dumps(body)
        connection.request(method, path, body=text, headers=headers)
        response = connection.getresponse()
        response.read()
        return response.status

    def _run(self) -> None:
        (self.folder / READY).unlink(missing_ok=True)
        arguments = (
            "--data=data",
            f"--port={self._port}",
            f"--kubeconfig={WRITTEN}",
            f"--ready-file={READY}",
            f"--tokens={TOKENS}",
            # A test that wants pods to run starts a node of its own.
            "--no-kubelet",
        )
        argv = [sys.executable, "-c", BOOT, SOURCE, "up", *arguments]
        self._keeper.start(NAME, argv)
        self._wait()
        facts = json.loads((self.folder / READY).read_bytes())
        self.server = facts["server"]
        self._port = int(self.server.rpartition(":")[2])

    def _wait(self) -> None:
        deadline = time.monotonic() + self._options.ready_within
        while not (self.folder / READY).exists():
            self._keeper.raise_if_ended()
            if time.monotonic() > deadline:
                raise ClusterError(
                    f"{NAME} was not ready within {self._options.ready_within:g} s; "
                    f"its log ends with:\n{self._keeper.log_tail(NAME)}"
                )
            if self._abandoned.wait(POLL):
                raise ClusterError(f"{NAME} was stopped before it was ready.")

    def _contexts(self, written: dict[str, Any]) -> dict[str, Any]:
        """The kubeconfig of a test cluster: a context for each user."""
        [cluster], [admin] = written["clusters"], written["users"]
        self._keep_credentials(cluster["cluster"], admin["user"])
        users = {ADMIN: admin["user"]}
        users |= {each.user: {"token": each.token} for each in self._options.tokens}
        return real.config(self.folder.name, cluster=cluster["cluster"], users=users)

    def _keep_credentials(self, cluster: dict[str, str], user: dict[str, str]) -> None:
        self._ca = real.decoded(cluster["certificate-authority-data"]).decode()
        key = real.decoded(user["client-key-data"])
        certificate = real.decoded(user["client-certificate-data"])
        write_private(self.folder / "admin.pem", key + certificate)


@contextlib.contextmanager
def embedded_namespace(plane: object, name: str) -> Iterator[None]:
    """A namespace with its service account; made and deleted without kubectl."""
    assert isinstance(plane, EmbeddedPlane), "only an embedded cluster has this"
    namespace = {"metadata": {"name": name}}
    path = f"/api/v1/namespaces/{name}"
    code = plane.call("POST", "/api/v1/namespaces", namespace)
    if code != http.HTTPStatus.CREATED:
        raise ClusterError(f"the namespace {name} was not made: the answer was {code}.")
    deadline = time.monotonic() + FURNISHED_WITHIN
    while plane.call("GET", f"{path}/serviceaccounts/default") != http.HTTPStatus.OK:
        if time.monotonic() > deadline:
            raise ClusterError(f"the namespace {name} got no service account in time.")
        time.sleep(POLL)
    yield
    plane.call("DELETE", path)


class AnyKubectl(Kubectl, frozen=True, kw_only=True):
    """kubectl if this machine has it: a test that does not call it needs none."""

    def _command(self, arguments: Any) -> list[str]:
        assets.require("kubectl")
        return super()._command(arguments)


@contextlib.contextmanager
def embedded_plane(
    options: Options, *, abandoned: threading.Event
) -> Iterator[EmbeddedPlane]:
    """A ready server, gone without a trace at the end of the block.

    Guarantees: nothing stays behind, however the block, the start or this process
    ends; setting `abandoned` from another thread ends a start early.

    Errors: `ClusterError` with the end of its log when it ended or was not ready in
    time, or when the options have flags, which only real programs understand.
    """
    if options.apiserver_flags or options.etcd_flags or options.controller_flags:
        raise ClusterError(
            "an embedded cluster takes no flags of the real programs: use "
            "--cluster=real, or options without them."
        )
    with Keeper() as keeper:
        plane = EmbeddedPlane(keeper, options=options, abandoned=abandoned)
        plane.start()
        with contextlib.closing(plane):
            yield plane
