"""Playing: every expression of the corpus put to a server, and what it makes of it.

An expression becomes a rule that never holds, whose message is the expression's value.
Those that have a value or fail when they are evaluated are all in one definition, and
one object of it tells what they come to; those that no server takes are tried in
another.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from hack.policy_corpus.playing import Player, playing, served
from hack.policy_corpus.scenarios import CRDS, Request
from trimtab.testing import Cluster

JSON = dict[str, Any]

FILE: Final = Path(__file__).with_name("expressions.txt")
GROUP: Final = "expressions.example.com"
_TOGETHER: Final = 60
_RULES: Final = "x-kubernetes-validations"


def expressions() -> list[str]:
    """The corpus, in a fixed order."""
    lines = FILE.read_text().splitlines()
    return [each for each in lines if each and not each.startswith("# ")]


def _rule(text: str) -> JSON:
    shown = f"'%s'.format([dyn({text})])"
    return {
        "rule": f"{shown} == 'never'",
        "messageExpression": shown,
        "message": "none",
    }


def definition(texts: list[str], plural: str = "things") -> JSON:
    """A kind with a rule for each expression, some on each field."""
    fields: JSON = {}
    for start in range(0, len(texts), _TOGETHER):
        rules = [_rule(each) for each in texts[start : start + _TOGETHER]]
        name = f"f{start // _TOGETHER:02d}"
        fields[name] = {"type": "boolean", _RULES: rules}
    spec = {"type": "object", "properties": fields}
    schema = {"type": "object", "properties": {"spec": spec}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Cluster",
            "names": {"plural": plural, "kind": plural.title()},
            "versions": [
                {
                    "name": "v1",
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                }
            ],
        },
    }


async def sorted_out(cluster: Cluster) -> tuple[list[str], list[str]]:
    """The expressions that a server takes, and those that it does not."""
    async with playing(cluster) as player:
        answers = [await _tried(player, [each]) for each in expressions()]
    taken = [each["code"] == 201 for each in answers]
    both = list(zip(expressions(), taken, strict=True))
    return [each for each, good in both if good], [
        each for each, good in both if not good
    ]


async def _tried(player: Player, texts: list[str]) -> JSON:
    body = definition(texts, "tried")
    dry = {"dryRun": "All"}
    return await player.ask(Request(method="POST", path=CRDS, body=body, query=dry))


async def refusals(cluster: Cluster, texts: list[str]) -> list[str]:
    """What is said of expressions that no server takes, sorted."""
    async with playing(cluster) as player:
        answer = await _tried(player, texts)
    causes = answer["body"]["details"]["causes"]
    said = sorted(f"{each['field']}: {each['message']}" for each in causes)
    # What all rules cost together is told of a few of them, and not always the same.
    return [each for each in said if "cost total" not in each]


async def verdicts(cluster: Cluster, texts: list[str]) -> list[str]:
    """What expressions come to, in their order."""
    async with playing(cluster) as player:
        body = definition(texts)
        await player.make(CRDS, body)
        where = f"/apis/{GROUP}/v1/things"
        fields = body["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
        names = fields["properties"]["spec"]["properties"]
        thing = {
            "apiVersion": f"{GROUP}/v1",
            "kind": "Things",
            "metadata": {"name": "one"},
            "spec": dict.fromkeys(names, True),
        }
        await served(player, body)
        answer = await player.ask(Request(method="POST", path=where, body=thing))
    causes = answer["body"]["details"]["causes"]
    return [each["message"] for each in sorted(causes, key=lambda each: each["field"])]


def budgets() -> list[tuple[list[str], list[str]]]:
    """Rules at the limits of what they may cost: of an object, and of a field in it.

    Making a list costs as much as it is long, and 13 more as it stands here.
    """
    most = 1_000_000 - 13
    dear, dearer = (f"lists.range({size}).size() > 0" for size in (most, most + 1))
    return [
        ([dear], ["true"]),
        ([dearer], ["true"]),
        ([dear] * 10, []),
        ([dear] * 10, ["true"]),
        ([*[dear] * 9, dearer], []),
    ]


def _limited(number: int, above: list[str], below: list[str]) -> JSON:
    made = definition([], f"budgets{number}")
    schema = made["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]
    spec[_RULES] = [{"rule": each} for each in above]
    field = {"type": "boolean", _RULES: [{"rule": each} for each in below]}
    spec["properties"] = {"on": field}
    return made


async def spent(cluster: Cluster) -> list[JSON]:
    """What is said of an object whose rules cost so much, case by case."""
    found = []
    async with playing(cluster) as player:
        for number, (above, below) in enumerate(budgets()):
            body = _limited(number, above, below)
            await player.make(CRDS, body)
            await served(player, body)
            names = body["spec"]["names"]
            thing = {
                "apiVersion": f"{GROUP}/v1",
                "kind": names["kind"],
                "metadata": {"name": "one"},
                "spec": {"on": True},
            }
            where = f"/apis/{GROUP}/v1/{names['plural']}"
            request = Request(method="POST", path=where, body=thing)
            found.append(await player.ask(request))
    return found
