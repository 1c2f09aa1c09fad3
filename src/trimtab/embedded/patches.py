"""Patches: JSON patch (RFC 6902) and JSON merge patch (RFC 7386), as Kubernetes does.

Both differ from their standards where the real server does: replacing what is not there
adds it, indexes may count from the end, a merge drops nulls even inside lists.
Documents and patches are not changed; a result shares with them what it can.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from trimtab.embedded.gotext import quoted

MAXIMUM_OPERATIONS = 10_000
REFUSED = "the server rejected our request due to an error in our request"
"""All that the real server says about an operation that does not apply."""

_INDEX = re.compile("[+-]?[0-9]+", re.ASCII)
_LARGEST = 2**63 - 1
_MISSING = object()


class PatchError(Exception):
    """A patch that cannot be read (400) or does not apply (422, or 500 where the real
    server did not expect it); ``detail`` says more than the real server does."""

    def __init__(self, message: str, *, code: int, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.detail = detail or message


class _Refused(Exception):
    """Why an operation does not apply."""


def _missing(what: str) -> _Refused:
    return _Refused(f"{what}: missing value")


def json_patch(document: Any, operations: Any) -> Any:
    """The document after these operations; all of them apply, or none.

    Errors: `PatchError`.
    """
    _check_operations(operations)
    target = _Target(document)
    for operation in operations or ():
        kind = (operation or {}).get("op") or "unknown"
        try:
            perform = _OPERATIONS.get(kind)
            if perform is None:
                raise _Refused(f"Unexpected kind: {kind}")
            perform(target, operation)
        except _Refused as why:
            raise PatchError(REFUSED, code=422, detail=str(why)) from None
    return target.done()


def _check_operations(operations: Any) -> None:
    if operations is None:  # says nothing, and so does nothing
        return
    if not isinstance(operations, list):
        _not_decoded(operations, "Go value of type []handlers.jsonPatchOp")
    for operation in operations:
        if operation is None:
            continue
        if not isinstance(operation, dict):
            _not_decoded(operation, "Go value of type handlers.jsonPatchOp")
        for name in ("op", "path", "from"):
            if not isinstance(operation.get(name), str | None):
                field = f"Go struct field jsonPatchOp.{name} of type string"
                _not_decoded(operation[name], field)
    if len(operations) > MAXIMUM_OPERATIONS:
        raise PatchError(
            "Request entity too large: The allowed maximum operations in a JSON patch "
            f"is {MAXIMUM_OPERATIONS}, got {len(operations)}",
            code=413,
        )


def _not_decoded(value: Any, into: str) -> NoReturn:
    message = (
        f"error decoding patch: json: cannot unmarshal {json_kind(value)} into {into}"
    )
    raise PatchError(message, code=400)


def json_kind(value: Any) -> str:
    """What Go's JSON decoder calls a value."""
    if isinstance(value, bool):
        return "bool"
    kinds = {str: "string", dict: "object", list: "array", type(None): "null"}
    return kinds.get(type(value), "number")


class _Target:
    """The document that is being changed: whatever is changed is copied first, once.

    The real server reads only the objects on the way to what it changes, and writes
    those with their fields sorted; all others stay as they were written.
    """

    def __init__(self, root: Any) -> None:
        self.root = root
        self._own: dict[int, Any] = {}

    def find(self, path: str) -> tuple[Any, str] | None:
        """The container that a path ends in, ready to be changed, and the key there."""
        parts = path.split("/")
        if len(parts) < 2:
            return None
        container = self.root = self._owned(self.root)
        for part in parts[1:-1]:
            key = _decoded(part)
            inner = _peek(container, key)
            if not isinstance(inner, (dict, list)):
                return None
            inner = self._owned(inner)
            container[
                key if isinstance(container, dict) else _place(container, key)
            ] = inner
            container = inner
        return container, _decoded(parts[-1])

    def done(self) -> Any:
        """The document in the end."""
        self.root = self._owned(self.root)
        for each in self._own.values():
            if isinstance(each, dict):
                _sort(each)
        return self.root

    def copied(self, value: Any) -> Any:
        """Apart from the original, both of which later operations may change."""
        if isinstance(value, dict):
            items = value.items()
            if id(value) in self._own:
                items = dict(sorted(items)).items()
            return {key: self.copied(each) for key, each in items}
        if isinstance(value, list):
            return [self.copied(each) for each in value]
        return value

    def _owned(self, container: Any) -> Any:
        if id(container) in self._own:
            return container
        copied = container.copy()
        self._own[id(copied)] = copied  # held, so that no other gets its identity
        return copied


def _sort(value: dict[str, Any]) -> None:
    items = sorted(value.items())
    value.clear()
    value.update(items)


def _sorted(value: Any) -> Any:
    """A value that was looked at to its last object."""
    if isinstance(value, dict):
        return {key: _sorted(value[key]) for key in sorted(value)}
    return [_sorted(each) for each in value] if isinstance(value, list) else value


def _decoded(part: str) -> str:
    return part.replace("~1", "/").replace("~0", "~") if "~" in part else part


def _peek(container: Any, key: str) -> Any:
    """The value there; missing if there is none."""
    try:
        return _get(container, key)
    except _Refused:
        return _MISSING


def _get(container: Any, key: str) -> Any:
    if isinstance(container, dict):
        return container.get(key, _MISSING)
    return container[_place(container, key)]


def _place(items: list[Any], key: str) -> int:
    index = _index(key)
    return _bounded(index, len(items))


def _bounded(index: int, size: int) -> int:
    if not -size <= index < size:
        raise _Refused(
            f"Unable to access invalid index: {index}: invalid index referenced"
        )
    return index + size if index < 0 else index


def _index(key: str) -> int:
    if not _INDEX.fullmatch(key):
        raise _Refused(f"strconv.Atoi: parsing {quoted(key)}: invalid syntax")
    index = int(key)
    if not -_LARGEST - 1 <= index <= _LARGEST:
        raise _Refused(f"strconv.Atoi: parsing {quoted(key)}: value out of range")
    return index


def _insert(container: Any, key: str, value: Any) -> None:
    if isinstance(container, dict):
        container[key] = value
    elif key == "-":
        container.append(value)
    else:
        try:
            index = _index(key)
        except _Refused as why:
            raise _Refused(
                f"value was not a proper array index: '{key}': {why}"
            ) from None
        container.insert(_bounded(index, len(container) + 1), value)


def _delete(container: Any, key: str) -> None:
    if isinstance(container, list):
        del container[_place(container, key)]
    elif key in container:
        del container[key]
    else:
        raise _missing(f"Unable to remove nonexistent key: {key}")


def _path(operation: dict[str, Any], name: str = "path") -> str:
    path = operation.get(name)
    if path is None:
        raise _missing(f"{operation['op']} operation failed to decode {name}")
    return str(path)


def _value(operation: dict[str, Any]) -> Any:
    return operation.get("value")


def _found(target: _Target, path: str, told: str) -> tuple[Any, str]:
    """Where a path leads to; ``told`` is what is said if that is nowhere."""
    found = target.find(path)
    if found is None:
        raise _missing(told)
    return found


def _add(target: _Target, operation: dict[str, Any]) -> None:
    path = _path(operation)
    told = f'add operation does not apply: doc is missing path: "{path}"'
    found = _found(target, path, told)
    with _told(f"error in add for path: '{path}'"):
        _insert(*found, _value(operation))


def _remove(target: _Target, operation: dict[str, Any]) -> None:
    path = _path(operation)
    told = f'remove operation does not apply: doc is missing path: "{path}"'
    found = _found(target, path, told)
    with _told(f"error in remove for path: '{path}'"):
        _delete(*found)


def _replace(target: _Target, operation: dict[str, Any]) -> None:
    path = _path(operation)
    if path == "":
        value = _value(operation)
        if not isinstance(value, (dict, list)):
            raise _Refused("replace operation value must be object or array")
        target.root = value
        return
    told = "replace operation does not apply: doc is missing"
    container, key = _found(target, path, f"{told} path: {path}")
    if isinstance(container, dict):
        container[key] = _value(operation)
    elif _peek(container, key) is _MISSING:
        raise _missing(f"{told} key: {path}")
    else:
        container[_place(container, key)] = _value(operation)


def _move(target: _Target, operation: dict[str, Any]) -> None:
    told = "move operation does not apply: doc is missing"
    origin = _path(operation, "from")
    found = _found(target, origin, f"{told} from path: {origin}")
    with _told(f"error in move for path: '{found[1]}'"):
        value = _get(*found)
        _delete(*found)
    path = _path(operation)
    found = _found(target, path, f"{told} destination path: {path}")
    with _told(f"error in move for path: '{path}'"):
        _insert(*found, value)


def _copy(target: _Target, operation: dict[str, Any]) -> None:
    told = "copy operation does not apply: doc is missing"
    origin = _path(operation, "from")
    found = _found(target, origin, f"{told} from path: {origin}")
    with _told(f"error in copy for from: '{origin}'"):
        value = _get(*found)
    path = _path(operation)
    found = _found(target, path, f"{told} destination path: {path}")
    with _told("error while adding value during copy"):
        _insert(*found, None if value is _MISSING else target.copied(value))


def _test(target: _Target, operation: dict[str, Any]) -> None:
    path = _path(operation)
    wanted, found = _value(operation), None
    if path == "":
        value = target.root
    else:
        told = f"test operation does not apply: is missing path: {path}"
        found = _found(target, path, told)
        with _told(f"error in test for path: '{path}'"):
            value = _get(*found)
    if not _equal(None if value is _MISSING else value, wanted):
        raise _Refused(f"testing value {path} failed: test failed")
    if path and isinstance(value, (dict, list)) and found is not None:
        container, key = found
        place = key if isinstance(container, dict) else _place(container, key)
        container[place] = _sorted(value)


def _equal(one: Any, other: Any) -> bool:
    """Numbers must be written alike: 1 is not 1.0."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(
            _equal(value, other[key]) for key, value in one.items()
        )
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_equal, one, other))
    return bool(one == other)


class _told:
    """Says where a refusal happened."""

    def __init__(self, where: str) -> None:
        self._where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, why: BaseException | None, trace: Any) -> None:
        if isinstance(why, _Refused):
            raise _Refused(f"{self._where}: {why}") from None


_OPERATIONS: dict[str, Callable[[_Target, dict[str, Any]], None]] = {
    "add": _add,
    "remove": _remove,
    "replace": _replace,
    "move": _move,
    "copy": _copy,
    "test": _test,
}


def merge_patch(document: Any, patch: Any) -> Any:
    """The document with the patch merged into it; null removes.

    Errors: `PatchError` for a patch that is not an object.
    """
    if patch is None:
        raise PatchError("Invalid JSON Patch", code=400)
    if not isinstance(patch, dict):
        _not_decoded(patch, "Go value of type map[string]interface {}")
    return _merged(document, patch)


def _merged(document: Any, patch: dict[str, Any]) -> dict[str, Any]:
    result: dict[str, Any] = dict(document)
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
            continue
        present = result.get(name)
        if not isinstance(present, dict):
            result[name] = _pruned(value)
        elif isinstance(value, dict):
            result[name] = _merged(present, value)
        else:
            result[name] = value
    _sort(result)
    return result


def _pruned(value: Any) -> Any:
    """A new value without the nulls of its objects; nulls in lists stay."""
    if isinstance(value, dict):
        kept = sorted(name for name, each in value.items() if each is not None)
        return {name: _pruned(value[name]) for name in kept}
    return [_pruned(each) for each in value] if isinstance(value, list) else value
