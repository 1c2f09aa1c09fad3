"""The catalog: which kinds are served right now, built-in ones and those of CRDs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from trimtab.embedded import facts
from trimtab.embedded.builtin import versions
from trimtab.embedded.crds import CustomKind
from trimtab.embedded.kinds import Converter, Kind, Plain
from trimtab.embedded.metadata import metadata_of

Where = tuple[str, str, str]


class Catalog:
    """Kinds by group, version and plural, in the order that discovery shows them."""

    def __init__(self, conversion: Callable[[Plain], Converter] | None = None) -> None:
        self._conversion = conversion
        self._plain: dict[str, Kind] = {}
        definitions = facts.definitions()
        self._kinds: dict[Where, Kind] = {}
        self._built_in: dict[Where, facts.ServedResource] = {
            (each.group, each.version, each.plural): each for each in facts.resources()
        }
        self._definitions = definitions
        self._by_kind: dict[Where, Where] = {}
        self._by_plural: dict[tuple[str, str], Where] = {}
        for each in self._built_in.values():
            self._index(each)
        self._custom: dict[str, tuple[Kind, ...]] = {}
        self.revision = 0
        """Changes with every CRD that comes, changes or goes."""

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """The kind that a path names; None if it is not served."""
        where = (group, version, plural)
        kind = self._kinds.get(where)
        if kind is None and where in self._built_in:
            resource = self._built_in[where]
            kind = self._kinds[where] = self._make(resource)
            self._relate(kind)
        return kind

    def _make(self, resource: facts.ServedResource) -> Kind:
        type = self._definitions.type(resource.definition)
        stored = versions.STORED.get((resource.group, resource.plural))
        if stored in (None, (resource.group, resource.version)):
            return Kind(resource, type)
        return Kind(resource, type, conversion=versions.CONVERTER)

    def _relate(self, kind: Kind) -> None:
        """Tell a built-in kind of its other versions, if they differ."""
        names = versions.FAMILIES.get(kind.kind, ())
        if kind.api_version in names:
            found = {each: self.by_kind(each, kind.kind) for each in names}
            kind.family = {name: each for name, each in found.items() if each}

    def by_kind(self, api_version: str, kind: str) -> Kind | None:
        """The kind that an object says it is."""
        group, _, version = api_version.rpartition("/")
        where = self._by_kind.get((group, version, kind))
        return None if where is None else self.find(*where)

    def by_prefix(self, prefix: str) -> Kind | None:
        """The kind of a stored object, by the beginning of its key."""
        group, plural, _ = prefix.split("/", 2)
        where = self._by_plural.get(("" if group == "core" else group, plural))
        if where is None:
            return None
        # What is converted by others, the server itself takes as it is stored.
        return self._plain.get(f"{plural}.{group}") or self.find(*where)

    def _index(self, resource: facts.ServedResource) -> None:
        """The first in discovery's order is the one that is found."""
        group, version = resource.group, resource.version
        where = (group, version, resource.plural)
        self._by_kind.setdefault((group, version, resource.kind), where)
        self._by_plural.setdefault((group, resource.plural), where)

    def resources(self) -> Iterator[facts.ServedResource]:
        """Everything that is served, in discovery's order."""
        yield from self._built_in.values()
        for kinds in self._custom.values():
            for kind in kinds:
                yield kind.resource

    def stored_kinds(self) -> Iterator[Kind]:
        """One kind for each resource that objects are stored under."""
        seen = set()
        for resource in list(self.resources()):
            if "list" not in resource.verbs:
                continue
            kind = self.find(resource.group, resource.version, resource.plural)
            if kind is not None and kind.prefix not in seen:
                seen.add(kind.prefix)
                yield kind

    def custom_kinds(self) -> Iterable[CustomKind]:
        for kinds in self._custom.values():
            for kind in kinds:
                if kind.custom is not None:
                    yield kind.custom

    def register(self, crd: Plain, *, revision: int = 0) -> None:
        """Serve what a CRD describes, instead of what it described before.

        What was stored up to the revision may be of what it described before.
        """
        name = metadata_of(crd)["name"]
        self.forget(name)
        spec = crd["spec"]
        stored = next(each["name"] for each in spec["versions"] if each["storage"])
        conversion = self._converter(crd)
        kinds = []
        for version in spec["versions"]:
            if not version["served"]:
                continue
            custom = CustomKind(crd, version["name"])
            kind = Kind(
                custom.resource,
                custom.type,
                custom=custom,
                stored=f"{spec['group']}/{stored}",
                conversion=conversion,
                since=revision if metadata_of(crd).get("generation", 1) > 1 else 0,
            )
            kinds.append(kind)
            self._kinds[kind.group, kind.version, kind.plural] = kind
            self._index(kind.resource)
        self._custom[name] = tuple(kinds)
        if conversion is not None and kinds:
            self._plain[name] = kinds[0].plain
            family = {kind.api_version: kind for kind in kinds}
            for kind in kinds:
                kind.family = family
        self.revision += 1

    def _converter(self, crd: Plain) -> Converter | None:
        strategy = (crd["spec"].get("conversion") or {}).get("strategy")
        if strategy != "Webhook" or self._conversion is None:
            return None
        return self._conversion(crd)

    def forget(self, name: str) -> None:
        """Stop serving what a CRD described."""
        self._plain.pop(name, None)
        for kind in self._custom.pop(name, ()):
            self._kinds.pop((kind.group, kind.version, kind.plural), None)
            self._by_kind.pop((kind.group, kind.version, kind.kind), None)
            self._by_plural.pop((kind.group, kind.plural), None)
            self.revision += 1

    def versions(self, kind: Kind) -> tuple[Kind, ...]:
        """All served versions of a kind; of built-in ones, few have several."""
        if kind.custom is None:
            return tuple(kind.family.values()) or (kind,)
        return self.of_crd(metadata_of(kind.custom.crd)["name"])

    def of_crd(self, name: str) -> tuple[Kind, ...]:
        return self._custom.get(name, ())
