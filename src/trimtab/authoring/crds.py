"""CRDs: those that a module's classes make, and how they compare with a cluster's."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from types import ModuleType
from typing import Any

from trimtab.api.crd import crd
from trimtab.api.resource import Info, Resource
from trimtab.authoring.definition_changes import compare, served, storage
from trimtab.authoring.findings import Finding, Report
from trimtab.client import Client
from trimtab.client.errors import NotFound, TrimtabError
from trimtab.runtime.operator import Operator
from trimtab.runtime.webhooks.declarations import definition_name

Plain = dict[str, Any]

DEFINITIONS = Info(
    group="apiextensions.k8s.io",
    version="v1",
    kind="CustomResourceDefinition",
    plural="customresourcedefinitions",
    namespaced=False,
)


class NoDefinition(TrimtabError):
    """A module has no class that a CRD could be made from, or one that is wrong."""


def classes(module: ModuleType, operators: Iterable[Operator]) -> list[type[Resource]]:
    """The classes that need a CRD.

    They are those that the module defines, those that its operators reconcile, and
    every other version of either that the module has.
    """
    every = [each for each in vars(module).values() if _is_custom(each)]
    chosen = [each for each in every if each.__module__ == module.__name__]
    for operator in operators:
        chosen += [each for each in operator.kinds() if _is_custom(each)]
    names = {_kind(each) for each in chosen}
    chosen += [each for each in every if _kind(each) in names]
    return list(dict.fromkeys(chosen))


def converted(operators: Iterable[Operator]) -> frozenset[str]:
    """The names of the CRDs whose kinds some operator converts."""
    return frozenset(
        definition_name(versions[0])
        for operator in operators
        for versions in operator.webhooks.converted()
    )


def definitions(
    kinds: Iterable[type[Resource]], *, converted: Collection[str] = ()
) -> list[Plain]:
    """A CRD for each kind, all its versions in it, ready for YAML.

    Those of ``converted`` say nothing of their conversion.

    Errors: :class:`NoDefinition` when there is none, or versions that do not agree.
    """
    groups: dict[tuple[str, str], list[type[Resource]]] = {}
    for each in kinds:
        groups.setdefault(_kind(each), []).append(each)
    if not groups:
        raise NoDefinition(
            "There is no class to make a CRD from: write class Website(Resource, "
            "group='example.com', version='v1')."
        )
    try:
        made = [crd(*versions) for versions in groups.values()]
    except (TypeError, ValueError) as error:
        raise NoDefinition(str(error)) from error
    for definition in made:
        if definition["metadata"]["name"] in converted:
            # The operator says how, when it runs; who applies this must not undo it.
            del definition["spec"]["conversion"]
    return made


async def check(client: Client, wanted: Plain) -> Report:
    """Compare a CRD with what is deployed, and with every object that is stored."""
    # What judges objects takes longer to import than CRDs to print.
    from trimtab.authoring.stored import Survey

    name = wanted["metadata"]["name"]
    try:
        deployed = await client.get(DEFINITIONS, name)
    except NotFound:
        return Report(name=name, deployed=False, stored=0, findings=())
    differences = list(compare(deployed, wanted))
    survey = Survey(wanted, differences)
    info = _readable(deployed, storage(wanted["spec"]))
    if info is not None:
        async for obj in client.list(info):
            survey.add(obj)
    findings = sorted(survey.findings(), key=_gravity)
    return Report(
        name=name, deployed=True, stored=survey.stored, findings=tuple(findings)
    )


def _gravity(finding: Finding) -> tuple[bool, int]:
    order = ("breaks", "loses", "changes", "differs")
    return not finding.harmful, order.index(finding.difference.level)


def _readable(deployed: Plain, wanted: str) -> Info | None:
    """The deployed resource in the version that is nearest to the wanted one."""
    spec = deployed["spec"]
    versions = served(spec)
    if not versions:
        return None
    return Info(
        group=spec["group"],
        version=wanted if wanted in versions else versions[0],
        kind=spec["names"]["kind"],
        plural=spec["names"]["plural"],
        namespaced=spec["scope"] == "Namespaced",
    )


def _is_custom(each: object) -> bool:
    return (
        isinstance(each, type)
        and issubclass(each, Resource)
        # One without a version of its own is the same kind with other fields.
        and "__resource__" in vars(each)
        and each.__definition__ is not None
    )


def _kind(each: type[Resource]) -> tuple[str, str]:
    info = each.__resource__
    return info.group, info.kind
