"""The webhook plugin: asks the webhooks that a request concerns, and minds them.

Those that may change an object are asked one after the other; those that may only
refuse it, all at once. Each is asked in the version that its rules name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from trimtab.embedded import jsontext, status
from trimtab.embedded.calls import Answered, Call, Calls
from trimtab.embedded.chain import Attributes
from trimtab.embedded.conform import Mistyped
from trimtab.embedded.kinds import Kind, Plain
from trimtab.embedded.patches import PatchError, json_kind, json_patch
from trimtab.embedded.policies.conditions import Undecided
from trimtab.embedded.policies.matching import Matcher
from trimtab.embedded.policies.subject import Subject
from trimtab.embedded.rbac.authorizer import Authorizer
from trimtab.embedded.status import ApiProblem, quoted
from trimtab.embedded.store import Store
from trimtab.embedded.webhooks import review
from trimtab.embedded.webhooks.answers import Unusable
from trimtab.embedded.webhooks.hooks import Hook, Hooks
from trimtab.embedded.webhooks.targets import Targets, Unresolved

EXEMPT = frozenset(
    {
        "ValidatingWebhookConfiguration",
        "MutatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "MutatingAdmissionPolicyBinding",
    }
)
MEMORY = "webhooks"
UNTRUSTED = "unable to load root certificates: "


def is_exempt(attributes: Attributes) -> bool:
    """Whether nobody outside is asked: else a webhook could lock everybody out."""
    kind = attributes.kind
    return kind.group == "admissionregistration.k8s.io" and kind.kind in EXEMPT


class _Rounds:
    """Who was asked so far, and who has to be asked again because others wrote."""

    def __init__(self) -> None:
        self.asked: set[str] = set()
        """Those who were, and want to know if the object changes after them."""
        self.due: set[str] = set()
        self.last: Plain | None = None
        """The object as the last webhook left it."""

    def changed(self) -> None:
        """The object is another: whoever saw it before has to see it again."""
        self.due |= self.asked
        self.asked = set()


class Webhooks:
    """Asks the webhooks of a store's configurations.

    ``convert`` makes an object of one version one of another.
    """

    def __init__(
        self,
        store: Store,
        *,
        calls: Calls,
        authorizer: Authorizer,
        versions: Callable[[Kind], Iterable[Kind]],
        convert: Callable[[Plain, Kind], Plain],
    ) -> None:
        self._hooks = Hooks(store)
        self._calls = calls
        self._authorizer = authorizer
        self._targets = Targets(store)
        self._matcher = Matcher(store, versions=versions)
        self._convert = convert

    @property
    def active(self) -> bool:
        return bool(self._hooks.mutating or self._hooks.validating)

    def mutate(self, attributes: Attributes) -> None:
        """Have the object changed, by one webhook after the other."""
        if not self._hooks.mutating or is_exempt(attributes):
            return
        rounds: _Rounds = attributes.memory.setdefault(MEMORY, _Rounds())
        if attributes.again and rounds.last != attributes.obj:
            rounds.changed()
        for hook in self._hooks.mutating:
            kind = self._concerned(hook, attributes)
            if kind is None or (attributes.again and hook.uid not in rounds.due):
                continue
            if self._change(hook, kind, attributes):
                rounds.changed()
                attributes.reinvoke = True
            if hook.again:
                rounds.asked.add(hook.uid)
        rounds.last = _copied(attributes.obj)

    def validate(self, attributes: Attributes) -> None:
        """Have the object looked at, by all webhooks at once."""
        if not self._hooks.validating or is_exempt(attributes):
            return
        found: list[tuple[Hook, Call | ApiProblem | Unusable]] = []
        for hook in self._hooks.validating:
            kind = self._concerned(hook, attributes)
            if kind is not None:
                found.append((hook, self._prepared(hook, kind, attributes)))
        calls = [each for _, each in found if isinstance(each, Call)]
        known = dict(zip(calls, self._calls.ask(*calls), strict=True)) if calls else {}
        problems = []
        for hook, each in found:
            try:
                if isinstance(each, Exception):
                    raise each
                self._heard(hook, known[each], attributes, mutating=False)
            except Unusable as error:
                if hook.fails:
                    problems.append(failed(hook, error))
            except ApiProblem as problem:
                problems.append(problem)
        if problems:
            raise problems[0]

    def _concerned(self, hook: Hook, attributes: Attributes) -> Kind | None:
        """The kind in whose version a webhook is asked; None if it is not asked."""
        if not hook.match.rules:
            return None
        kind = self._matcher.kind(hook.match, attributes)
        if kind is None or hook.conditions is None:
            return kind
        subject = Subject(attributes, kind=kind, authorizer=self._authorizer)
        try:
            return kind if hook.conditions.hold(subject.values()) else None
        except Undecided as error:
            if not hook.fails:
                return None
            name = attributes.name
            raise status.forbidden(attributes.kind.about, name, str(error)) from None

    def _prepared(
        self, hook: Hook, kind: Kind, attributes: Attributes
    ) -> Call | ApiProblem | Unusable:
        """A call to a webhook, or why it cannot be made."""
        try:
            return self._call(hook, kind, attributes)
        except (ApiProblem, Unusable) as error:
            return error

    def _call(self, hook: Hook, kind: Kind, attributes: Attributes) -> Call:
        if attributes.dry_run and hook.effects:
            raise review.dry_run_refused(hook.name)
        version = review.version_of(hook.reviews)
        if not version:
            raise Unusable(f"could not create admission objects: {review.UNKNOWN}")
        if hook.client.problem:
            raise Unusable(
                f"could not get REST client: {UNTRUSTED}{hook.client.problem}"
            )
        head, tail = review.parts(
            attributes,
            kind=kind,
            version=version,
            obj=self._in_version(attributes.obj, kind, attributes),
            old=self._in_version(attributes.old, kind, attributes),
        )
        try:
            return self._targets.call(
                hook.client, seconds=hook.seconds, head=head, tail=tail
            )
        except Unresolved as error:
            raise Unusable(f"failed to call webhook: {error}") from None

    def _in_version(
        self, obj: Plain | None, kind: Kind, attributes: Attributes
    ) -> Plain | None:
        if obj is None or kind is attributes.kind or attributes.subresource == "scale":
            return obj
        return self._convert(obj, kind)

    def _change(self, hook: Hook, kind: Kind, attributes: Attributes) -> bool:
        """Ask one webhook; whether it changed the object."""
        try:
            call = self._call(hook, kind, attributes)
            [answered] = self._calls.ask(call)
            patch = self._heard(hook, answered, attributes, mutating=True)
        except Unusable as error:
            if hook.fails:
                raise failed(hook, error) from None
            return False
        if not patch:
            return False
        obj = attributes.obj
        if obj is None:
            raise status.internal(
                f"admission webhook {quoted(hook.name)} attempted to modify the "
                "object, which is not supported for this operation"
            )
        before = self._in_version(obj, kind, attributes)
        assert before is not None, "there is an object"
        after = _patched(before, patch)
        changed = after != before
        _conform(kind, after, attributes)
        if kind is not attributes.kind:
            after = self._convert(after, attributes.kind)
        attributes.obj = after
        return changed

    def _heard(
        self,
        hook: Hook,
        answered: Answered,
        attributes: Attributes,
        *,
        mutating: bool,
    ) -> list[Any]:
        """Mind what a webhook said; the operations of its patch."""
        version = review.version_of(hook.reviews)
        verdict = review.verdict(answered, version=version, mutating=mutating)
        attributes.warnings.extend(verdict.warnings)
        if not verdict.allowed:
            raise review.Denied(hook.name, verdict.result)
        if not verdict.patch:
            return []
        if verdict.patch_type != review.JSON_PATCH:
            raise Unusable(f"unsupported patch type {quoted(verdict.patch_type)}")
        try:
            patch = jsontext.decode(verdict.patch)
        except jsontext.Malformed as error:
            raise Unusable(
                f"received undecodable patch in webhook response: {error}"
            ) from None
        if not isinstance(patch, list | None):
            raise Unusable(
                "received undecodable patch in webhook response: json: cannot "
                f"unmarshal {json_kind(patch)} into Go value of type jsonpatch.Patch"
            )
        return patch or []


def failed(hook: Hook, error: Unusable) -> ApiProblem:
    """That a webhook which must be asked could not be."""
    return status.internal(f"failed calling webhook {quoted(hook.name)}: {error}")


def _copied(obj: Plain | None) -> Plain | None:
    return None if obj is None else msgspec.json.decode(msgspec.json.encode(obj))


def _patched(before: Plain, patch: list[Any]) -> Plain:
    copy = _copied(before)
    assert copy is not None, "there is an object"
    try:
        after = json_patch(copy, patch)
    except PatchError as error:
        raise status.internal(error.detail) from None
    if not isinstance(after, dict):
        raise status.internal("the patch does not leave an object")
    return after


def _conform(kind: Kind, obj: Plain, attributes: Attributes) -> None:
    """Make what a patch left an object of its kind again, with its defaults."""
    assert attributes.obj is not None, "it was patched"
    given, before = obj.get("kind"), attributes.obj.get("kind")
    if given != before:
        package = kind.group.partition(".")[0] or "core"
        what = f"({kind.version}.{given}) to ({package}.{before}): unknown conversion"
        raise ApiProblem(500, "", f"converting {what}")
    if given != kind.kind:  # a scale, an eviction: whoever reads it checks
        return
    text = msgspec.json.encode(obj)
    try:
        kind.conform(obj, lambda: msgspec.json.decode(text))
    except Mistyped as error:
        raise status.internal(str(error)) from None
    kind.default(obj)
