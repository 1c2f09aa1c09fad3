"""Laws of conversion: there and back again, nothing is lost and changes are kept."""

from __future__ import annotations

import copy
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.runtime.webhooks.sites import GROUP, OldSite, Site, SiteSpec, down, up
from trimtab import Resource, Spec
from trimtab.runtime.webhooks.conversion import (
    KEPT,
    CannotConvert,
    Converter,
    review,
)
from trimtab.runtime.webhooks.declarations import Conversion
from trimtab.runtime.webhooks.patches import same
from trimtab.runtime.webhooks.review import NotAReview

Plain = dict[str, Any]
V1, V2, V3 = (f"{GROUP}/v{number}" for number in (1, 2, 3))


class NewestSpec(Spec):
    """Everything in one word, of which the port is a number."""

    url: str = ""
    port: int = 0


class Newest(Resource, group=GROUP, version="v3", kind="Site", storage=False):
    """A third version."""

    spec: NewestSpec = NewestSpec()


def further(site: Site) -> Newest:
    host, _, port = site.spec.address.partition(":")
    number = int(port) if port.isdecimal() else 0
    return Newest(spec=NewestSpec(url=f"https://{host}", port=number))


def nearer(site: Newest) -> Site:
    host = site.spec.url.removeprefix("https://")
    return Site(spec=SiteSpec(address=f"{host}:{site.spec.port}"))


def pair(old: Any, new: Any, forth: Any, back: Any) -> Conversion:
    made = Conversion(old, new, forth)
    made.back(back)
    return made


CONVERTER = Converter(
    [pair(OldSite, Site, up, down), pair(Site, Newest, further, nearer)]
)

words = st.text("ab:0", max_size=4)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(words, inner),
    max_leaves=4,
)
unknown = st.dictionaries(st.sampled_from(["x", "y"]), json_values)
FIELDS: dict[str, dict[str, Any]] = {
    V1: {"host": words, "port": words, "note": words},
    V2: {"address": words, "color": words},
    V3: {"url": words, "port": st.integers(0, 99)},
}


@st.composite
def objects(draw: st.DrawFn, version: str) -> Plain:
    """An object of a version as it may be stored, with fields that nobody knows."""
    spec = draw(st.fixed_dictionaries({}, optional=FIELDS[version]))
    made: Plain = {
        "apiVersion": version,
        "kind": "Site",
        "metadata": {"name": "a", "namespace": "n", "uid": "1", "managedFields": []},
        "spec": {**spec, **draw(unknown)},
    }
    if draw(st.booleans()):
        made["metadata"]["annotations"] = {"mine": "yes"}
    if version != V3 and draw(st.booleans()):
        made["status"] = {**draw(unknown), "ready": draw(st.integers(0, 3))}
    return {**made, **draw(unknown)}


versions = st.sampled_from([V1, V2, V3])


@settings(max_examples=40)
@given(data=st.data(), way=st.lists(versions, min_size=2, max_size=5))
def test_an_object_comes_back_from_any_journey_as_it_was(
    data: st.DataObject, way: list[str]
) -> None:
    obj = data.draw(objects(way[0]))
    before = copy.deepcopy(obj)
    here = obj
    for version in [*way, way[0]]:
        here = CONVERTER.convert(here, version)
        assert here["apiVersion"] == version
    assert same(_without_kept(here), before)
    assert same(obj, before)


def _without_kept(obj: Plain) -> Plain:
    """What is kept of other versions is none of this one's business."""
    made = copy.deepcopy(obj)
    annotations = made["metadata"].get("annotations", {})
    annotations.pop(KEPT, None)
    if not annotations:
        made["metadata"].pop("annotations", None)
    return made


@settings(max_examples=25)
@given(data=st.data())
def test_a_change_on_the_way_is_kept_and_so_is_all_else(data: st.DataObject) -> None:
    obj = data.draw(objects(V1))
    there = CONVERTER.convert(obj, V2)
    there.setdefault("spec", {})["address"] = "elsewhere:7"
    back = CONVERTER.convert(there, V1)
    assert (back["spec"]["host"], back["spec"]["port"]) == ("elsewhere", "7")
    for key in [*obj["spec"], *back["spec"]]:
        if key not in ("host", "port"):
            assert same(obj["spec"].get(key), back["spec"].get(key)), key
    assert same(obj.get("status"), back.get("status"))
    again = CONVERTER.convert(back, V2)
    assert again["spec"]["address"] == "elsewhere:7"


def test_what_needs_no_keeping_leaves_no_trace() -> None:
    obj = {
        "apiVersion": V1,
        "kind": "Site",
        "metadata": {"name": "a"},
        "spec": {"host": "h", "port": "1"},
        "status": {"ready": 1},
    }
    made = CONVERTER.convert(obj, V2)
    assert made["metadata"] == {"name": "a"}
    assert made["spec"] == {"address": "h:1"}
    noted = {**obj, "spec": {"host": "h", "port": "1", "note": "n"}}
    kept = CONVERTER.convert(noted, V2)["metadata"]["annotations"][KEPT]
    assert msgspec.json.decode(kept) == {
        "v1": {"is": {"spec": {"note": "n"}}, "was": {}}
    }


def test_what_somebody_wrote_into_the_annotation_harms_nobody() -> None:
    for text in ("", "{", "[]", '{"v1": 3}', '{"v1": {"is": 3}}'):
        metadata = {"name": "a", "annotations": {KEPT: text}}
        obj = {"apiVersion": V2, "kind": "Site", "metadata": metadata}
        made = CONVERTER.convert({**obj, "spec": {"address": "h:1"}}, V1)
        assert made["spec"] == {"host": "h", "port": "1"}


@pytest.mark.parametrize(
    ("spec", "to", "said"),
    [
        ({"host": 3}, V2, "Site n/a cannot be converted to .*/v2: Expected `str`"),
        ({}, f"{GROUP}/v9", "Site n/a is .*/v1, and no declared conversion leads to"),
    ],
)
def test_an_object_that_cannot_be_converted_is_named(
    spec: Plain, to: str, said: str
) -> None:
    metadata = {"name": "a", "namespace": "n"}
    obj = {"apiVersion": V1, "kind": "Site", "metadata": metadata, "spec": spec}
    with pytest.raises(CannotConvert, match=said):
        CONVERTER.convert(obj, to)


def test_a_review_is_answered_as_a_whole_or_not_at_all() -> None:
    def asked(*specs: Plain) -> bytes:
        meta = {"name": "a"}
        head = {"apiVersion": V1, "kind": "Site", "metadata": meta}
        request = {
            "uid": "u",
            "desiredAPIVersion": V2,
            "objects": [{**head, "spec": spec} for spec in specs],
        }
        body = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
        return msgspec.json.encode({**body, "request": request})

    good = msgspec.json.decode(review(asked({"host": "h"}, {}), CONVERTER.convert))
    assert good["response"]["uid"] == "u"
    assert good["response"]["result"] == {"status": "Success"}
    assert len(good["response"]["convertedObjects"]) == 2
    bad = msgspec.json.decode(review(asked({}, {"host": 1}), CONVERTER.convert))
    assert bad["response"]["result"]["status"] == "Failure"
    assert "convertedObjects" not in bad["response"]
    for body in (b"", b"{}", b'{"apiVersion":"v1","kind":"X","request":{}}'):
        with pytest.raises(NotAReview):
            review(body, CONVERTER.convert)
