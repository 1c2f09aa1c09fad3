"""Removals: requests to delete one object, or all that are chosen."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from trimtab.embedded import bodies, status
from trimtab.embedded.answers import Answer, telling, warned, written
from trimtab.embedded.bodies import JSON
from trimtab.embedded.builtin.warnings import ORPHANED_PODS
from trimtab.embedded.calls import Call, Calls, Pending
from trimtab.embedded.deletion import DeleteOptions, delete_options, in_query
from trimtab.embedded.forms import Renderer
from trimtab.embedded.lists import list_page, list_request
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest, Target
from trimtab.embedded.selection import selection_of
from trimtab.embedded.status import ApiProblem
from trimtab.embedded.writes import Write, write_of


class Removals:
    """Deletes by way of a registry."""

    def __init__(self, registry: Registry, *, calls: Calls) -> None:
        self._registry = registry
        self._calls = calls

    def answer(self, request: ApiRequest, target: Target, renderer: Renderer) -> Answer:
        """Delete what a path names."""
        kind = renderer.kind
        write = write_of(request, target, kind)
        if not target.name:
            return self._collection(request, write, renderer)
        options = _options(request)
        _warn(write, options)
        with telling(write):
            outcome = self._registry.delete(
                kind, target.namespace, target.name, options, write=write
            )
        return written(renderer, outcome, write.warnings)

    def _collection(
        self, request: ApiRequest, write: Write, renderer: Renderer
    ) -> Answer:
        kind, store = write.kind, self._registry.store
        selection = selection_of(request.query, kind=kind)
        asked = list_request(request, current=store.revision)
        options = _options(request)
        _warn(write, options)
        convert = kind.current if selection.is_of_version(kind) else None
        page = list_page(
            store,
            kind.within(write.namespace),
            asked,
            selection.matcher(),
            convert=convert,
        )
        values = list(page.values)
        shown = values if convert else kind.current(values)
        with telling(write):
            self._delete_all(write, values, options)
        pieces = renderer.many(shown, page.metadata())
        return Answer(
            content_type=renderer.form.media,
            headers=warned(write.warnings),
            body=b"".join(pieces),
        )

    def _delete_all(
        self, write: Write, values: Sequence[bytes], options: DeleteOptions
    ) -> None:
        """Delete objects one by one, up to the first that may not be."""
        places = [msgspec.json.decode(value)["metadata"] for value in values]
        named = [(each.get("namespace", ""), each["name"]) for each in places]
        if self._registry.chain.listens(write) or write.kind.conversion is not None:
            self._ask(write, named, options)
        for namespace, name in named:
            self._registry.delete(write.kind, namespace, name, options, write=write)

    def _ask(
        self, write: Write, named: Sequence[tuple[str, str]], options: DeleteOptions
    ) -> None:
        """Ask everybody about all of them before the first one goes."""
        calls: list[Call] = []
        told = len(write.warnings)
        for namespace, name in named:
            try:
                self._registry.delete(
                    write.kind, namespace, name, options, write=write, commit=False
                )
            except Pending as pending:
                calls += pending.calls
            except ApiProblem:
                pass  # it is told when it is its turn
        if calls:
            self._calls.ask(*calls)
        del write.warnings[told:]


def _warn(write: Write, options: DeleteOptions) -> None:
    if write.kind.prefix == "batch/jobs/" and options.policy is None:
        write.warnings.append(ORPHANED_PODS)


def _options(request: ApiRequest) -> DeleteOptions:
    """How to delete: as the body says or, only if there is none, the query."""
    if not request.body:
        return delete_options(in_query(request))
    body = bodies.decode(request.body, request.headers.get("content-type", JSON))
    if body.get("kind", "DeleteOptions") != "DeleteOptions":
        version = body.get("apiVersion") or "meta.k8s.io/v1"
        raise status.bad_request(
            f'no kind "{body["kind"]}" is registered for version "{version}" in scheme '
            '"pkg/runtime/scheme.go:111"'
        )
    return delete_options(body)
