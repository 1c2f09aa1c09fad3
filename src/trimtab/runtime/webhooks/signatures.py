"""Signatures: whether a webhook's function takes and returns what it is declared for.

What the annotations say is compared with the declaration, so that a function for
another kind is found at import and not by the first request.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from trimtab.api.resource import Resource
from trimtab.runtime.webhooks.review import Review


def check_signature(
    handler: Callable[..., Any], kind: type[Resource], *, verb: str
) -> None:
    """A handler of reviews takes the object and the review.

    Errors: ``TypeError``.
    """
    name = _named(handler, f"@app.{verb}")
    try:
        bound = inspect.signature(handler).bind(None, None)
    except TypeError:
        raise TypeError(
            f"@app.{verb} {name} must take two arguments, the object and the review: "
            f"def {name}(site, review)."
        ) from None
    hints = _hints(handler)
    taken: tuple[type, ...] = (kind, Review)
    for parameter, wanted in zip(bound.arguments, taken, strict=False):
        hint = hints.get(parameter, Any)
        if not _accepts(hint, wanted):
            raise TypeError(
                f"@app.{verb} {name} takes {_shown(hint)} as {parameter}, and is "
                f"called with {wanted.__name__}; change one of them."
            )
    returned = hints.get("return", Any)
    if verb == "validates" and returned not in (None, NoneType, Any):
        raise TypeError(
            f"@app.validates {name} returns nothing, not {_shown(returned)}: raise "
            "Refused to refuse, and use @app.mutates to change."
        )
    if verb == "mutates" and not _gives(returned, kind):
        raise TypeError(
            f"@app.mutates {name} returns {kind.__name__} or None, not "
            f"{_shown(returned)}."
        )


def check_conversion(
    function: Callable[..., Any],
    source: type[Resource],
    target: type[Resource],
    *,
    decorator: str,
) -> None:
    """A conversion is a plain function from one version of a kind to another.

    Errors: ``TypeError`` for the function, ``ValueError`` for the classes.
    """
    _check_versions(source, target, decorator)
    name = _named(function, decorator)
    if inspect.iscoroutinefunction(function):
        raise TypeError(
            f"{decorator} {name} must be a plain function: a conversion depends on "
            "the object alone, so it has nothing to wait for."
        )
    try:
        bound = inspect.signature(function).bind(None)
    except TypeError:
        raise TypeError(
            f"{decorator} {name} must take one argument, the {source.__name__}."
        ) from None
    hints = _hints(function)
    hint = hints.get(next(iter(bound.arguments), ""), Any)
    returned = hints.get("return", Any)
    if not _accepts(hint, source) or not _gives(returned, target):
        raise TypeError(
            f"{decorator} {name} must make {target.__name__} of {source.__name__}, "
            f"not {_shown(returned)} of {_shown(hint)}."
        )


def _check_versions(
    source: type[Resource], target: type[Resource], decorator: str
) -> None:
    for kind in (source, target):
        if getattr(kind, "__definition__", None) is None:
            raise ValueError(
                f"{decorator}: {getattr(kind, '__name__', kind)} is no custom kind; "
                "only those have versions of their own."
            )
    one, other = source.__resource__, target.__resource__
    if (one.group, one.plural) != (other.group, other.plural):
        raise ValueError(
            f"{decorator}: {source.__name__} and {target.__name__} are two kinds, "
            f"{one.plural}.{one.group} and {other.plural}.{other.group}; name two "
            "versions of one."
        )
    if one.version == other.version:
        raise ValueError(
            f"{decorator}: {source.__name__} and {target.__name__} are both "
            f"{one.version}; name two versions."
        )


def _named(function: Any, decorator: str) -> str:
    if not callable(function):
        raise TypeError(f"{decorator} decorates a function, not {function!r}.")
    return str(getattr(function, "__name__", repr(function)))


def _hints(function: Any) -> dict[str, Any]:
    """The annotations that can be known now; those that cannot are not judged."""
    called = function if inspect.isroutine(function) else type(function).__call__
    try:
        return get_type_hints(called)
    except (NameError, AttributeError, TypeError):
        return {}


def _accepts(hint: Any, wanted: type) -> bool:
    """Whether a parameter may be handed an object of a class."""
    if get_origin(hint) in (Union, UnionType):
        return any(_accepts(each, wanted) for each in get_args(hint))
    plain = get_origin(hint) or hint
    return plain is Any or not isinstance(plain, type) or issubclass(wanted, plain)


def _gives(hint: Any, wanted: type) -> bool:
    """Whether what is returned may be an object of a class."""
    if get_origin(hint) in (Union, UnionType):
        return any(_gives(each, wanted) for each in get_args(hint))
    if hint is Any or isinstance(hint, TypeVar):
        return True
    return isinstance(hint, type) and issubclass(hint, wanted)


def _shown(hint: Any) -> str:
    return getattr(hint, "__name__", None) or str(hint)
