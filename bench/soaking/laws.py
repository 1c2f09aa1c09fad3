"""Laws: what must be true of the server's objects when nobody changes them any more."""

from __future__ import annotations

from bench.soak_operator import FINALIZER, NAME, Load, LoadSpec, parts_of
from trimtab import Client
from trimtab.cache import Key
from trimtab.kinds import ConfigMap
from trimtab.runtime.definitions import OPERATOR_LABEL


async def broken(client: Client, wished: dict[Key, LoadSpec]) -> list[str]:
    """Every way in which the server is not as it should be, a sentence each."""
    loads = {load.key: load async for load in client.list(Load)}
    children: dict[str, dict[str, str]] = {}
    for load in loads.values():
        children[load.metadata.uid] = {}
    said = []
    async for part in client.list(ConfigMap, labels={OPERATOR_LABEL: NAME}):
        owners = [each.uid for each in part.metadata.ownerReferences]
        if len(owners) != 1 or owners[0] not in children:
            said.append(f"{part} is a child of a Load that is gone.")
        else:
            children[owners[0]][part.metadata.name] = part.data.get("text", "")
    said += [f"{loads[key]} was deleted and is left." for key in loads.keys() - wished]
    said += [f"Load {'/'.join(key)} is lost." for key in wished.keys() - loads.keys()]
    for key in loads.keys() & wished.keys():
        said += _wrong(loads[key], wished[key], children[loads[key].metadata.uid])
    return said


def _wrong(load: Load, wished: LoadSpec, children: dict[str, str]) -> list[str]:
    said = []
    if load.metadata.finalizers != [FINALIZER] or load.metadata.deletionTimestamp:
        said.append(f"{load} has the finalizers {load.metadata.finalizers}.")
    if load.spec != wished:
        said.append(f"{load} has another spec than was acknowledged.")
    expected = {name: part.data["text"] for name, part in parts_of(load).items()}
    if children != expected:
        said.append(f"{load} has the parts {sorted(children)}, or not what they carry.")
    if (load.status.text, load.status.copies) != (load.spec.text, load.spec.copies):
        said.append(f"{load} has a status that does not match its spec.")
    ready = load.status.conditions.get("Ready")
    if ready is None or ready.status != "True":
        said.append(f"{load} is not Ready.")
    elif ready.observedGeneration != load.metadata.generation:
        said.append(f"{load} was last seen at generation {ready.observedGeneration}.")
    return said
