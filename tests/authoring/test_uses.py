"""Laws of reading an operator's source: what it does is seen, or told to be unseen."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from trimtab.authoring.permissions import NotVisible, Rule, rules_of
from trimtab.cli.loading import source_of

HEAD = """
from __future__ import annotations
import trimtab
from trimtab import BlockingContext, Client, Context, Metadata, Resource, Result
from trimtab import Scope, Spec, Status
from trimtab.kinds import ConfigMap, Deployment, Pod, Secret

class LampStatus(Status):
    on: bool = False

class Lamp(Resource, group="lamps.example.com", version="v1"):
    status: LampStatus = LampStatus()

app = trimtab.Operator("lamps", leader=False)
ALL = Scope(everything=True)
"""


def rules(folder: Path, code: str, *, owns: str = "") -> dict[str, tuple[str, ...]]:
    """The verbs by resource of an operator with such a handler."""
    file = folder / "lamps.py"
    decorator = f"@app.reconciles(Lamp, scope=ALL, owns=[{owns}])\n"
    text = HEAD + decorator + textwrap.dedent(code)
    file.write_text(text)
    found: list[Rule] = rules_of(source_of(file).operator(), namespace="here")
    return {rule.resource: rule.verbs for rule in found}


def test_a_handler_that_only_looks_may_only_look(tmp_path: Path) -> None:
    code = """
    async def lamp(wish, ctx):
        ctx.log.info("seen")
    """
    assert rules(tmp_path, code) == {"lamps": ("list", "watch")}
    found = rules(tmp_path, code, owns="ConfigMap")
    assert found == {"lamps": ("list", "watch"), "configmaps": ("list", "watch")}


@pytest.mark.parametrize(
    "stated",
    [
        "return ctx.done(status=LampStatus(on=True))",
        "return Result(status=LampStatus(on=True))",
        "ctx.status(LampStatus(on=True))",
    ],
)
def test_a_status_is_seen_however_it_is_stated(tmp_path: Path, stated: str) -> None:
    code = f"""
    async def lamp(wish, ctx):
        {stated}
    """
    assert rules(tmp_path, code)["lamps/status"] == ("patch",)


@pytest.mark.parametrize(
    "deleting",
    [
        "for old in ctx.children(ConfigMap): await ctx.delete(old)",
        "old = ctx.get(ConfigMap, 'x'); await ctx.delete(old)",
        "await ctx.delete(await ctx.apply(ConfigMap()))",
        "[await ctx.delete(each) for each in ctx.children(ConfigMap)]",
        "if (old := ctx.get(ConfigMap, 'x')): await ctx.delete(old)",
    ],
)
def test_what_is_deleted_is_followed_to_where_it_came_from(
    tmp_path: Path, deleting: str
) -> None:
    code = f"""
    async def lamp(wish, ctx):
        {deleting}
    """
    found = rules(tmp_path, code, owns="ConfigMap, Secret")
    assert "delete" in found["configmaps"]
    assert "delete" not in found.get("secrets", ())


def test_functions_that_are_given_the_context_or_the_client_are_read_too(
    tmp_path: Path,
) -> None:
    code = """
    async def lamp(wish, ctx):
        await helps(ctx)
        await asks(ctx.client)
        client = ctx.client
        await client.patch(Deployment, "x", {}, subresource="scale")

    async def helps(here: Context) -> None:
        here.event("Seen", "It was seen.")
        await here.apply(made())

    def made() -> Secret:
        return Secret()

    async def asks(client: Client) -> None:
        async for pod in client.list(Pod):
            await client.evict(pod.metadata.name)
    """
    assert rules(tmp_path, code) == {
        "lamps": ("list", "watch"),
        "lamps/finalizers": ("update",),
        "secrets": ("create", "patch"),
        "events": ("create", "patch"),
        "pods": ("list",),
        "pods/eviction": ("create",),
        "deployments/scale": ("patch",),
    }


def test_modules_beside_the_operator_s_are_read_and_installed_ones_are_not(
    tmp_path: Path,
) -> None:
    (tmp_path / "beside_lamps.py").write_text(
        "from trimtab import Context\nfrom trimtab.kinds import Secret\n"
        "async def locked(ctx: Context) -> None:\n"
        "    await ctx.client.get(Secret, 'key')\n"
    )
    code = """
    async def lamp(wish, ctx):
        from beside_lamps import locked
        await locked(ctx)

    from beside_lamps import locked
    """
    assert rules(tmp_path, code)["secrets"] == ("get",)


def test_what_cannot_be_seen_is_told_and_can_be_declared(tmp_path: Path) -> None:
    code = """
    async def lamp(wish, ctx):
        for kind in (ConfigMap, Secret):
            for old in ctx.children(kind):
                await ctx.delete(old)
    """
    with pytest.raises(NotVisible, match=r"lamps.py:\d+: which kind ctx.delete"):
        rules(tmp_path, "\nasync def lamp(wish, ctx):\n    await ctx.delete(what())\n")
    declared = code + "\n    app.needs(ConfigMap, 'delete')\n    what = None\n"
    assert rules(tmp_path, declared)["configmaps"] == ("delete",)


def test_a_handler_without_a_source_must_be_declared(tmp_path: Path) -> None:
    code = """
    class Lit:
        async def __call__(self, wish, ctx): ...

    app.reconciles(Lamp, scope=ALL, owns=[ConfigMap], name="lit")(Lit())
    """
    file = tmp_path / "lamps.py"
    file.write_text(HEAD + textwrap.dedent(code))
    with pytest.raises(NotVisible, match="has no source that can be read"):
        rules_of(source_of(file).operator(), namespace="here")
    file.write_text(f"{file.read_text()}\napp.needs(ConfigMap, 'delete')\n")
    found = rules_of(source_of(file).operator(), namespace="here")
    assert {rule.resource: rule.verbs for rule in found}["configmaps"] == (
        *("list", "watch", "create", "patch", "delete"),
    )


def test_verbs_that_are_none_are_refused(tmp_path: Path) -> None:
    from trimtab import Operator
    from trimtab.kinds import Secret

    for wrong in ((), ("GET",), ("get list",)):
        with pytest.raises(ValueError, match="are not verbs"):
            Operator("lamps").needs(Secret, *wrong)
