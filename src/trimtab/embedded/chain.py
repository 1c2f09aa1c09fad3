"""The chain: those who look at a write before it happens, one after the other.

A plugin may change an object (``mutate``) or refuse it (``validate``). The chain is
asked about what clients do, and about the garbage that the server collects; what else
it does by itself, nobody is asked about.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec

from trimtab.embedded import metadata
from trimtab.embedded.deletion import DeleteOptions, Deletion
from trimtab.embedded.fieldsets import MalformedFields
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.managed import decode_sent
from trimtab.embedded.metadata import metadata_of
from trimtab.embedded.requests import User
from trimtab.embedded.writes import Write

CREATE, UPDATE, DELETE, CONNECT = "CREATE", "UPDATE", "DELETE", "CONNECT"
OPTIONS = {CREATE: "CreateOptions", UPDATE: "UpdateOptions", DELETE: "DeleteOptions"}
META = "meta.k8s.io/v1"
SPOILT = (
    ".metadata.managedFields was in an invalid state after admission; this could be "
    "caused by an outdated mutating admission controller; please fix your requests: {}"
)


class Attributes(msgspec.Struct, kw_only=True, eq=False):
    """What admission looks at."""

    operation: str
    """``CREATE``, ``UPDATE``, ``DELETE`` or ``CONNECT``."""
    kind: Kind
    """Of the resource; a subresource may be of another, which its object says."""
    subresource: str = ""
    namespace: str = ""
    """That of the object; of a Namespace, its own name."""
    name: str = ""
    """Empty for an object whose name is still to be made up, and in collections."""
    obj: Plain | None
    """In the version of the request; ``mutate`` may change or replace it."""
    old: Plain | None = None
    """What is there now, for whoever changes or deletes it; never to be changed."""
    options: Plain
    user: User
    dry_run: bool = False
    warnings: list[str]
    """What the client is told beside the answer."""
    reinvoke: bool = False
    """Set by a plugin in ``mutate`` that wants the others to look once more."""
    again: bool = False
    """This is that second look."""
    memory: dict[str, Any] = {}
    """What plugins remember from the first look to the second."""


class Plugin(Protocol):
    """One who is asked."""

    @property
    def active(self) -> bool:
        """Whether anything is configured at all; asked with every write."""

    def mutate(self, attributes: Attributes) -> None:
        """Change the object in place, or replace it.

        Errors: ``ApiProblem`` to refuse, ``calls.Pending`` to ask somebody first.
        """

    def validate(self, attributes: Attributes) -> None:
        """Refuse the object as it would be stored, by an ``ApiProblem``."""


class Chain:
    """Plugins in the order in which they are asked."""

    def __init__(self, plugins: Sequence[Plugin] = ()) -> None:
        self.plugins = list(plugins)

    def listens(self, write: Write) -> bool:
        """Whether there is anybody to ask about a write."""
        if write.user is not None:
            for plugin in self.plugins:
                if plugin.active:
                    return True
        return False

    def attributes(
        self,
        write: Write,
        operation: str,
        obj: Plain | None,
        old: Plain | None = None,
        *,
        options: Plain | None = None,
    ) -> Attributes | None:
        """What a write is to be asked about; None if there is nobody to ask."""
        user = write.user
        if user is None or not self.listens(write):
            return None
        if options is None:
            options = options_of(write, operation)
        name = write.name
        if not name and obj is not None:
            name = (obj.get("metadata") or {}).get("name", "")
        own = write.kind.prefix == "core/namespaces/"
        return Attributes(
            operation=operation,
            kind=write.kind,
            subresource=write.subresource,
            namespace=name if own else write.namespace,
            name=name,
            obj=obj,
            old=old,
            options=options,
            user=user,
            dry_run=write.dry_run,
            warnings=write.warnings,
        )

    def mutated(
        self,
        write: Write,
        operation: str,
        obj: Plain,
        old: Plain | None,
        *,
        built_in: Callable[[Plain], None] = lambda obj: None,
    ) -> Plain:
        """An object after everybody has changed it who may.

        A plugin that changed it can have the others look once more, and no more.
        """
        built_in(obj)
        asked = self.attributes(write, operation, obj, old)
        if asked is None:
            return obj
        fields = metadata_of(obj).get("managedFields")
        self.mutate(asked)
        if asked.reinvoke:
            assert asked.obj is not None, "it was given one"
            built_in(asked.obj)
            asked.again = True
            self.mutate(asked)
        assert asked.obj is not None, "it was given one"
        self._tidy(write, asked.obj, fields)
        return asked.obj

    def _tidy(self, write: Write, obj: Plain, fields: list[Plain] | None) -> None:
        """Put right, or refuse, what nobody may change; ``fields`` were its managed
        ones before."""
        metadata.place(write.kind, obj, namespace=write.namespace)
        meta = metadata_of(obj)
        try:
            decode_sent(meta.get("managedFields") or ())
        except MalformedFields as error:
            meta["managedFields"] = fields or []
            write.warnings.append(SPOILT.format(error))
        metadata.drop_equal_owners(obj, write.warnings, when=metadata.AFTER_MUTATION)

    def review(
        self, write: Write, operation: str, obj: Plain, old: Plain | None
    ) -> None:
        """Let everybody refuse an object who may."""
        asked = self.attributes(write, operation, obj, old)
        if asked is not None:
            self.validate(asked)

    def review_deletion(
        self,
        write: Write,
        kind: Kind,
        old: Plain,
        deletion: Deletion,
        options: DeleteOptions,
    ) -> None:
        """Let everybody refuse that an object goes; there is nothing to change.

        ``old`` is as it is stored; it is shown in the version of a kind.
        """
        asked = self.attributes(write, DELETE, None, old, options={})
        if asked is None:
            return
        if kind.conversion is not None:
            asked.old = kind.converted(old)
        asked.options = deletion.shown(write.kind, old, options)
        asked.dry_run = options.dry_run
        self.mutate(asked)
        self.validate(asked)

    def mutate(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            if plugin.active:
                plugin.mutate(attributes)

    def validate(self, attributes: Attributes) -> None:
        for plugin in self.plugins:
            if plugin.active:
                plugin.validate(attributes)


def options_of(write: Write, operation: str) -> Plain:
    """The options of a write, as those who are asked get to see them."""
    options: Plain = {"kind": OPTIONS[operation], "apiVersion": META}
    query = write.query
    if query.get("dryRun"):
        options["dryRun"] = [query["dryRun"]]
    for field in ("fieldManager", "fieldValidation"):
        if query.get(field):
            options[field] = query[field]
    return options
