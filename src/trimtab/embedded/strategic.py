"""Strategic merge patch: a merge patch that knows how each list of a kind merges.

Lists with a merge key are merged item by item, lists of scalars with the strategy
``merge`` are joined, others are replaced. A patch may carry directives: ``$patch``
(replace, delete), ``$retainKeys``, ``$deleteFromPrimitiveList/…`` and
``$setElementOrder/…``. Only built-in kinds take such patches.

The merge works in place, as the real server's does, which shows in its messages: they
print the patch as it is left by then.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from types import NoneType
from typing import Any

from trimtab.embedded.gotext import plain, quoted
from trimtab.embedded.patches import PatchError, json_kind
from trimtab.embedded.types import Type

JSON = dict[str, Any]

_PATCH = "$patch"
_RETAIN = "$retainKeys"
_DELETE = "$deleteFromPrimitiveList"
_ORDER = "$setElementOrder"
_GO_TYPES = {
    bool: "bool",
    int: "int64",
    float: "float64",
    str: "string",
    dict: "map[string]interface {}",
    list: "[]interface {}",
    type(None): "%!s(<nil>)",
}
_DROPPED = object()
_BAD_RETAIN = "invalid patch format of retainKeys"
_BAD_DELETE = "invalid patch format of primitive list"
_BAD_ORDER = "invalid patch format of setElementOrder list"


def _bad(message: str) -> PatchError:
    return PatchError(message, code=400)


def _unexpected(message: str) -> PatchError:
    """What the real server answers with 500: it does not expect it."""
    return PatchError(message, code=500)


def strategic_merge(document: JSON, patch: Any, type: Type) -> JSON:
    """The document with the patch merged into it; neither of them is changed.

    Errors: `PatchError`.
    """
    return merge_in_place(deepcopy(document), deepcopy(patch), type)


def merge_in_place(document: JSON, patch: Any, type: Type) -> JSON:
    """`strategic_merge` that changes the document, and uses up the patch.

    Errors: `PatchError`.
    """
    if patch is None:
        patch = {}
    if not isinstance(patch, dict):
        into = "Go value of type map[string]interface {}"
        raise _bad(f"json: cannot unmarshal {json_kind(patch)} into {into}")
    return _merge_maps(document, patch, type)


def _merge_maps(original: JSON, patch: JSON, type: Type) -> JSON:
    if _PATCH in patch:
        return _directed(patch)
    _retain(original, patch)
    for name in [each for each in patch if each.startswith(_ORDER)]:
        _merge_ordered(original, patch, name, type)
    for name, value in patch.items():
        if name.startswith(_DELETE):
            _merge_deletions(original, _bare(name, _DELETE, _BAD_DELETE), value, type)
        elif value is None:
            original.pop(name, None)
        else:
            _merge_field(original, name, value, type)
    return original


def _directed(patch: JSON) -> JSON:
    directive = patch[_PATCH]
    if directive == "replace":
        del patch[_PATCH]
        return patch
    if directive == "delete":
        return {}
    raise _unknown_directive(directive, patch)


def _unknown_directive(directive: Any, item: JSON) -> PatchError:
    named = directive
    if not isinstance(directive, str):
        named = f"%!s({_GO_TYPES[type(directive)]}={plain(directive)})"
    return _unexpected(f"unknown patch type: {named} in map: {plain(item)}")


def _retain(original: JSON, patch: JSON) -> None:
    """Of the original, all stays, or only the keys that the patch names."""
    if _RETAIN not in patch:
        return
    keys = patch.pop(_RETAIN)
    if not isinstance(keys, list):
        raise _bad(_BAD_RETAIN)
    for name, value in patch.items():
        is_directive = name.startswith((_DELETE, _ORDER))
        if value is not None and not is_directive and name not in keys:
            raise _bad(_BAD_RETAIN)
    for name in [each for each in original if each not in keys]:
        del original[name]


def _merge_field(merged: JSON, name: str, value: Any, of: Type) -> None:
    present = merged.get(name, _DROPPED)
    if type(present) is not type(value) or not isinstance(value, (dict, list)):
        _drop_nulls(value)
        kept = _without_directives(value)
        if kept is _DROPPED:
            merged.pop(name, None)
        else:
            merged[name] = kept
        return
    inner = _field(of, name)
    if isinstance(value, dict):
        is_replaced = "replace" in inner.patch_strategy
        merged[name] = value if is_replaced else _merge_maps(present, value, inner)
    elif "merge" in _list(inner).patch_strategy:
        merged[name] = _merge_lists(present, value, inner)
    else:
        merged[name] = value


def _drop_nulls(value: Any) -> None:
    if isinstance(value, dict):
        for name in [each for each, inner in value.items() if inner is None]:
            del value[name]
        value = list(value.values())
    if isinstance(value, list):
        for inner in value:
            _drop_nulls(inner)


def _without_directives(value: Any) -> Any:
    """A value that has nothing to merge with: without what is directed in it."""
    if isinstance(value, dict):
        if _PATCH in value:
            return _DROPPED
        for name, inner in list(value.items()):
            kept = _without_directives(inner)
            if kept is _DROPPED:
                del value[name]
            else:
                value[name] = kept
        return value
    if isinstance(value, list):
        items = map(_without_directives, value)
        return [item for item in items if item is not _DROPPED]
    return value


def _field(of: Type, name: str) -> Type:
    if of.shape != "object":
        kind = "map" if of.shape in ("map", "any") else of.shape
        raise _unexpected(
            f"merging an object in json but data type is not struct, instead is: {kind}"
        )
    found = of.fields.get(name)
    if found is None:
        struct = of.name.rpartition(".")[2]
        raise _unexpected(
            f"unable to find api field in struct {struct} for the json field "
            f"{quoted(name)}"
        )
    return found


def _list(of: Type) -> Type:
    if of.shape != "list":
        raise _unexpected("expected slice or array type, but got: struct")
    return of


def _bare(name: str, prefix: str, problem: str) -> str:
    """The name of the field that a directive is about."""
    directive, _, bare = name.partition("/")
    if directive != prefix or "/" not in name:
        raise _bad(problem)
    return bare


def _merge_deletions(merged: JSON, name: str, value: Any, of: Type) -> None:
    present = merged.get(name)
    if value is None:
        merged.pop(name, None)
    elif isinstance(present, list) and isinstance(value, list):
        inner = _list(_field(of, name))
        merged[name] = _merge_lists(present, value, inner, deleting=True)


def _merge_lists(
    original: list[Any], patch: list[Any], of: Type, *, deleting: bool = False
) -> list[Any]:
    if not original and not patch:
        return original
    if not _are_maps(original, patch):
        if deleting:
            return [item for item in original if not _among(item, patch)]
        merged, order = _distinct([*original, *patch]), patch
        return _in_order(merged, order, original, "")
    key = of.patch_key
    if not key:
        raise _unexpected("cannot merge lists without merge key for struct")
    original, order = _undirected(original, patch, key)
    merged = list(original)
    element = of.element or of
    for item in order:
        place = _place(merged, key, _key_of(item, key))
        if place is None:
            merged.append(item)
        else:
            merged[place] = _merge_maps(merged[place], item, element)
    return _in_order(merged, order, original, key)


def _are_maps(*lists: list[Any]) -> bool:
    """Whether items are maps; they must all be of one type, and not lists."""
    items = [item for each in lists for item in each]
    first = type(items[0])
    if first is NoneType:  # at which the real server panics
        raise _unexpected("a list that is put in order may not begin with a null")
    if first is list:
        raise PatchError("lists of lists are not supported", code=422)
    if any(type(item) is not first for item in items):
        shown = " ".join(map(plain, lists))
        raise _unexpected(f"list element types are not identical: [{shown}]")
    return first is dict


def _among(item: Any, items: Iterable[Any]) -> bool:
    return any(type(item) is type(each) and item == each for each in items)


def _distinct(items: list[Any]) -> list[Any]:
    """Each once. The last item takes the place of a repeated one."""
    first = 0
    while first < len(items):
        second = first + 1
        while second < len(items):
            if items[first] == items[second]:
                last = items.pop()
                if second < len(items):
                    items[second] = last
            else:
                second += 1
        first += 1
    return items


def _key_of(item: JSON, key: str) -> Any:
    if key not in item:
        raise _unexpected(
            f"map: {plain(item)} does not contain declared merge key: {key}"
        )
    return item[key]


def _place(items: list[Any], key: str, value: Any) -> int | None:
    for place, item in enumerate(items):
        if not isinstance(item, dict):
            raise _unexpected(f"value for key {place} is not a map")
        found = item.get(key, _DROPPED)
        if type(found) is type(value) and found == value:
            return place
    return None


def _undirected(
    original: list[Any], patch: list[Any], key: str
) -> tuple[list[Any], list[Any]]:
    """The list after the deletions that the patch has among its items, and the rest."""
    rest: list[Any] = []
    replaced = False
    for item in patch:
        directive = item.get(_PATCH, _DROPPED)
        if directive is _DROPPED:
            rest.append(item)
        elif directive == "delete":
            gone = _key_of(item, key)
            original = [each for each in original if _place([each], key, gone) is None]
        elif directive == "replace":
            replaced = True
        elif directive == "merge":
            raise _unexpected("merging lists cannot yet be specified in the patch")
        else:
            raise _unknown_directive(directive, item)
    return (rest, []) if replaced else (original, rest)


def _in_order(
    merged: list[Any], order: list[Any], live: list[Any], key: str
) -> list[Any]:
    """Items of the patch in its order, the server's own among them as they were."""
    places = [_rank(each, key) for each in order]
    wanted = [item for item in merged if _index(places, item, key) >= 0]
    others = [item for item in merged if _index(places, item, key) < 0]
    wanted.sort(key=lambda item: _index(places, item, key))
    were = [_rank(each, key) for each in live]
    others.sort(key=lambda item: _index(were, item, key))
    return _interleaved(others, wanted, were, key)


def _rank(item: Any, key: str) -> Any:
    return _key_of(_map(item), key) if key else item


def _map(item: Any) -> JSON:
    if not isinstance(item, dict):
        received = _GO_TYPES[type(item)]
        raise _unexpected(
            f"expected a map[string]interface {{}}, but received a {received}"
        )
    return item


def _index(ranks: list[Any], item: Any, key: str) -> int:
    rank = _rank(item, key)
    for place, each in enumerate(ranks):
        if type(each) is type(rank) and each == rank:
            return place
    return -1


def _interleaved(
    others: list[Any], wanted: list[Any], were: list[Any], key: str
) -> list[Any]:
    """Both lists in one: another item goes before a wanted one that it was before."""
    result: list[Any] = []
    left, right = 0, 0
    while left < len(others) and right < len(wanted):
        mine = _index(were, others[left], key)
        if 0 <= mine < _index(were, wanted[right], key):
            result.append(others[left])
            left += 1
        else:
            result.append(wanted[right])
            right += 1
    return [*result, *others[left:], *wanted[right:]]


def _merge_ordered(merged: JSON, patch: JSON, name: str, of: Type) -> None:
    """Merge the list that an order is given for, and put it in that order."""
    order = patch.pop(name)
    if not isinstance(order, list):
        raise _wrong_list(order)
    bare = _bare(name, _ORDER, _BAD_ORDER)
    present, given = merged.get(bare, _DROPPED), patch.get(bare, _DROPPED)
    for each in (present, given):
        if each is not _DROPPED and not isinstance(each, list):
            raise _wrong_list(each)
    inner = _list(_field(of, bare))
    key = inner.patch_key
    if given is not _DROPPED:
        _check_order(given, order, key)
    if present is _DROPPED and given is _DROPPED:
        return
    live = [] if present is _DROPPED else present
    if given is _DROPPED:
        both = live
    elif present is _DROPPED:
        both = _without_directives(given)
    elif "merge" in inner.patch_strategy:
        both = _merge_lists(live, given, inner)
        live = _written_over(live, given, key) if key else live
    else:
        both = given
    if key:
        for item in both:
            _place(order, key, _key_of(item, key))
    if not live and (given is _DROPPED or not given):
        raise _unexpected("no elements in any of the given slices")
    _are_maps(live, [] if given is _DROPPED else given)
    merged[bare] = _in_order(both, order, live, key)
    patch.pop(bare, None)


def _written_over(live: list[Any], given: list[Any], key: str) -> list[Any]:
    """The live list as the real server looks back at it for the order.

    It deletes and appends in the same memory that it then takes for the old list, so
    new items stand where deleted ones freed a place, and the last one may be twice.
    """
    cells, size = list(live), len(live)
    if any(item.get(_PATCH) == "replace" for item in given):
        return cells
    for item in given:
        while _PATCH in item:
            place = _place(cells[:size], key, item[key])
            if place is None:
                break
            cells[place : size - 1] = cells[place + 1 : size]
            size -= 1
    for item in given:
        is_new = _PATCH not in item and _place(cells[:size], key, item[key]) is None
        if is_new and size < len(cells):
            cells[size] = item
            size += 1
    return cells


def _wrong_list(value: Any) -> PatchError:
    received = _GO_TYPES[type(value)]
    return _unexpected(f"expected a []interface {{}}, but received a {received}")


def _check_order(given: list[Any], order: list[Any], key: str) -> None:
    """All that the patch adds or changes must be in the order, and in that order."""
    if not order or not given:
        return
    if key:
        for item in given:
            _map(item)
    items = [item for item in given if not (isinstance(item, dict) and _PATCH in item)]
    place = 0
    for each in order:
        if place == len(items):
            return
        if key:
            _map(each)
        one, other = _rank(items[place], key), _rank(each, key)
        place += type(one) is type(other) and one == other
    if place < len(items):
        raise _unexpected(
            f"The order in patch list:\n{plain(given)}\n doesn't match {_ORDER} list:\n"
            f"{plain(order)}\n"
        )
