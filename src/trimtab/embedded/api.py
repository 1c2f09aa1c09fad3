"""The API: a request comes in, an answer goes out, whatever carried them.

HTTP and the in-process transport both end here. ``handle`` is synchronous and never
raises for something that a client did; ``work`` does what follows from writes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from datetime import datetime
from random import Random
from typing import Any

import msgspec

from trimtab.embedded import bodies, reading, status
from trimtab.embedded.admission import Admission
from trimtab.embedded.allocation import Allocation
from trimtab.embedded.answers import Answer as Answer
from trimtab.embedded.answers import WatchAnswer as WatchAnswer
from trimtab.embedded.answers import telling, warned, written
from trimtab.embedded.authentication import StaticToken, StaticTokens
from trimtab.embedded.bodies import JSON
from trimtab.embedded.bootstrap import furnish, install, recorded
from trimtab.embedded.calls import Calls, Exchange, Pending
from trimtab.embedded.catalog import Catalog
from trimtab.embedded.chain import Chain, Plugin
from trimtab.embedded.commits import Commits
from trimtab.embedded.controllers import Controllers
from trimtab.embedded.deletion import Deletion
from trimtab.embedded.documents import TEXT, Documents, headers_of
from trimtab.embedded.flows import API_VERSION
from trimtab.embedded.forms import Renderer
from trimtab.embedded.guards import Guards
from trimtab.embedded.kinds import Kind
from trimtab.embedded.lifecycle import Lifecycle
from trimtab.embedded.messages import Messages
from trimtab.embedded.metadata import Stamps
from trimtab.embedded.podsecurity.plugin import PodSecurity
from trimtab.embedded.policies.plugins import policies
from trimtab.embedded.publishing import Publishing
from trimtab.embedded.quota import Quotas
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.rbac.impersonation import Impersonation
from trimtab.embedded.reads import Reads
from trimtab.embedded.registry import Registry
from trimtab.embedded.removals import Removals
from trimtab.embedded.requests import ApiRequest, Target, target_of
from trimtab.embedded.reviews import Reviews
from trimtab.embedded.routes import check_document, is_tabled, not_found, routed
from trimtab.embedded.signers import Issue
from trimtab.embedded.status import ApiProblem, NoSuchPath
from trimtab.embedded.store import Store
from trimtab.embedded.streams import Streams
from trimtab.embedded.subresources import Subresources
from trimtab.embedded.tokens import Tokens
from trimtab.embedded.watching import Hub
from trimtab.embedded.webhooks.conversion import Conversion
from trimtab.embedded.webhooks.plugin import Webhooks
from trimtab.embedded.webhooks.targets import Targets
from trimtab.embedded.writes import Outcome, Write, write_of

MAINTENANCE = 10.0


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
        issue: Issue | None = None,
    ) -> None:
        self.store = store
        self.settings = settings or Settings()
        self.deprecated: set[tuple[str, str, str, str]] = set()
        """What was asked for and will go some day: group, version, plural, below."""
        self.calls = Calls(random)
        targets = Targets(store)
        self.catalog = Catalog(
            lambda crd: Conversion(crd, calls=self.calls, targets=targets)
        )
        self._now = now
        # Ages are measured on a clock that never jumps, where there is one.
        self._clock = clock or (lambda: now().timestamp())
        self._hub = Hub(store)
        self._messages = Messages()
        self.allocation = Allocation(store, self.settings.service_network)
        self._authorizer = Authorizer(store)
        self._security = PodSecurity(store)
        self._quotas = Quotas(store, catalog=self.catalog)
        self.registry = self._make_registry(random)
        self._lifecycle = self._make_lifecycle()
        self._controllers = self._make_controllers(issue)
        self._removals = Removals(self.registry, calls=self.calls)
        self._reads = Reads(
            self.registry, streams=Streams(self._hub, calls=self.calls, random=random)
        )
        self._subresources = Subresources(
            self.registry, self.catalog, tokens=tokens, now=now
        )
        self._impersonation = Impersonation(self._authorizer)
        self._guards = self._make_guards()
        self._reviews = Reviews(
            tokens,
            registry=self.registry,
            static=StaticTokens(static),
            authorizer=self._authorizer,
            now=now,
        )
        self._documents = Documents(
            self.catalog, address=self.settings.address, tokens=tokens
        )
        self._publishing = Publishing(self.catalog, now=now)
        self._begin()

    def _make_registry(self, random: Random) -> Registry:
        stamps = Stamps(now=self._now, random=random, calls=self.calls)
        commits = Commits(
            self.store,
            stamps=stamps,
            admission=Admission(self.store, name=stamps.name),
            deletion=Deletion(),
            allocate=self._allocate,
            chain=Chain(self._plugins()),
        )
        return Registry(commits)

    def _make_lifecycle(self) -> Lifecycle:
        return Lifecycle(
            self.store,
            catalog=self.catalog,
            registry=self.registry,
            calls=self.calls,
            now=lambda: self._now().timestamp(),
            furnish=lambda name: furnish(self, name),
        )

    def _make_controllers(self, issue: Issue | None) -> Controllers:
        return Controllers(
            self.store,
            catalog=self.catalog,
            registry=self.registry,
            authorizer=self._authorizer,
            quotas=self._quotas,
            flows=recorded(API_VERSION),
            furnish=lambda name: furnish(self, name),
            issue=issue,
            now=self._now,
        )

    def _make_guards(self) -> Guards:
        return Guards(
            self.store,
            self._authorizer,
            catalog=self.catalog,
            security=self._security,
            now=self._now,
        )

    def _begin(self) -> None:
        """Find what there is to do, put in its place what is always there."""
        self._lifecycle.start()
        self._controllers.start()
        install(self)
        while self.work():
            pass

    def _plugins(self) -> list[Plugin]:
        """Who is asked about a write, in this order."""
        return [
            self._security,
            *policies(self.store, self.catalog, self._authorizer),
            Webhooks(
                self.store,
                calls=self.calls,
                authorizer=self._authorizer,
                versions=self.catalog.versions,
                convert=lambda obj, kind: kind.converted(obj),
            ),
            self._quotas,
        ]

    def _allocate(self, what: str, wanted: Any) -> Any:
        """The same in each run of a request, unless somebody else has it by now."""
        if wanted:
            return self.allocation.allocate(what, wanted)
        drawn = self.calls.draw(what, lambda: self.allocation.allocate(what, None))
        if self.allocation.is_free(drawn):
            return drawn
        return self.calls.redraw(what, self.allocation.allocate(what, None))

    def work(self) -> bool:
        """Do some of what follows from writes; True if there is more to do."""
        revision = self.catalog.revision
        more = self._controllers.step()
        more = self._lifecycle.step() or more
        # Kinds that came or went are something to follow too.
        return more or self.catalog.revision != revision

    def maintain(self) -> float:
        """Do what is due with time; the seconds until it is due again."""
        self._controllers.maintain()
        while self.work():
            pass
        if self.store.maintain(self._clock()):
            return 0.0
        return min(MAINTENANCE, self.due_in())

    def due_in(self) -> float:
        """The seconds until something is due by itself."""
        due = self._lifecycle.due_in()
        return MAINTENANCE if due is None else due

    def take_pending(self) -> Collection[Pending]:
        """What others have to be asked about what the server does by itself."""
        return self._lifecycle.take_pending()

    def forget(self) -> None:
        """Forget all history at once: what is older than now has expired."""
        self.store.compact(self.store.revision)
        self._hub.forget()

    def handle(self, request: ApiRequest) -> Answer | WatchAnswer:
        """Answer one request.

        Errors: ``Pending`` if others have to be asked first; nothing has happened yet.
        """
        return self._run(request, Exchange())

    def _run(self, request: ApiRequest, exchange: Exchange) -> Answer | WatchAnswer:
        self.calls.begin(exchange)
        try:
            return self._route(self.admit(request))
        except ApiProblem as problem:
            return self.refusal(request, problem)
        except Pending as pending:
            pending.again = lambda: self._run(request, exchange)
            raise
        finally:
            self.calls.end()

    def admit(self, request: ApiRequest) -> ApiRequest:
        """The request by whom it is really made, if they may make it.

        Errors: ``ApiProblem`` if they may not, or may not act as somebody else.
        """
        try:
            if request.impersonation:
                request = self._impersonation.become(request)
            self._authorizer.check(request)
        except ApiProblem as problem:
            problem.unadmitted = True
            raise
        return request

    def refusal(self, request: ApiRequest, problem: ApiProblem) -> Answer:
        """A problem as an answer, in a form that the client reads."""
        if isinstance(problem, NoSuchPath):
            return Answer(
                status=404,
                content_type=TEXT,
                body=problem.text,
                headers=headers_of(TEXT, request.path),
            )
        media = bodies.media_of(request.headers.get("accept", ""))
        headers = warned(problem.warnings)
        if problem.unadmitted:
            headers += (("X-Content-Type-Options", "nosniff"),)
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
        request, target = routed(request, target, kind)
        if not kind.warning:
            return self._object(request, target, kind)
        self.deprecated.add((kind.group, kind.version, kind.plural, target.subresource))
        try:
            answer = self._object(request, target, kind)
        except ApiProblem as problem:
            problem.warnings.insert(0, kind.warning)
            raise
        if isinstance(answer, Answer):
            answer.headers = (*warned([kind.warning]), *answer.headers)
        return answer

    def _unknown(self, target: Target) -> ApiProblem:
        """A resource that is not served: of a group that is there, or of none."""
        if is_tabled(self.catalog, target.group):
            return not_found()
        return status.no_such_path()

    def _object(
        self, request: ApiRequest, target: Target, kind: Kind
    ) -> Answer | WatchAnswer:
        if target.subresource or kind.resource.verbs == ("create",):
            return self._subresource(request, target, kind)
        if request.method == "GET":
            renderer = self._renderer(request, kind, many=not target.name)
            return self._reads.answer(request, target, renderer)
        if request.method == "DELETE":
            renderer = self._renderer(request, kind)
            return self._removals.answer(request, target, renderer)
        return self._write(request, target, kind)

    def _document(self, request: ApiRequest) -> Answer:
        if request.path.startswith("/openapi/"):
            published = self._publishing.answer(request)
            if published is None:
                raise status.no_such_path()
            return published
        found = self._documents.find(request)
        check_document(request, self.catalog, found=found is not None)
        assert found is not None, "it was found"
        content_type, body = found
        return Answer(
            content_type=content_type,
            body=body,
            headers=headers_of(content_type, request.path),
        )

    def _renderer(
        self, request: ApiRequest, kind: Kind, *, many: bool = False
    ) -> Renderer:
        accept = request.headers.get("accept", "")
        form = bodies.form_of(accept, custom=kind.custom is not None, many=many)
        include = request.query.get("includeObject", "")
        return Renderer(
            kind, form, include=include, now=self._now, messages=self._messages
        )

    def _write(self, request: ApiRequest, target: Target, kind: Kind) -> Answer:
        renderer = self._renderer(request, kind)
        write = self._write_of(request, target, kind)
        with telling(write):
            outcome = self._outcome(request, write)
        return written(renderer, outcome, write.warnings)

    def _write_of(self, request: ApiRequest, target: Target, kind: Kind) -> Write:
        write = write_of(request, target, kind)
        guard = self._guards.of(request, write)
        return write if guard is None else msgspec.structs.replace(write, guard=guard)

    def _outcome(self, request: ApiRequest, write: Write) -> Outcome:
        content_type = request.headers.get("content-type", JSON)
        if request.method == "PATCH":
            return self.registry.patch(write, request.body, content_type)
        obj = reading.read(write, request.body, content_type)
        if request.method == "POST":
            return self.registry.create(write, obj)
        return self.registry.update(write, obj)

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
