"""Profiles: what kinds of runners there are, as a mounted file says.

The file is written by people, and read again when it changes. What cannot be read
leaves what was read last; what a profile does not say has a default.
"""

from __future__ import annotations

import logging
import os
from pathlib import Path
from typing import Any, Final, Literal

import msgspec

from trimtab.api import Object
from trimtab.operators.sessions.kinds import AgenticSession
from trimtab.operators.sessions.settings import Settings

DEFAULT: Final = "claude-agent-sdk"
PORT: Final = 8001
STATE: Final = ".claude"
LARGEST: Final = 1 << 20
"""Bytes that a file of profiles may have; a ConfigMap holds no more."""

log = logging.getLogger(__name__)


class Resources(Object):
    """What a runner asks for, and what it may take at most."""

    requests: dict[str, str] = {}
    limits: dict[str, str] = {}


class RunnerContainer(Object):
    """The container of a runner."""

    image: str = ""
    port: int = PORT
    env: dict[str, str] = {}
    resources: Resources = Resources()


class Seed(Object):
    """What is in the workspace before the runner starts."""

    cloneRepos: bool = True
    hydrateState: bool = True


class Sandbox(Object):
    """The pod around it."""

    stateDir: str = STATE
    stateSyncImage: str = ""
    persistence: Literal["none", "s3"] = "s3"
    workspaceSize: str = "10Gi"
    terminationGracePeriod: int = 60
    seed: Seed = Seed()

    @property
    def seeded(self) -> bool:
        """Whether something is done before the runner starts."""
        return self.seed.cloneRepos or self.seed.hydrateState

    @property
    def kept(self) -> bool:
        """Whether the state outlives the pod."""
        return self.persistence != "none"


class Auth(Object):
    """What a runner needs to be let in."""

    requiredSecretKeys: list[str] = []
    secretKeyLogic: str = "any"
    vertexSupported: bool = True


class Profile(Object):
    """One kind of runner."""

    id: str = DEFAULT
    displayName: str = ""
    description: str = ""
    framework: str = ""
    provider: str = ""
    container: RunnerContainer = RunnerContainer()
    sandbox: Sandbox = Sandbox()
    auth: Auth = Auth()
    featureGate: str = ""


class Model(Object):
    """One model, and what Vertex calls it."""

    id: str = ""
    vertexId: str = ""
    available: bool = False


class _Manifest(Object):
    models: list[Model] = []


class _File:
    """A file that is read when it is another than last time."""

    def __init__(self, path: str, kind: Any, empty: Any) -> None:
        self._path = Path(path)
        self._decoder = msgspec.json.Decoder(kind)
        self._stamp: tuple[int, int, int] | None = None
        self._held = empty

    def read(self) -> Any:
        try:
            found = os.stat(self._path)
            stamp = found.st_mtime_ns, found.st_ino, found.st_size
            if stamp != self._stamp:
                self._stamp = stamp
                self._held = self._decoder.decode(self._bounded(found.st_size))
        except FileNotFoundError:
            self._stamp = None
        except (OSError, ValueError) as problem:
            # The stamp is kept: it is said once for each version of the file.
            log.warning(
                "%s cannot be read (%s); what it said before still holds: mend it.",
                self._path,
                problem,
            )
        return self._held

    def _bounded(self, size: int) -> bytes:
        if size > LARGEST:
            raise ValueError(f"it has {size} bytes, and {LARGEST} are the most")
        return self._path.read_bytes()


class Registry:
    """The profiles and models that two files name.

    Guarantees: a look costs two calls of stat while the files stay as they are. A
    profile that nobody knows is the default one under that name.
    """

    def __init__(self, settings: Settings) -> None:
        self._profiles = _File(settings.registry_path, list[Profile], [])
        self._models = _File(settings.models_path, _Manifest, _Manifest())

    def profile(self, name: str = "") -> Profile:
        """The profile of a runner type; what it does not say is as usual."""
        wanted = name or DEFAULT
        for each in self._profiles.read():
            if each.id == wanted:
                found: Profile = each
                return found
        return Profile(id=wanted)

    def of(self, session: AgenticSession) -> Profile:
        """The profile that a session asks for, by its variable ``RUNNER_TYPE``."""
        return self.profile(session.spec.environmentVariables.get("RUNNER_TYPE", ""))

    def ports(self) -> tuple[int, ...]:
        """Where runners of any profile are called."""
        said = {each.container.port for each in self._profiles.read()}
        return tuple(sorted(said | {PORT}))

    def vertex_id(self, model: str) -> str:
        """What Vertex calls a model; "" if nobody said."""
        for each in self._models.read().models:
            if each.id == model and each.available:
                return str(each.vertexId)
        return ""
