"""Laws of definitions: a mistake is one sentence at import, before anything runs."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from tests.runtime.operating import Shop, here
from trimtab import Context, Operator, Owned, Resource, Scope, Watched
from trimtab.kinds import ConfigMap, Namespace, Secret
from trimtab.runtime.definitions import is_asynchronous

EVERYWHERE = Scope(everything=True)


async def handler(site: Shop, ctx: Context) -> None:
    """Does nothing."""


def declare(**others: Any) -> Operator:
    app = Operator("shops")
    app.reconciles(Shop, **{"scope": EVERYWHERE, **others})(handler)
    return app


def is_one_sentence(text: str) -> bool:
    return text.endswith(".") and "\n" not in text


def test_a_watch_without_a_scope_is_an_error() -> None:
    app: Any = Operator("shops")
    with pytest.raises(TypeError, match="scope"):
        app.reconciles(Shop)
    watched: Any = Watched
    with pytest.raises(TypeError, match="scope"):
        watched(kind=Secret, to=lambda secret: [])
    with pytest.raises(ValueError, match="everything=True"):
        Scope()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"on_change": ("spec.colour",)}, "spec.colour"),
        ({"on_change": ("spec.goods", "data")}, "data"),
        ({"owns": [ConfigMap, ConfigMap]}, "ConfigMap is named twice"),
        ({"owns": [Shop]}, "Shop is named twice"),
        (
            {
                "owns": [Secret],
                "watches": [Watched(kind=Secret, scope=EVERYWHERE, to=lambda _: [])],
            },
            "Secret is named twice",
        ),
        ({"concurrency": 0}, "concurrency is at least 1"),
        ({"budget": 0}, "more than 0 seconds"),
        ({"resync": -1.0}, "more than 0 seconds, or None"),
        ({"name": "n" * 200}, "shorter name="),
    ],
)
def test_what_cannot_run_is_refused_when_it_is_declared(
    wrong: dict[str, Any], said: str
) -> None:
    with pytest.raises(ValueError, match=said) as caught:
        declare(**wrong)
    assert is_one_sentence(str(caught.value))


@pytest.mark.parametrize("wrong", ["ConfigMap", Scope, ConfigMap()])
def test_what_is_no_kind_is_refused_by_its_name(wrong: Any) -> None:
    for others in ({"owns": [wrong]}, {"owns": [Owned(kind=wrong)]}):
        with pytest.raises(TypeError, match="is no kind") as caught:
            declare(**others)
        assert is_one_sentence(str(caught.value))
    with pytest.raises(TypeError, match="is no kind"):
        Operator("shops").reconciles(wrong, scope=EVERYWHERE)


def test_namespaces_of_a_kind_that_has_none_are_refused() -> None:
    app = Operator("shops")
    with pytest.raises(ValueError, match="Namespace"):
        app.reconciles(Namespace, scope=here("shop"))


def test_a_path_that_a_child_does_not_have_is_refused() -> None:
    with pytest.raises(ValueError, match="spec"):
        declare(owns=[Owned(kind=ConfigMap, on_change=("spec.size",))])


def one(site: Shop) -> None: ...


def three(site: Shop, ctx: Context, more: int) -> None: ...


def named(*, site: Shop, ctx: Context) -> None: ...


@pytest.mark.parametrize("wrong", [one, three, named])
@pytest.mark.parametrize("decorator", ["reconciles", "finalizes"])
def test_a_handler_takes_the_object_and_the_context(wrong: Any, decorator: str) -> None:
    app = Operator("shops")
    declares = {
        "reconciles": app.reconciles(Shop, scope=EVERYWHERE),
        "finalizes": app.finalizes(Shop, "example.com/shop"),
    }
    with pytest.raises(TypeError, match=f"@{decorator} {wrong.__name__} must take two"):
        declares[decorator](wrong)


def test_a_handler_can_be_called() -> None:
    text: Any = "shop"
    with pytest.raises(TypeError, match="decorates a function, not 'shop'"):
        Operator("shops").reconciles(Shop, scope=EVERYWHERE)(text)


def test_two_controllers_have_two_names() -> None:
    app = declare()
    again = app.reconciles(Shop, scope=EVERYWHERE)
    with pytest.raises(ValueError, match="'handler' already; give one of them another"):
        again(handler)
    app.reconciles(Shop, scope=EVERYWHERE, name="other")(handler)
    assert [each.manager for each in app.controllers()] == [
        "shops.handler",
        "shops.other",
    ]


@pytest.mark.parametrize("name", ["", "My_Shop", "a/b", "x" * 64, "shop."])
def test_an_operator_has_a_name_that_a_lease_can_have(name: str) -> None:
    with pytest.raises(ValueError, match="name") as caught:
        Operator(name)
    assert is_one_sentence(str(caught.value))


@pytest.mark.parametrize("finalizer", ["shop", "a b/c", ""])
def test_a_finalizer_has_a_domain(finalizer: str) -> None:
    with pytest.raises(ValueError, match="cannot be a finalizer; give it a domain"):
        Operator("shops").finalizes(Shop, finalizer)


def test_a_kind_has_one_finalizer_and_somebody_who_puts_it_on() -> None:
    app = Operator("shops")
    app.finalizes(Shop, "example.com/shop")(handler)
    with pytest.raises(ValueError, match="Shop has a finalizer already"):
        app.finalizes(Shop, "example.com/other")(handler)
    with pytest.raises(ValueError, match="reconciles nothing"):
        app.controllers()
    app.reconciles(ConfigMap, scope=EVERYWHERE)(handler)
    with pytest.raises(ValueError, match="Shop is finalized and not reconciled"):
        app.controllers()


def test_of_two_controllers_of_a_kind_one_cleans_up() -> None:
    app = declare()
    app.reconciles(Shop, scope=EVERYWHERE, name="other")(handler)
    app.finalizes(Shop, "example.com/shop")(handler)
    assert [each.finalizer for each in app.controllers()] == ["example.com/shop", ""]


def test_children_are_watched_where_the_objects_are_by_the_operators_label() -> None:
    app = declare(scope=here("shop"), owns=[ConfigMap, Namespace])
    (definition,) = app.controllers()
    within, without = (each.scope for each in definition.owns)
    assert within.namespaces == ("shop",)
    assert without.namespaces == ()
    assert within.labels == without.labels == "trimtab.dev/operator=shops"


def test_the_kinds_of_an_operator_are_those_that_it_reconciles() -> None:
    app = declare(owns=[ConfigMap])
    app.reconciles(Shop, scope=EVERYWHERE, name="other")(handler)
    kinds: tuple[type[Resource], ...] = app.kinds()
    assert kinds == (Shop,)


def test_a_budget_of_a_cache_is_a_quantity() -> None:
    assert Operator("shops", cache_budget="1MiB").cache_budget == 1 << 20
    assert Operator("shops", cache_budget=5).cache_budget == 5
    with pytest.raises(ValueError, match="much"):
        Operator("shops", cache_budget="much")


class Called:
    """A handler that is an object."""

    async def __call__(self, site: Shop, ctx: Context) -> None: ...


def test_what_is_awaited_is_told_from_what_runs_in_a_thread() -> None:
    assert is_asynchronous(handler)
    assert is_asynchronous(functools.partial(handler))
    assert is_asynchronous(Called())
    assert not is_asynchronous(one)
