"""Default checks: whether the defaults in a schema are what the schema allows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from copy import deepcopy
from typing import Any

from msgspec import UNSET, structs

from trimtab.embedded import cel, objectmeta, shaping, status, validation
from trimtab.embedded.facts import definitions
from trimtab.embedded.schemas import Schema, schema_of
from trimtab.embedded.shaping import Misshapen
from trimtab.embedded.status import FieldProblem
from trimtab.embedded.types import OBJECT_META

Around = Callable[[Any], Any]
_TYPE = {"kind": "Validation", "apiVersion": "validation/v1"}


def default_problems(raw: Mapping[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with the defaults of a structural schema."""
    schema = schema_of(raw, published=True)
    whole = _Root(schema)
    return list(whole.visit(schema, path, lambda value: value, inside=False, root=True))


class _Root:
    """The nearest object around a default: the custom one, or one embedded in it."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def visit(
        self,
        schema: Schema,
        path: str,
        around: Around,
        *,
        inside: bool,
        root: bool = False,
    ) -> Iterator[FieldProblem]:
        """Check a node and those below; ``inside`` is true within metadata."""
        if schema.embedded and not root:
            yield from _Root(schema).visit(
                schema, path, lambda value: value, inside=False, root=True
            )
            return
        if schema.default is not UNSET:
            yield from self._check(schema, f"{path}.default", around, inside=inside)
        whole = root or schema.embedded
        if schema.items is not None:
            yield from self.visit(
                schema.items,
                f"{path}.items",
                lambda value: around([value]),
                inside=inside,
            )
        for name, child in schema.properties.items():
            yield from self.visit(
                child,
                f"{path}.properties[{name}]",
                _under(around, name),
                inside=inside or (whole and name in shaping.META_FIELDS),
            )

    def _check(
        self, schema: Schema, path: str, around: Around, *, inside: bool
    ) -> Iterator[FieldProblem]:
        value = deepcopy(schema.default)
        problem = self._metadata_problem(schema, path, around) if inside else None
        if problem is not None:
            yield problem
            return
        if not inside:
            if shaping.prune(schema, deepcopy(schema.default)):
                yield status.invalid(path, value, "must not have unknown fields")
            found = list(_object_problems(schema, deepcopy(value), path))
            if found:
                yield from found
                return
        found = validation.problems(schema, value, path=path)
        yield from found or _rule_problems(schema, value, path)

    def _metadata_problem(
        self, schema: Schema, path: str, around: Around
    ) -> FieldProblem | None:
        """Inside of metadata a default has to make the whole metadata valid."""
        obj = around(deepcopy(schema.default))
        if not isinstance(obj, dict):
            return None
        obj = {**_TYPE, **obj}
        shown = deepcopy(schema.default)
        said = "must result in valid metadata"
        try:
            shaping.tidy_embedded(
                _as_embedded(self.schema), obj, definitions().type(OBJECT_META)
            )
        except Misshapen as error:
            return status.invalid(path, shown, f"{said}: {error.problem}")
        found = list(objectmeta.embedded_problems(_as_embedded(self.schema), obj))
        if found:
            return status.invalid(path, shown, f"{said}: {status.aggregate(found)}")
        return None


def _under(around: Around, name: str) -> Around:
    return lambda value: around({name: value})


def _as_embedded(schema: Schema) -> Schema:
    if schema.embedded:
        return schema
    return structs.replace(schema, embedded=True, accepts=None)


def _object_problems(schema: Schema, value: Any, path: str) -> Iterator[FieldProblem]:
    try:
        shaping.tidy_embedded(schema, value, definitions().type(OBJECT_META), path)
    except Misshapen as error:
        yield error.problem
        return
    yield from objectmeta.embedded_problems(schema, value, path)


def _rule_problems(schema: Schema, value: Any, path: str) -> list[FieldProblem]:
    """The rules that stand on the default's schema, as for a change and a creation."""
    rules = cel.rules_of(schema, root=schema.embedded)
    if rules is None:
        return []
    return rules.problems(value, value, None, path=path) or rules.problems(
        value, None, None, path=path
    )
