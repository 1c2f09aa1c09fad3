"""The API: a request comes in, an answer goes out, whatever carried them.

HTTP and the in-process transport both end here. ``handle`` is synchronous and never
raises for something that a client did; ``work`` does what follows from writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from random import Random

import msgspec

from trimtab.embedded import bodies, reading, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.allocation import Allocation
from trimtab.embedded.answers import Answer as Answer
from trimtab.embedded.answers import WatchAnswer as WatchAnswer
from trimtab.embedded.answers import telling, warned, written
from trimtab.embedded.authentication import StaticToken, StaticTokens
from trimtab.embedded.bodies import JSON
from trimtab.embedded.bootstrap import furnish, install
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.deletion import Deletion, delete_options
from trimtab.embedded.documents import TEXT, Documents
from trimtab.embedded.forms import Renderer
from trimtab.embedded.kinds import Kind
from trimtab.embedded.lifecycle import Lifecycle
from trimtab.embedded.lists import (
    list_page,
    list_request,
    number_of,
    too_large_version,
    wants_initial,
)
from trimtab.embedded.messages import Messages
from trimtab.embedded.metadata import Stamps
from trimtab.embedded.rbac.aggregation import Aggregation
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.rbac.escalation import Escalation
from trimtab.embedded.rbac.impersonation import Impersonation
from trimtab.embedded.registry import Registry
from trimtab.embedded.requests import ApiRequest, Target, target_of
from trimtab.embedded.reviews import Reviews
from trimtab.embedded.selection import Selection, selection_of
from trimtab.embedded.status import ApiProblem, NoSuchPath
from trimtab.embedded.store import Store
from trimtab.embedded.subresources import Subresources
from trimtab.embedded.suspended import SuspendedJobs
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.watching import Hub, View, Watcher
from trimtab.embedded.writes import Outcome, Write, write_of

WATCH_SECONDS = (1800.0, 3600.0)
MAINTENANCE = 10.0
NOT_ALLOWED = "the server does not allow this method on the requested resource"
VERBS = {"GET": "get", "POST": "create", "PUT": "update", "PATCH": "patch"}


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
        static: Iterable[StaticToken] = (),
    ) -> None:
        self.store = store
        self.settings = settings or Settings()
        self.catalog = Catalog()
        self._now = now
        # Ages are measured on a clock that never jumps, where there is one.
        self._clock = clock or (lambda: now().timestamp())
        self._random = random
        self._hub = Hub(store)
        self._messages = Messages()
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
        self._suspended = SuspendedJobs(
            store, catalog=self.catalog, registry=self.registry, now=now
        )
        self._subresources = Subresources(
            self.registry, self.catalog, tokens=tokens, now=now
        )
        self._authorizer = Authorizer(store)
        self._impersonation = Impersonation(self._authorizer)
        self._escalation = Escalation(self._authorizer)
        self._aggregation = Aggregation(
            store, catalog=self.catalog, registry=self.registry
        )
        self._reviews = Reviews(
            tokens,
            static=StaticTokens(static),
            authorizer=self._authorizer,
            now=now,
        )
        self._documents = Documents(self.catalog, address=self.settings.address)
        self._lifecycle.start()
        self._suspended.start()
        self._aggregation.start()
        install(self)
        while self.work():
            pass

    def work(self) -> bool:
        """Do some of what follows from writes; True if there is more to do."""
        more = self._suspended.step()
        more = self._aggregation.step() or more
        return self._lifecycle.step() or more

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
            return self._route(self.admit(request))
        except ApiProblem as problem:
            return self.refusal(request, problem)

    def admit(self, request: ApiRequest) -> ApiRequest:
        """The request by whom it is really made, if they may make it.

        Errors: ``ApiProblem`` if they may not, or may not act as somebody else.
        """
        if request.impersonation:
            request = self._impersonation.become(request)
        self._authorizer.check(request)
        return request

    def refusal(self, request: ApiRequest, problem: ApiProblem) -> Answer:
        """A problem as an answer, in a form that the client reads."""
        if isinstance(problem, NoSuchPath):
            return Answer(status=404, content_type=TEXT, body=problem.text)
        media = bodies.media_of(request.headers.get("accept", ""))
        headers = warned(problem.warnings)
        if problem.retry_after:
            headers += (("Retry-After", str(problem.retry_after)),)
        return Answer(
            status=problem.code,
            content_type=media,
            headers=headers,
            body=bodies.encode(problem.status, media),
        )

    def _route(self, request: ApiRequest) -> Answer | WatchAnswer:
        target = target_of(request.path)
        if target is None:
            return self._document(request)
        kind = self.catalog.find(target.group, target.version, target.resource)
        if kind is None:
            raise self._unknown(target)
        if kind.custom is None or not kind.custom.warning:
            return self._object(request, target, kind)
        try:
            answer = self._object(request, target, kind)
        except ApiProblem as problem:
            problem.warnings.insert(0, kind.custom.warning)
            raise
        if isinstance(answer, Answer):
            answer.headers = (*warned([kind.custom.warning]), *answer.headers)
        return answer

    def _unknown(self, target: Target) -> ApiProblem:
        """A resource that is not served: of a group that is there, or of none."""
        if any(each.group == target.group for each in self.catalog.resources()):
            return bodies.Unrouted(404, "NotFound", str(status.no_such_path()))
        return status.no_such_path()

    def _object(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> Answer | WatchAnswer:
        if kind.namespaced and not target.namespace:
            self._check_everywhere(request, target, kind)
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

    def _check_everywhere(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> None:
        """Objects of all namespaces together can be listed and watched, no more."""
        if request.method == "GET" and not target.name:
            return
        if kind.custom is not None:
            raise status.no_such_path()
        if target.name:
            raise bodies.Unrouted(404, "NotFound", str(status.no_such_path()))
        raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)

    def _check_verb(self, request: ApiRequest, target: Target, kind: Kind) -> None:
        verb = VERBS.get(request.method, "delete")
        if not target.name and request.method == "DELETE":
            verb = "deletecollection"
        if not target.name and request.method == "GET":
            verb = "list"
        # A custom kind that is going shows fewer verbs, and yet takes all of them.
        if verb not in kind.resource.verbs and kind.custom is None:
            raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)
        if bool(target.name) != (verb in ("get", "update", "patch", "delete")):
            raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)

    def _check_create_only(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> None:
        if not target.subresource and request.method != "POST":
            raise bodies.Unrouted(405, "MethodNotAllowed", NOT_ALLOWED)

    def _renderer(self, request: ApiRequest, kind: Kind) -> Renderer:
        accept = request.headers.get("accept", "")
        form = bodies.form_of(accept, custom=kind.custom is not None)
        include = request.query.get("includeObject", "")
        return Renderer(
            kind, form, include=include, now=self._now, messages=self._messages
        )

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
        return Answer(content_type=renderer.form.media, body=pieces)

    def _watch(
        self, request: ApiRequest, target: Target, kind: Kind, renderer: Renderer
    ) -> WatchAnswer:
        version = request.query.get("resourceVersion", "")
        if renderer.form.media == bodies.YAML:
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
                failure=renderer.failure,
            ),
            since=current if initial or not since else since,
            initial=initial,
            initial_end=initial and bookmarks,
            bookmarks=bookmarks,
            timeout=seconds_left,
        )
        return WatchAnswer(watcher=watcher, content_type=renderer.stream_media)

    def _write(self, request: ApiRequest, target: Target, kind: Kind) -> Answer:
        renderer = self._renderer(request, kind)
        write = self._write_of(request, target, kind)
        with telling(write):
            outcome = self._outcome(request, write)
        return written(renderer, outcome, write.warnings)

    def _write_of(self, request: ApiRequest, target: Target, kind: Kind) -> Write:
        write = write_of(request, target, kind)
        guard = self._escalation.guard(request, kind, target.namespace)
        return write if guard is None else msgspec.structs.replace(write, guard=guard)

    def _outcome(self, request: ApiRequest, write: Write) -> Outcome:
        content_type = request.headers.get("content-type", JSON)
        if request.method == "PATCH":
            return self.registry.patch(write, request.body, content_type)
        obj = reading.read(write, request.body, content_type)
        if request.method == "POST":
            return self.registry.create(write, obj)
        return self.registry.update(write, obj)

    def _delete(self, request: ApiRequest, target: Target, kind: Kind) -> Answer:
        renderer = self._renderer(request, kind)
        content_type = request.headers.get("content-type", JSON)
        body = bodies.decode(request.body, content_type) if request.body else {}
        if body.get("kind", "DeleteOptions") != "DeleteOptions":
            raise status.bad_request(
                f'no kind "{body["kind"]}" is registered for version '
                f'"{body.get("apiVersion", "")}" in scheme "pkg/runtime/scheme.go:111"'
            )
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
        return Answer(content_type=renderer.form.media, body=b"".join(pieces))

    def _subresource(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> Answer | WatchAnswer:
        renderer = self._renderer(request, kind)
        write = self._write_of(request, target, kind)
        with telling(write):
            if target.subresource:
                outcome = self._subresources.handle(request, target, write)
            elif kind.kind == "Binding":
                outcome = self._subresources.bind(request, target, write)
            else:
                outcome = self._reviews.answer(request, write)
        return written(renderer, outcome, write.warnings)
