"""Laws of patches: what was changed is changed, and what is unknown stays."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from trimtab import Resource, Spec
from trimtab.api.codec import convert
from trimtab.api.objects import wire
from trimtab.embedded import patches as server
from trimtab.runtime.webhooks.patches import difference, merged, same

Plain = dict[str, Any]


class Part(Spec):
    """An item of a list, which has more fields than these."""

    name: str
    image: str = ""


class Inner(Spec):
    """A map within, which has more fields than these."""

    size: int = 3
    text: str = ""


class Note(Spec):
    """A map within, of which nothing may be left that is known."""

    text: str = ""


class ThingSpec(Spec):
    """Some fields of many."""

    note: Note = Note()
    replicas: int = 1
    inner: Inner = Inner()
    labels: dict[str, str] = {}
    parts: list[Part] = []
    words: list[str] = []


class Thing(Resource, group="patches.example.com", version="v1"):
    """A kind of which an operator knows a part."""

    spec: ThingSpec = ThingSpec()


names = st.sampled_from("abcde")
texts = st.text("xyz/~", max_size=3)
unknown = st.dictionaries(st.sampled_from(["u1", "u2"]), st.integers() | texts)
parts = st.lists(names, unique=True, max_size=4).flatmap(
    lambda chosen: st.tuples(
        *(
            st.builds(
                lambda more, image, name=name: {"name": name, "image": image, **more},
                unknown,
                texts,
            )
            for name in chosen
        )
    ).map(list)
)


@st.composite
def wholes(draw: st.DrawFn) -> Plain:
    """An object as a server sends it, with fields here and there that are unknown."""
    optional: Plain = {
        "replicas": st.integers(0, 5),
        "inner": st.builds(
            lambda known, more: {**known, **more},
            st.fixed_dictionaries({}, optional={"size": st.integers(), "text": texts}),
            unknown,
        ),
        "labels": st.dictionaries(texts, texts, max_size=3),
        "note": st.builds(
            lambda text, more: {"text": text, **more}, st.just("t"), unknown
        ),
        "parts": parts,
        "words": st.lists(texts, max_size=3),
    }
    spec = draw(st.fixed_dictionaries({}, optional=optional))
    head = {"apiVersion": Thing.apiVersion, "kind": "Thing"}
    return {**head, "metadata": {"name": "a"}, "spec": {**spec, **draw(unknown)}}


@st.composite
def changes(draw: st.DrawFn, thing: Thing) -> Thing:
    """An object as a handler may return it: some fields changed, items moved."""
    spec = thing.spec
    known = draw(st.permutations(spec.parts))
    kept = [
        replace(each, image=draw(texts)) if draw(st.booleans()) else each
        for each in known[: draw(st.integers(0, len(known)))]
    ]
    fresh = [Part(name="new", image=draw(texts))] if draw(st.booleans()) else []
    fields: Plain = {
        "replicas": draw(st.integers(0, 5)),
        "inner": Inner(size=draw(st.integers(0, 3)), text=draw(texts)),
        "labels": draw(st.dictionaries(texts, texts, max_size=3)),
        "note": Note(text=draw(st.sampled_from(["", "t", "u"]))),
        "parts": [*fresh, *kept],
        "words": draw(st.lists(texts, max_size=3)),
    }
    chosen = draw(st.sets(st.sampled_from(sorted(fields))))
    return replace(thing, spec=replace(spec, **{key: fields[key] for key in chosen}))


def strangers(value: Any, path: tuple[Any, ...] = ()) -> set[tuple[Any, ...]]:
    """The unknown fields of an object, each with its place, items by their names."""
    found: set[tuple[Any, ...]] = set()
    if isinstance(value, dict):
        for key, inner in value.items():
            if key in ("u1", "u2"):
                found.add((*path, key, inner))
            found |= strangers(inner, (*path, key))
    elif isinstance(value, list):
        for item in value:
            name = item["name"] if isinstance(item, dict) else item
            found |= strangers(item, (*path, name))
    return found


@settings(max_examples=35)
@given(data=st.data(), whole=wholes())
def test_a_change_is_made_and_nothing_unknown_is_lost(
    data: st.DataObject, whole: Plain
) -> None:
    before = convert(Thing, whole)
    after = data.draw(changes(before))
    made = merged(whole, wire(before), wire(after))
    assert wire(convert(Thing, made)) == wire(after)
    left = {each.name for each in after.spec.parts}
    kept = {
        place
        for place in strangers(whole)
        if place[:2] != ("spec", "parts") or place[2] in left
    }
    assert strangers(made) == kept


@settings(max_examples=35)
@given(data=st.data(), whole=wholes())
def test_a_patch_makes_of_an_object_what_it_was_made_for(
    data: st.DataObject, whole: Plain
) -> None:
    before = convert(Thing, whole)
    made = merged(whole, wire(before), wire(data.draw(changes(before))))
    patch = list(difference(whole, made))
    assert bool(patch) != same(whole, made)
    assert same(applied(whole, patch), made)


def applied(whole: Plain, patch: list[Plain]) -> Any:
    """What a server makes of it."""
    return server.json_patch(whole, patch)


@settings(max_examples=15)
@given(whole=wholes())
def test_who_changes_nothing_sends_nothing(whole: Plain) -> None:
    view = wire(convert(Thing, whole))
    assert merged(whole, view, view) is whole
    assert list(difference(whole, whole)) == []


def test_a_patch_names_only_what_changed() -> None:
    head = {"apiVersion": Thing.apiVersion, "kind": "Thing", "metadata": {"name": "a"}}
    spec = {"replicas": 1, "u": 1, "parts": [{"name": "a", "u": 2}, {"name": "b"}]}
    whole: Plain = {**head, "spec": spec}
    before = convert(Thing, whole)
    items = [replace(before.spec.parts[0], image="x"), before.spec.parts[1]]
    after = replace(before, spec=replace(before.spec, parts=items, replicas=2))
    made = merged(whole, wire(before), wire(after))
    assert list(difference(whole, made)) == [
        {"op": "replace", "path": "/spec/replicas", "value": 2},
        {"op": "add", "path": "/spec/parts/0/image", "value": "x"},
    ]


def test_a_path_is_read_as_it_was_meant() -> None:
    one, two = {"a/b~c": 1, "~1": [0]}, {"a/b~c": 2, "/": 3}
    assert applied(one, list(difference(one, two))) == two


def test_true_is_not_one() -> None:
    assert not same({"a": [1]}, {"a": [True]})
    assert same({"a": [1]}, {"a": [1.0]})
