"""Uses: what the source of an operator does to the cluster, read and not run.

Looked at are the modules of its handlers, and what they use of the modules beside them.
In each function, calls on a parameter that is a context (by its annotation, or because
the function is a handler) or a client are taken for what they are; the kind that a call
is about is followed through assignments, loops and annotations. What cannot be followed
is told, so that it can be declared.
"""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import msgspec

from trimtab.api.resource import Info, Resource
from trimtab.client import Client
from trimtab.runtime.blocking import BlockingContext
from trimtab.runtime.context import Context
from trimtab.runtime.definitions import Definition
from trimtab.runtime.reconcile import Result

Kind = type[Resource] | Info

# What a call of the client asks of the server: verbs, and the subresource.
CLIENT: Final[dict[str, tuple[tuple[str, ...], str]]] = {
    "get": (("get",), ""),
    "list": (("list",), ""),
    "watch": (("watch",), ""),
    "create": (("create",), ""),
    "replace": (("update",), ""),
    "apply": (("create", "patch"), ""),
    "apply_status": (("patch",), "status"),
    "patch": (("patch",), ""),
    "delete": (("delete",), ""),
    "delete_collection": (("deletecollection",), ""),
    "replicas": (("get",), "scale"),
    "scale": (("patch",), "scale"),
    "evict": (("create",), "eviction"),
    "logs": (("get",), "log"),
    "token": (("create",), "token"),
}
# By the method of a request to any subresource.
REQUESTS: Final = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}
CONTEXT: Final[dict[str, tuple[str, ...]]] = {
    "apply": ("create", "patch"),
    "swap": ("patch",),
    "delete": ("delete",),
}
# Calls that give back what they were given a class, or an object, of.
GIVES: Final = frozenset({"get", "children", "select", "list", "apply", "swap"})
STATES: Final = frozenset({"status", "condition"})


class Use(msgspec.Struct, frozen=True, kw_only=True):
    """One call that asks something of the server."""

    by: str
    """The method: ``ctx.apply``, ``client.get``."""
    verbs: tuple[str, ...]
    kind: Kind | None
    """None if it cannot be seen."""
    subresource: str = ""
    place: str = ""
    """``website.py:12``"""


class Uses(msgspec.Struct, frozen=True, kw_only=True):
    """All that the source shows."""

    calls: tuple[Use, ...]
    events: bool
    status: bool
    opaque: bool
    """Some handler has no source that could be read."""


def uses_of(definitions: Iterable[Definition]) -> Uses:
    """What the handlers of an operator do, and the functions that they use."""
    handlers: dict[Any, type[Resource]] = {}
    opaque = False
    for each in definitions:
        for handler in filter(None, (each.handler, each.cleanup)):
            plain = inspect.unwrap(handler)
            if inspect.isfunction(plain):
                handlers[plain.__code__] = each.kind
            else:
                opaque = True
    reader = _Reader({_place_of(code): kind for code, kind in handlers.items()})
    modules = {sys.modules.get(_module_of(each)) for each in definitions}
    for module in _beside(filter(None, modules)):
        try:
            tree = ast.parse(inspect.getsource(module))
        except (OSError, TypeError, SyntaxError):
            opaque = True
            continue
        reader.read(module, tree)
    return Uses(
        calls=tuple(reader.calls),
        events=reader.events,
        status=reader.status,
        opaque=opaque,
    )


def _module_of(definition: Definition) -> str:
    return str(getattr(inspect.unwrap(definition.handler), "__module__", ""))


def _place_of(code: Any) -> tuple[str, str, int]:
    return (str(Path(code.co_filename).resolve()), code.co_name, code.co_firstlineno)


def _beside(modules: Iterable[ModuleType]) -> Iterator[ModuleType]:
    """Modules, and those of the same project that they have something from."""
    left = list(modules)
    roots = {_root(module) for module in left} - {None}
    seen: set[str] = set()
    while left:
        module = left.pop()
        if module.__name__ in seen:
            continue
        seen.add(module.__name__)
        yield module
        for value in list(vars(module).values()):
            other = sys.modules.get(
                value.__name__
                if isinstance(value, ModuleType)
                else str(getattr(value, "__module__", ""))
            )
            if other is not None and _root(other) in roots:
                left.append(other)


def _root(module: ModuleType) -> str | None:
    """The folder of the project: that of the top package, or of a lone file.

    Of what comes with Trimtab, each operator is a project of its own.
    """
    match module.__name__.split("."):
        case ["trimtab", "operators", name, *_]:
            return f"trimtab.operators.{name}"
        case ["trimtab", *_]:
            return None
    file = getattr(module, "__file__", None)
    if file is None or "site-packages" in file or module.__name__ == "__main__":
        return None
    depth = len(module.__name__.split(".")) if module.__package__ else 1
    if Path(file).name == "__init__.py":
        depth += 1
    return str(Path(file).resolve().parents[depth - 1])


class _Names:
    """What is known of the names in one function, and in those around it."""

    def __init__(self, above: _Names | None = None) -> None:
        self.contexts: set[str] = set(above.contexts) if above else set()
        self.clients: set[str] = set(above.clients) if above else set()
        self.kinds: dict[str, Kind | None] = dict(above.kinds) if above else {}


class _Reader:
    """Goes through modules and collects what they do."""

    def __init__(self, handlers: dict[tuple[str, str, int], type[Resource]]) -> None:
        self._handlers = handlers
        self._module: dict[str, Any] = {}
        self._file = Path()
        self.calls: list[Use] = []
        self.events = False
        self.status = False

    def read(self, module: ModuleType, tree: ast.Module) -> None:
        self._module = vars(module)
        self._file = Path(str(module.__file__)).resolve()
        self._block(tree, _Names())

    def _block(self, node: ast.AST, names: _Names) -> None:
        """Everything below a node, in its order; functions get names of their own."""
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
                inner = _Names(names)
                self._parameters(child, inner)
                self._block(child, inner)
                continue
            self._bind(child, names)
            self._block(child, names)
            if isinstance(child, ast.Call):
                self._call(child, names)

    def _parameters(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef, names: _Names
    ) -> None:
        every = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
        for each in every:
            self._known(each.arg, self._resolved(each.annotation), names)
        lines = {node.lineno, *(each.lineno for each in node.decorator_list)}
        for line in lines:
            kind = self._handlers.get((str(self._file), node.name, line))
            if kind is not None and len(every) >= 2:
                names.kinds[every[0].arg] = kind
                names.contexts.add(every[1].arg)

    def _known(self, name: str, found: Any, names: _Names) -> None:
        if found in (Context, BlockingContext):
            names.contexts.add(name)
        elif found is Client:
            names.clients.add(name)
        elif _is_kind(found):
            names.kinds[name] = found

    def _bind(self, node: ast.AST, names: _Names) -> None:
        """Remember what an assignment or a loop gives a name to."""
        if isinstance(node, ast.For | ast.AsyncFor | ast.comprehension):
            target, value = node.target, node.iter
        elif isinstance(node, ast.Assign) and len(node.targets) == 1:
            target, value = node.targets[0], node.value
        elif isinstance(node, ast.NamedExpr):
            target, value = node.target, node.value
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            self._known(node.target.id, self._resolved(node.annotation), names)
            return
        elif isinstance(
            node, ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp
        ):
            for each in node.generators:
                self._bind(each, names)
            return
        else:
            return
        if isinstance(target, ast.Name):
            if self._is_client(value, names):
                names.clients.add(target.id)
            else:
                names.kinds[target.id] = self._kind(value, names)

    def _call(self, call: ast.Call, names: _Names) -> None:
        if self._resolved(call.func) is Result:
            self.status |= any(each.arg == "status" for each in call.keywords)
        if not isinstance(call.func, ast.Attribute):
            return
        method, on = call.func.attr, call.func.value
        if isinstance(on, ast.Name) and on.id in names.contexts:
            self._on_context(method, call, names)
        elif self._is_client(on, names) and method in (*CLIENT, "subresource"):
            verbs, subresource = CLIENT.get(method) or _subresource(call)
            subresource = _constant(call, "subresource") or subresource
            self._add(f"client.{method}", verbs, call, names, subresource)

    def _on_context(self, method: str, call: ast.Call, names: _Names) -> None:
        self.events |= method == "event"
        self.status |= method in STATES
        self.status |= method == "done" and any(
            each.arg == "status" for each in call.keywords
        )
        if method in CONTEXT:
            self._add(f"ctx.{method}", CONTEXT[method], call, names)

    def _add(
        self,
        by: str,
        verbs: tuple[str, ...],
        call: ast.Call,
        names: _Names,
        subresource: str = "",
    ) -> None:
        about = call.args[0] if call.args else None
        kind = None if about is None else self._kind(about, names)
        if by in ("client.token", "client.evict", "client.logs"):
            kind = _NAMED[by]
        self.calls.append(
            Use(
                by=by,
                verbs=verbs,
                kind=kind,
                subresource=subresource,
                place=f"{self._file.name}:{call.lineno}",
            )
        )

    def _is_client(self, node: ast.expr, names: _Names) -> bool:
        if isinstance(node, ast.Name):
            return node.id in names.clients
        return (
            isinstance(node, ast.Attribute)
            and node.attr == "client"
            and isinstance(node.value, ast.Name)
            and node.value.id in names.contexts
        )

    def _kind(self, node: ast.expr, names: _Names) -> Kind | None:
        """The kind of an object, or the kind that an expression names."""
        if isinstance(node, ast.Await):
            return self._kind(node.value, names)
        if isinstance(node, ast.Name) and node.id in names.kinds:
            return names.kinds[node.id]
        if isinstance(node, ast.Call):
            return self._made(node, names)
        if isinstance(node, ast.ListComp | ast.GeneratorExp):
            return self._kind(node.elt, names)
        if isinstance(node, ast.List | ast.Tuple) and node.elts:
            return self._kind(node.elts[0], names)
        found = self._resolved(node)
        return found if _is_kind(found) else None

    def _made(self, call: ast.Call, names: _Names) -> Kind | None:
        """The kind of what a call gives back."""
        found = self._resolved(call.func)
        if _is_kind(found):
            return found  # type: ignore[no-any-return]
        if found in (sorted, list, tuple, set, msgspec.structs.replace) and call.args:
            return self._kind(call.args[0], names)
        if inspect.isfunction(found):
            return _returned(found)
        if isinstance(call.func, ast.Attribute) and call.func.attr in GIVES:
            return self._kind(call.args[0], names) if call.args else None
        return None

    def _resolved(self, node: ast.expr | None) -> Any:
        """What a name of the module stands for; also one that is quoted."""
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            try:
                node = ast.parse(node.value, mode="eval").body
            except SyntaxError:
                return None
        if isinstance(node, ast.Subscript):  # list[Pod], Sequence[Pod]
            inside = self._resolved(node.slice)
            return inside if _is_kind(inside) else None
        if isinstance(node, ast.Name):
            return self._module.get(node.id, getattr(_BUILTINS, node.id, None))
        if isinstance(node, ast.Attribute):
            return getattr(self._resolved(node.value), node.attr, None)
        if isinstance(node, ast.BinOp):  # Pod | None
            return self._resolved(node.left)
        return None


def _constant(call: ast.Call, name: str) -> str:
    """What a call says under a keyword, if it can be read there."""
    for each in call.keywords:
        if each.arg == name and isinstance(each.value, ast.Constant):
            return str(each.value.value)
    return ""


def _subresource(call: ast.Call) -> tuple[tuple[str, ...], str]:
    """The verb and the name of ``client.subresource(Pod, name, "resize", …)``."""
    named = call.args[2] if len(call.args) > 2 else None
    verb = REQUESTS.get(_constant(call, "method") or "GET", "get")
    return (verb,), str(named.value) if isinstance(named, ast.Constant) else "?"


_BUILTINS = sys.modules["builtins"]
_CORE = {"ServiceAccount": "serviceaccounts", "Pod": "pods"}
_NAMED: Final = {
    "client.token": Info(
        version="v1", kind="ServiceAccount", plural=_CORE["ServiceAccount"]
    ),
    "client.evict": Info(version="v1", kind="Pod", plural=_CORE["Pod"]),
    "client.logs": Info(version="v1", kind="Pod", plural=_CORE["Pod"]),
}


def _is_kind(found: Any) -> bool:
    if isinstance(found, Info):
        return True
    return (
        isinstance(found, type)
        and issubclass(found, Resource)
        and (hasattr(found, "__resource__"))
    )


def _returned(function: Any) -> Kind | None:
    """The kind that a function says it returns, alone or in a list."""
    try:
        hint = inspect.get_annotations(function, eval_str=True).get("return")
    except Exception:  # an annotation may be anything, and fail in any way
        return None
    for each in (hint, *getattr(hint, "__args__", ())):
        if _is_kind(each):
            return each  # type: ignore[no-any-return]
    return None
