"""The API: a request comes in, an answer goes out, whatever carried them.

HTTP and the in-process transport both end here. ``handle`` is synchronous and never
raises for something that a client did; ``work`` does what follows from writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime
from random import Random

import msgspec

from trimtab.embedded import bodies, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.allocation import Allocation
from trimtab.embedded.bodies import JSON
from trimtab.embedded.bootstrap import furnish, install
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.deletion import Deletion, delete_options
from trimtab.embedded.documents import TEXT, Documents
from trimtab.embedded.forms import Renderer, failure_line
from trimtab.embedded.kinds import Kind
from trimtab.embedded.lifecycle import Lifecycle
from trimtab.embedded.lists import (
    list_page,
    list_request,
    number_of,
    too_large_version,
    wants_initial,
)
from trimtab.embedded.metadata import Stamps
from trimtab.embedded.registry import Outcome, Registry, Write
from trimtab.embedded.requests import ApiRequest, Target, target_of
from trimtab.embedded.reviews import Reviews
from trimtab.embedded.selection import Selection, selection_of
from trimtab.embedded.status import ApiProblem, NoSuchPath
from trimtab.embedded.store import Store
from trimtab.embedded.subresources import Subresources
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.watching import Hub, View, Watcher

WATCH_SECONDS = (1800.0, 3600.0)
MAINTENANCE = 10.0
MAX_MANAGER = 128
PLAIN = "text/plain"
NOT_ALLOWED = "the server does not allow this method on the requested resource"
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}


class Answer(msgspec.Struct, kw_only=True):
    """What goes back: a body at once, or piece by piece."""

    status: int = 200
    content_type: str = JSON
    headers: tuple[tuple[str, str], ...] = ()
    body: bytes | Iterator[bytes] = b""


class WatchAnswer(msgspec.Struct, kw_only=True):
    """A watch that has begun; its watcher is read until it is over."""

    watcher: Watcher
    status: int = 200
    content_type: str = JSON


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """What an API server knows about where it stands."""

    address: str = "127.0.0.1:6443"
    ca: str = ""
    """The certificate authority, PEM; put into every namespace."""
    service_network: str = "10.0.0.0/16"


class Api:
    """One API server without a socket."""

    def __init__(
        self,
        store: Store,
        *,
        now: Callable[[], datetime],
        random: Random,
        tokens: Tokens,
        settings: Settings | None = None,
        clock: Callable[[], float] | None = None,
    ) -> None:
        self.store = store
        self.settings = settings or Settings()
        self.catalog = Catalog()
        self._now = now
        # Ages are measured on a clock that never jumps, where there is one.
        self._clock = clock or (lambda: now().timestamp())
        self._random = random
        self._hub = Hub(store)
        self.allocation = Allocation(store, self.settings.service_network)
        stamps = Stamps(now=now, random=random)
        self.registry = Registry(
            store,
            stamps=stamps,
            admission=Admission(store, name=stamps.name),
            deletion=Deletion(),
            allocate=self.allocation.allocate,
        )
        self._lifecycle = Lifecycle(
            store,
            catalog=self.catalog,
            registry=self.registry,
            now=lambda: now().timestamp(),
            furnish=lambda name: furnish(self, name),
        )
        self._subresources = Subresources(
            self.registry, self.catalog, tokens=tokens, now=now
        )
        self._reviews = Reviews(tokens, now=now)
        self._documents = Documents(self.catalog, address=self.settings.address)
        self._lifecycle.start()
        install(self)
        while self.work():
            pass

    def work(self) -> bool:
        """Do some of what follows from writes; True if there is more to do."""
        return self._lifecycle.step()

    def maintain(self) -> float:
        """Do what is due with time; the seconds until it is due again."""
        while self.work():
            pass
        if self.store.maintain(self._clock()):
            return 0.0
        due = self._lifecycle.due_in()
        return MAINTENANCE if due is None else min(MAINTENANCE, due)

    def forget(self) -> None:
        """Forget all history at once: what is older than now has expired."""
        self.store.compact(self.store.revision)
        self._hub.forget()

    def handle(self, request: ApiRequest) -> Answer | WatchAnswer:
        """Answer one request."""
        try:
            return self._route(request)
        except ApiProblem as problem:
            return self.refusal(request, problem)

    def refusal(self, request: ApiRequest, problem: ApiProblem) -> Answer:
        """A problem as an answer, in a form that the client reads."""
        if isinstance(problem, NoSuchPath):
            return Answer(status=404, content_type=TEXT, body=problem.text)
        try:
            media = bodies.form_of(request.headers.get("accept", "")).media
        except ApiProblem:
            media = JSON
        headers: tuple[tuple[str, str], ...] = ()
        if problem.retry_after:
            headers = (("Retry-After", str(problem.retry_after)),)
        return Answer(
            status=problem.code,
            content_type=media,
            headers=headers,
            body=bodies.encode(problem.status, media),
        )

    def _route(self, request: ApiRequest) -> Answer | WatchAnswer:
        if any(name.startswith("impersonate-") for name in request.headers):
            # Ignoring it would let a client act with more rights than it asked for.
            raise ApiProblem(
                403,
                "Forbidden",
                "this server cannot impersonate anybody yet; leave out --as and the "
                "Impersonate headers",
            )
        target = target_of(request.path)
        if target is None:
            return self._document(request)
        kind = self.catalog.find(target.group, target.version, target.resource)
        if kind is None:
            raise self._unknown(target)
        answer = self._object(request, target, kind)
        if isinstance(answer, Answer) and kind.custom and kind.custom.warning:
            answer.headers = (*answer.headers, _warning(kind.custom.warning))
        return answer

    def _unknown(self, target: Target) -> ApiProblem:
        """A resource that is not served: of a group that is there, or of none."""
        if any(each.group == target.group for each in self.catalog.resources()):
            return bodies.Unrouted(404, "NotFound", str(status.no_such_path()))
        return status.no_such_path()

    def _object(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> Answer | WatchAnswer:
        if target.subresource or kind.resource.verbs == ("create",):
            self._check_create_only(request, target, kind)
            return self._subresource(request, target, kind)
        self._check_verb(request, target, kind)
        if request.method == "GET":
            return self._read(request, target, kind)
        if request.method == "DELETE":
            return self._delete(request, target, kind)
        return self._write(request, target, kind)

    def _document(self, request: ApiRequest) -> Answer:
        if request.method not in ("GET", "HEAD"):
            raise status.no_such_path()
        found = self._documents.find(request)
        if found is None:
            raise status.no_such_path()
        content_type, body = found
        return Answer(content_type=content_type, body=body)

    def _check_verb(self, request: ApiRequest, target: Target, kind: Kind) -> None:
        if kind.namespaced and not target.namespace:
            wanted = request.method != "GET" and not target.name
            if target.name or (wanted and request.method != "DELETE"):
                raise status.no_such_path()
        verb = VERBS.get(request.method, "delete")
        if not target.name and request.method == "DELETE":
            verb = "deletecollection"
        if not target.name and request.method == "GET":
            verb = "list"
        if verb not in kind.resource.verbs:
            raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)
        if bool(target.name) != (verb in ("get", "update", "patch", "delete")):
            raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)

    def _check_create_only(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> None:
        if not target.subresource and request.method != "POST":
            raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)

    def _renderer(self, request: ApiRequest, kind: Kind) -> Renderer:
        form = bodies.form_of(request.headers.get("accept", ""))
        include = request.query.get("includeObject", "")
        return Renderer(kind, form, include=include, now=self._now)

    def _selection(self, request: ApiRequest, target: Target, kind: Kind) -> Selection:
        return selection_of(request.query, kind=kind, name=target.name)

    def _read(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> Answer | WatchAnswer:
        renderer = self._renderer(request, kind)
        if target.watch or (request.flag("watch") and not target.name):
            return self._watch(request, target, kind, renderer)
        if target.name:
            asked = number_of(request.query.get("resourceVersion", ""))
            if asked > self.store.revision:
                raise too_large_version(asked, self.store.revision)
            row = self.registry.row(kind, target.namespace, target.name)
            renderer.fits(many=False)
            return Answer(
                content_type=renderer.form.media, body=renderer.one(row.value)
            )
        selection = self._selection(request, target, kind)
        asked_list = list_request(request, current=self.store.revision)
        page = list_page(
            self.store,
            kind.within(target.namespace),
            asked_list,
            selection.matcher(),
        )
        renderer.fits(many=True)
        pieces = renderer.many(page.values, page.metadata())
        if renderer.form.media != JSON:
            whole = msgspec.json.decode(b"".join(pieces))
            body = bodies.encode(whole, renderer.form.media)
            return Answer(content_type=renderer.form.media, body=body)
        return Answer(body=pieces)

    def _watch(
        self, request: ApiRequest, target: Target, kind: Kind, renderer: Renderer
    ) -> WatchAnswer:
        version = request.query.get("resourceVersion", "")
        if renderer.form.media != JSON:
            raise status.not_acceptable(bodies.WATCHED)
        initial = wants_initial(request)
        since = number_of(version)
        current = self.store.revision
        if initial and since > current:
            raise too_large_version(since, current)
        bookmarks = request.flag("allowWatchBookmarks")
        seconds = request.number("timeoutSeconds")
        if not seconds:
            seconds_left = self._random.uniform(*WATCH_SECONDS)
        else:
            seconds_left = float(seconds)
        watcher = Watcher(
            self._hub,
            View(
                prefix=kind.within(target.namespace),
                matches=self._selection(request, target, kind).matcher(),
                render=renderer.event,
                form=renderer.shared,
                bookmark=renderer.bookmark,
                failure=failure_line,
            ),
            since=current if initial or not since else since,
            initial=initial,
            initial_end=initial and bookmarks,
            bookmarks=bookmarks,
            timeout=seconds_left,
        )
        return WatchAnswer(watcher=watcher)

    def write_of(self, request: ApiRequest, target: Target, kind: Kind) -> Write:
        """How a request wants to write."""
        dry_run = request.query.get("dryRun", "")
        if dry_run not in ("", "All"):
            raise status.invalid_object(
                status.GroupResource("meta.k8s.io", "CreateOptions"),
                "",
                [status.not_supported("dryRun", [dry_run], ("All",))],
            )
        validation = request.query.get("fieldValidation", "") or "Warn"
        if validation not in ("Strict", "Warn", "Ignore"):
            raise status.invalid_object(
                status.GroupResource("meta.k8s.io", "CreateOptions"),
                "",
                [
                    status.not_supported(
                        "fieldValidation", validation, ("", "Ignore", "Strict", "Warn")
                    )
                ],
            )
        return Write(
            kind=kind,
            namespace=target.namespace,
            name=target.name,
            subresource=target.subresource,
            manager=_manager(request),
            dry_run=bool(dry_run),
            validation=validation,
            force=request.flag("force"),
        )

    def _write(self, request: ApiRequest, target: Target, kind: Kind) -> Answer:
        renderer = self._renderer(request, kind)
        write = self.write_of(request, target, kind)
        content_type = request.headers.get("content-type", JSON)
        if request.method == "PATCH":
            outcome = self.registry.patch(write, request.body, content_type)
        else:
            obj = bodies.decode(request.body, content_type)
            verb = self.registry.create if request.method == "POST" else None
            outcome = (verb or self.registry.update)(write, obj)
        return written(renderer, outcome)

    def _delete(self, request: ApiRequest, target: Target, kind: Kind) -> Answer:
        renderer = self._renderer(request, kind)
        content_type = request.headers.get("content-type", JSON)
        body = bodies.decode(request.body, content_type) if request.body else None
        options = delete_options(request, body)
        if target.name:
            outcome = self.registry.delete(kind, target.namespace, target.name, options)
            return written(renderer, outcome)
        selection = self._selection(request, target, kind)
        page = list_page(
            self.store,
            kind.within(target.namespace),
            list_request(request, current=self.store.revision),
            selection.matcher(),
        )
        values = list(page.values)
        for value in values:
            meta = kind.decode(value)["metadata"]
            self.registry.delete(kind, meta.get("namespace", ""), meta["name"], options)
        pieces = renderer.many(values, page.metadata())
        return Answer(body=b"".join(pieces))

    def _subresource(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> Answer | WatchAnswer:
        renderer = self._renderer(request, kind)
        write = self.write_of(request, target, kind)
        if target.subresource:
            outcome = self._subresources.handle(request, target, write)
        elif kind.kind == "Binding":
            outcome = self._subresources.bind(request, target, write)
        else:
            outcome = self._reviews.answer(request, target, kind)
        return written(renderer, outcome)


def written(renderer: Renderer, outcome: Outcome) -> Answer:
    """The answer to a write: the object, 201 if it is new, and warnings."""
    if outcome.text is not None:
        return Answer(content_type=PLAIN, body=outcome.text)
    if outcome.obj.get("kind") == renderer.kind.kind:
        body = renderer.plain(outcome.obj)
    else:
        body = bodies.encode(outcome.obj, renderer.form.media)
    warnings = tuple(_warning(each) for each in outcome.warnings)
    return Answer(
        status=201 if outcome.created else 200,
        content_type=renderer.form.media,
        headers=warnings,
        body=body,
    )


def _warning(text: str) -> tuple[str, str]:
    return ("Warning", f"299 - {status.quoted(text)}")


def _manager(request: ApiRequest) -> str:
    """Who a write is by: the named manager, else the client program."""
    named = request.query.get("fieldManager", "")
    if named:
        return named
    if request.method == "PATCH" and "apply-patch" in request.headers.get(
        "content-type", ""
    ):
        return ""
    agent = request.headers.get("user-agent", "")
    return agent.split("/")[0][:MAX_MANAGER] or "unknown"
