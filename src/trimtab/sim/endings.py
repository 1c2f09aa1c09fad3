"""Laws about a world at rest: when all goes well again, and when all is gone."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final

from trimtab.runtime.controller import Controller
from trimtab.runtime.definitions import OPERATOR_LABEL
from trimtab.sim.fields import merge, owned
from trimtab.sim.kubelet import PODS
from trimtab.sim.laws import EVENTS, LEASES, Broken
from trimtab.sim.operating import OperatorReplica
from trimtab.sim.programs import ProgramReplica
from trimtab.sim.scenario import Scenario, path_of, resource_of
from trimtab.sim.server import Plain, Server

TIME: Final = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")
UID: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
# What no two runs have in common.
OWN_STORY: Final = frozenset(
    "creationTimestamp generation managedFields observedGeneration resourceVersion"
    " selfLink uid lastTransitionTime lastUpdateTime lastProbeTime".split()
)

FINALIZED: Final = "every finalizer ends"
OWNED: Final = "nothing owned outlives its owner"
SAME: Final = "it ends as an undisturbed run does"
CACHED: Final = "a cache at rest is what its scope says, as the server has it"
REMEMBERED: Final = "a replica remembers nothing of what is gone"
HEALTHY: Final = "a replica at rest is ready"
LEASED: Final = 30.0
"""Seconds within which a replica that takes part in an election asks for the lease."""
LED: Final = "one replica leads, and the others stand by"
STRANGERS: Final = "an operator caches children of its own only"
SUCCEEDS: Final = "at rest nothing fails any more"
COUNTED: Final = "a success ends the count of failures"
RELEASED: Final = "a lease is released at the end"


class Endings:
    """Looks at a world that has come to rest."""

    def __init__(self, scenario: Scenario, server: Server, broken: Broken) -> None:
        self._scenario = scenario
        self._server = server
        self._broken = broken
        self._name = scenario.operator.name if scenario.operator else ""
        self._definitions = scenario.definitions
        self._kinds = {resource_of(each.kind) for each in self._definitions}

    def at_rest(
        self,
        replicas: Sequence[OperatorReplica],
        programs: Iterable[ProgramReplica] = (),
    ) -> None:
        self._finalized()
        leading = [each.name for each in replicas if _leads(each)]
        if replicas and self._scenario.elects and len(leading) != 1:
            self._broken(LED, f"Those that lead are: {', '.join(leading) or 'none'}.")
        self._orphans()
        for replica in replicas:
            self._healthy(replica)
            self._caches(replica)
            for controller in _controllers(replica):
                self._succeeds(replica, controller)
                self._failures(replica, controller)
        for program in programs:
            if not program.running and not program.finished:
                self._broken(HEALTHY, f"{program.name} does not run.")
        for law in self._scenario.at_rest:
            for sentence in law(self._server) or ():
                self._broken(getattr(law, "__name__", "own law"), sentence)

    def all_gone(self, replicas: Iterable[OperatorReplica]) -> None:
        """People have deleted everything that the operator reconciles."""
        self._finalized()
        self._orphans()
        keeps = {resource_of(each) for each in self._scenario.keeps}
        for key, _ in self._ours():
            if _resource(key) not in keeps | {LEASES}:
                self._broken(OWNED, f"{key} is still there, and all owners are gone.")
        for replica in replicas:
            self._caches(replica)
            for controller in _controllers(replica):
                self._forgotten(replica, controller)

    def ended(self) -> None:
        """Every replica has stopped as it was told to."""
        lease = self._server.objects.get(f"{LEASES}/default/{self._name}")
        if lease is not None and lease["spec"].get("holderIdentity"):
            holder = lease["spec"]["holderIdentity"]
            self._broken(RELEASED, f"All replicas have stopped; {holder} holds it.")

    def _ours(self) -> Iterator[tuple[str, Plain]]:
        """What the operator reconciles, and what it made."""
        name = self._name
        for key, obj in sorted(self._server.objects.items()):
            labels = obj["metadata"].get("labels") or {}
            if _resource(key) in EVENTS:
                continue
            if _resource(key) in self._kinds or labels.get(OPERATOR_LABEL) == name:
                yield key, obj

    def _finalized(self) -> None:
        for key, obj in self._ours():
            if "deletionTimestamp" in obj["metadata"]:
                held = ", ".join(obj["metadata"].get("finalizers", ())) or "nothing"
                self._broken(FINALIZED, f"{key} is still going; it waits for {held}.")

    def _orphans(self) -> None:
        living = {each["metadata"]["uid"] for each in self._server.objects.values()}
        for key, obj in self._ours():
            owners = obj["metadata"].get("ownerReferences") or ()
            if owners and not any(each["uid"] in living for each in owners):
                self._broken(OWNED, f"{key} is there, and {owners[0]['name']} is not.")

    def _healthy(self, replica: OperatorReplica) -> None:
        manager = replica.manager
        if not replica.running or manager is None:
            self._broken(HEALTHY, f"{replica.name} does not run.")
            return
        led = manager.leadership
        if led is not None and self._server.time() - replica.leased > LEASED:
            self._broken(LED, f"{replica.name} has not asked for the lease for long.")
        report = manager.health.ready()
        if not report.healthy:
            self._broken(HEALTHY, f"{replica.name}: {' '.join(report.text.split())}")

    def _caches(self, replica: OperatorReplica) -> None:
        for controller in _controllers(replica):
            self._own_children(replica, controller)
            for kind, informer in controller.informers.items():
                if informer.scope.namespaces_where:
                    continue  # it follows labels of namespaces, which nobody changes
                store = informer.store
                held = {
                    key: obj.metadata.resourceVersion if obj else ""
                    for key in tuple(store.keys())
                    for obj in (store.get(key),)
                }
                self._compare(
                    f"{replica.name}: {kind.kind}", held, self._listed(kind, informer)
                )

    def _own_children(self, replica: OperatorReplica, controller: Controller) -> None:
        name = self._name
        for source in controller.definition.owns:
            for obj in controller.informers[source.kind].store.values():
                if obj.metadata.labels.get(OPERATOR_LABEL) != name:
                    self._broken(STRANGERS, f"{replica.name} caches {obj}.")
                    break

    def _succeeds(self, replica: OperatorReplica, controller: Controller) -> None:
        if controller.queue is None:
            return  # it does not lead
        definition = controller.definition
        for key in sorted(controller.informers[definition.kind].store.keys()):
            last = controller.history.of(key)
            if last is not None and last.outcome in ("error", "timeout"):
                name = "/".join(filter(None, key))
                self._broken(
                    SUCCEEDS,
                    f"{replica.name}: {definition.name} of {name}: {last.error}",
                )

    def _failures(self, replica: OperatorReplica, controller: Controller) -> None:
        """A success ends the count: else the next failure would pause for too long."""
        queue = controller.queue
        failing = queue.statistics().failing if queue is not None else 0
        if failing:
            name = f"{replica.name}: {controller.definition.name}"
            self._broken(COUNTED, f"{name} still counts failures of {failing} keys.")

    def _listed(self, kind: Any, informer: Any) -> dict[Any, str]:
        scope = informer.scope
        query = {"labelSelector": scope.labels, "fieldSelector": scope.fields}
        found: dict[Any, str] = {}
        for namespace in scope.namespaces or ("",):
            path = path_of(kind, namespace)
            _, answer = self._server.ask(
                "GET", path, query={key: text for key, text in query.items() if text}
            )
            for each in answer["items"]:
                metadata = each["metadata"]
                key = (metadata.get("namespace", ""), metadata["name"])
                found[key] = metadata["resourceVersion"]
        return found

    def _compare(self, about: str, held: dict[Any, str], there: dict[Any, str]) -> None:
        for key in sorted({**held, **there}):
            name = "/".join(filter(None, key))
            if key not in there:
                self._broken(CACHED, f"{about} {name} is cached and not there.")
            elif key not in held:
                self._broken(CACHED, f"{about} {name} is there and not cached.")
            elif held[key] and held[key] != there[key]:
                self._broken(
                    CACHED,
                    f"{about} {name} is cached at {held[key]} and is at {there[key]}.",
                )

    def _forgotten(self, replica: OperatorReplica, controller: Controller) -> None:
        ledger = len(controller._writer.ledger)
        queue = len(controller.queue) if controller.queue is not None else 0
        known = controller.queue.statistics().failing if controller.queue else 0
        name = f"{replica.name}: {controller.definition.name}"
        if ledger:
            self._broken(REMEMBERED, f"{name} keeps {ledger} applies in its ledger.")
        if queue:
            self._broken(REMEMBERED, f"{name} keeps {queue} keys in its queue.")
        if known:
            self._broken(REMEMBERED, f"{name} keeps the failures of {known} keys.")

    # The state, without what no two runs have in common

    def state(self) -> dict[str, Any]:
        """What the operator made of the world, to be compared with another run's."""
        found: dict[str, Any] = {}
        for key, obj in self._ours():
            if _resource(key) == PODS and _is_modelled(obj):
                continue
            name = key
            if obj["metadata"].get("generateName"):
                name = f"{_resource(key)}/{obj['metadata']['generateName']}*"
            part = obj if _resource(key) in self._kinds else self._made(obj)
            found.setdefault(name, []).append(_plain(part, "", self._ignored))
        for each in found.values():
            each.sort(key=repr)
        return found

    def _made(self, obj: Plain) -> Plain:
        """What the operator wrote of an object, by the server's own account.

        The rest may depend on history: a default that followed from a first image
        stays when the image changes.
        """
        prefix = f"{self._name}."
        made: Plain = {}
        for each in obj["metadata"].get("managedFields", ()):
            if each["manager"].startswith(prefix):
                merge(made, owned(obj, each.get("fieldsV1", {})))
        return made or obj

    @property
    def _ignored(self) -> frozenset[str]:
        return frozenset(self._scenario.ignore)

    def compare(self, wanted: dict[str, Any]) -> None:
        """Whether this world ended as the undisturbed one did."""
        mine = self.state()
        for key in sorted({**mine, **wanted}):
            if key not in mine:
                self._broken(SAME, f"{key} is missing.")
            elif key not in wanted:
                self._broken(SAME, f"{key} is too much.")
            elif mine[key] != wanted[key]:
                for path in list(_unlike(wanted[key], mine[key], ""))[:3]:
                    self._broken(SAME, f"{key}: {path}")


def _leads(replica: OperatorReplica) -> bool:
    manager = replica.manager
    led = replica.running and manager is not None and manager.leadership is not None
    return led and manager.leadership.is_leader  # type: ignore[union-attr]


def _controllers(replica: OperatorReplica) -> Iterable[Controller]:
    running = replica.running and replica.manager is not None
    return replica.manager.controllers if running and replica.manager else ()


def _resource(key: str) -> str:
    return "/".join(key.split("/", 2)[:2])


def _is_modelled(pod: Plain) -> bool:
    owners = pod["metadata"].get("ownerReferences") or ()
    return any(each["kind"] in ("Deployment", "Job") for each in owners)


def _plain(value: Any, path: str, ignored: frozenset[str]) -> Any:
    if isinstance(value, dict):
        return {
            name: _plain(each, f"{path}.{name}".lstrip("."), ignored)
            for name, each in value.items()
            if name not in OWN_STORY and f"{path}.{name}".lstrip(".") not in ignored
        }
    if isinstance(value, list):
        return [_plain(each, path, ignored) for each in value]
    if isinstance(value, str):
        return UID.sub("UID", TIME.sub("TIME", value))
    return value


def _unlike(wanted: Any, found: Any, path: str) -> Iterator[str]:
    """Sentences about what differs."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        for name in {**wanted, **found}:
            if wanted.get(name) != found.get(name):
                yield from _unlike(wanted.get(name), found.get(name), f"{path}.{name}")
    elif (
        isinstance(wanted, list)
        and isinstance(found, list)
        and len(wanted) == len(found)
    ):
        for one, other in zip(wanted, found, strict=True):
            if one != other:
                yield from _unlike(one, other, path)
    else:
        yield f"{path.lstrip('.')} is {found!r}, undisturbed it is {wanted!r}."
