"""Declarations: which functions have a say in what, checked when they are declared.

Like a controller's definition, all of it is data: a function that takes the wrong
types, or versions of two kinds, are errors at import, before anything is served.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Literal, TypeAlias, TypedDict

import msgspec

from trimtab.api.names import check_label
from trimtab.api.resource import Resource
from trimtab.api.selectors import Selector
from trimtab.runtime.definitions import is_asynchronous
from trimtab.runtime.webhooks.signatures import check_conversion, check_signature

Verb: TypeAlias = Literal["validates", "mutates"]
FailurePolicy: TypeAlias = Literal["Fail", "Ignore"]

OPERATIONS = ("CREATE", "UPDATE", "DELETE")
CONVERTS = "/converts"
OPERATORS = {
    "=": "In",
    "==": "In",
    "in": "In",
    "!=": "NotIn",
    "notin": "NotIn",
    "exists": "Exists",
    "!": "DoesNotExist",
}


class Selecting(TypedDict, total=False):
    """What a declaration may say beyond its kind; see :class:`Hook`."""

    name: str
    failure_policy: FailurePolicy
    timeout: int
    labels: str
    namespaces_where: str


class Hook(msgspec.Struct, frozen=True, kw_only=True):
    """One function that is asked about requests, and about which ones."""

    verb: Verb
    label: str
    """What it is called among the webhooks of its kind."""
    kind: type[Resource]
    handler: Callable[..., Any]
    on: tuple[str, ...] = ("CREATE", "UPDATE")
    failure_policy: FailurePolicy = "Fail"
    """What a server makes of a handler that fails or does not answer."""
    timeout: int = 5
    """Seconds that a server waits for the answer."""
    labels: str = ""
    """A label selector: only objects that it matches, before or after, are asked
    about."""
    namespaces_where: str = ""
    """A label selector over the namespaces of objects."""

    @property
    def name(self) -> str:
        """What a server calls it; in every refusal that people read."""
        info = self.kind.__resource__
        return f"{self.label}.{info.plural}.{info.group or 'core'}"

    @property
    def path(self) -> str:
        return f"/{self.verb}/{self.name}"

    @property
    def awaited(self) -> bool:
        return is_asynchronous(self.handler)

    def __post_init__(self) -> None:
        check_label(self.label, what="The name of a webhook")
        unknown = [each for each in self.on if each not in OPERATIONS]
        if unknown or not self.on:
            raise ValueError(
                f"{self.name}: on= takes {', '.join(OPERATIONS)}, not {self.on!r}."
            )
        if self.verb == "mutates" and "DELETE" in self.on:
            raise ValueError(
                f"{self.name}: what is deleted cannot be changed; use @app.validates."
            )
        if self.failure_policy not in ("Fail", "Ignore"):
            raise ValueError(f"{self.name}: failure_policy is 'Fail' or 'Ignore'.")
        if not 1 <= self.timeout <= 30:
            raise ValueError(f"{self.name}: a server waits for 1 to 30 seconds.")
        for text in (self.labels, self.namespaces_where):
            label_selector(text)
        check_signature(self.handler, self.kind, verb=self.verb)


class Conversion:
    """Two functions between two versions of a kind; the first one is called as it is.

    ``@app.converts(Old, New)`` makes it of the way up, ``@up.back`` adds the way down.
    """

    def __init__(
        self, old: type[Resource], new: type[Resource], up: Callable[[Any], Any]
    ) -> None:
        check_conversion(up, old, new, decorator="@app.converts")
        self.old = old
        self.new = new
        self.up = up
        self.down: Callable[[Any], Any] | None = None
        self.__name__ = getattr(up, "__name__", "conversion")

    def __call__(self, obj: Any) -> Any:
        return self.up(obj)

    def __repr__(self) -> str:
        return f"Conversion({self.old.apiVersion!r}, {self.new.apiVersion!r})"

    def back(self, down: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Declare the way back, from the new version to the old one."""
        check_conversion(down, self.new, self.old, decorator=f"@{self.__name__}.back")
        if self.down is not None:
            raise ValueError(f"{self.__name__} has a way back already.")
        self.down = down
        return down


class Declarations:
    """All webhooks of an operator; empty, it is false."""

    def __init__(
        self,
        hooks: Iterable[Hook] = (),
        conversions: Iterable[Conversion] = (),
        namespaces: tuple[str, ...] = (),
    ) -> None:
        self.hooks = tuple(hooks)
        self.conversions = tuple(conversions)
        self.namespaces = namespaces
        """The only namespaces whose objects are asked about; () is all."""

    def __bool__(self) -> bool:
        return bool(self.hooks or self.conversions)

    def of(self, verb: Verb) -> tuple[Hook, ...]:
        return tuple(each for each in self.hooks if each.verb == verb)

    def with_hook(self, hook: Hook) -> Declarations:
        """These and one more.

        Errors: ``ValueError`` if there is one of its name.
        """
        if any(each.path == hook.path for each in self.hooks):
            raise ValueError(
                f"There is a webhook {hook.name} already; give one of them another "
                "name=."
            )
        return Declarations((*self.hooks, hook), self.conversions, self.namespaces)

    def with_conversion(self, conversion: Conversion) -> Declarations:
        """These and one more.

        Errors: ``ValueError`` if the versions are connected already.
        """
        if conversion.new in reachable(self.conversions, conversion.old):
            raise ValueError(
                f"{conversion.old.__name__} is converted into "
                f"{conversion.new.__name__} already; declare each way once."
            )
        return Declarations(
            self.hooks, (*self.conversions, conversion), self.namespaces
        )

    def within(self, namespaces: Iterable[str]) -> Declarations:
        return Declarations(self.hooks, self.conversions, tuple(namespaces))

    def converted(self) -> tuple[tuple[type[Resource], ...], ...]:
        """The versions of each kind that is converted."""
        found: dict[str, dict[type[Resource], None]] = {}
        for each in self.conversions:
            versions = found.setdefault(definition_name(each.old), {})
            versions |= {each.old: None, each.new: None}
        return tuple(map(tuple, found.values()))

    def check(self) -> None:
        """Refuse what cannot be served as a whole.

        Errors: ``ValueError`` for a conversion without a way back, or versions of one
        kind with no way between them.
        """
        for each in self.conversions:
            if each.down is None:
                raise ValueError(
                    f"{each.old.__name__} is converted into {each.new.__name__} and "
                    f"not back; decorate a function with @{each.__name__}.back."
                )
        for versions in self.converted():
            known = reachable(self.conversions, versions[0])
            for kind in versions:
                if kind not in known:
                    raise ValueError(
                        f"No way leads from {versions[0].__name__} to "
                        f"{kind.__name__}; declare one with @app.converts."
                    )


def together(several: Iterable[Declarations]) -> Declarations:
    """The webhooks of several operators, as one server answers them.

    Errors: ``ValueError`` for two webhooks of one name, or two who convert a kind.
    """
    made = Declarations()
    for each in several:
        for hook in each.hooks:
            made = made.with_hook(hook)
        known = {definition_name(kind) for kind, *_ in made.converted()}
        for kind, *_ in each.converted():
            if definition_name(kind) in known:
                raise ValueError(
                    f"{definition_name(kind)} is converted by two operators; one of "
                    "them is enough."
                )
        made = Declarations(made.hooks, (*made.conversions, *each.conversions))
    return made


def label_selector(text: str) -> dict[str, Any]:
    """A label selector in the form that configurations hold.

    Errors: ``ValueError`` for a text that is none, or compares numbers.
    """
    made: list[dict[str, Any]] = []
    for each in Selector.from_string(text).requirements:
        operator = OPERATORS.get(each.operator)
        if operator is None:
            raise ValueError(f"{text!r}: webhooks cannot select by {each.operator}.")
        values = {"values": list(each.values)} if each.values else {}
        made.append({"key": each.key, "operator": operator, **values})
    return {"matchExpressions": made} if made else {}


def reachable(
    conversions: Iterable[Conversion], start: type[Resource]
) -> set[type[Resource]]:
    """The versions that one can be converted into, itself included."""
    pairs = [(each.old, each.new) for each in conversions]
    found, left = {start}, [start]
    while left:
        here = left.pop()
        for pair in pairs:
            if here in pair:
                new = set(pair) - found
                found |= new
                left += new
    return found


def label_of(handler: Any) -> str:
    """What a webhook is called after its function."""
    name = str(getattr(handler, "__name__", type(handler).__name__))
    return name.strip("_").lower().replace("_", "-")


def definition_name(kind: type[Resource]) -> str:
    """The name of a kind's CRD."""
    info = kind.__resource__
    return f"{info.plural}.{info.group}"
