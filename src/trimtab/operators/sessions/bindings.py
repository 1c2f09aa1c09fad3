"""Bindings: what the groups of a project may do there, kept exactly so.

A binding is named by a hash of group and role, whatever characters a group's name has.
A group that the settings no longer name loses its binding; so do those that were named
in the old way, by the bare names of group and role.
"""

from __future__ import annotations

from typing import Final

from trimtab.api import Metadata, hashed
from trimtab.cache import Index, Scope
from trimtab.client import TrimtabError
from trimtab.kinds import RoleBinding, RoleRef, Subject
from trimtab.operators.sessions.kinds import MANAGED, GroupAccess, ProjectSettings
from trimtab.runtime import Context

SCOPE: Final = Scope(labels=f"{MANAGED}=true")
LABEL: Final = "ambient-code.io/group-access"
"""On the bindings that are made here."""
RBAC: Final = "rbac.authorization.k8s.io"
ROLES: Final = {f"ambient-project-{role}": role for role in ("admin", "edit", "view")}
BY_NAMESPACE: Final = Index("namespace", lambda each: (each.metadata.namespace,))


def binding_of(access: GroupAccess) -> RoleBinding:
    """The binding of one group."""
    group, role = access.groupName, access.role
    return RoleBinding(
        metadata=Metadata(
            name=hashed(f"{group}-{role}", group, role),
            labels={MANAGED: "true", LABEL: "true"},
        ),
        roleRef=RoleRef(kind="ClusterRole", name=f"ambient-project-{role}"),
        subjects=[Subject(kind="Group", name=group, apiGroup=RBAC)],
    )


def is_ours(binding: RoleBinding) -> bool:
    """Whether a binding is one that the settings of a project are to decide about."""
    return binding.metadata.labels.get(LABEL) == "true" or _is_old(binding)


def _is_old(binding: RoleBinding) -> bool:
    role = ROLES.get(binding.roleRef.name)
    groups = [each.name for each in binding.subjects if each.kind == "Group"]
    if role is None or len(groups) != len(binding.subjects) or len(groups) != 1:
        return False
    return binding.metadata.name == f"{groups[0]}-{role}"


async def reconcile(seen: ProjectSettings, ctx: Context, problems: list[str]) -> int:
    """Have the bindings that the settings name, and no other; how many there are.

    Guarantees: what is as it should be is not written. One that fails keeps no other
    from being made or removed; ``problems`` says which.
    """
    wanted = {
        made.metadata.name: made
        for made in map(binding_of, filter(_is_named, seen.spec.groupAccess))
    }
    held = {
        each.metadata.name: each
        for each in ctx.select(RoleBinding, BY_NAMESPACE.name, seen.metadata.namespace)
        if is_ours(each)
    }
    bound = 0
    for name, made in wanted.items():
        try:
            if name not in held or not _same(held[name], made):
                await ctx.apply(made)
            bound += 1
        except TrimtabError as problem:
            problems.append(f"The group {made.subjects[0].name}: {problem}")
    for name in held.keys() - wanted.keys():
        try:
            await ctx.delete(held[name])
        except TrimtabError as problem:
            problems.append(f"The binding {name} is to go: {problem}")
    return bound


def _is_named(access: GroupAccess) -> bool:
    return bool(access.groupName.strip())


def _same(held: RoleBinding, made: RoleBinding) -> bool:
    return list(held.subjects) == list(made.subjects) and held.roleRef == made.roleRef
