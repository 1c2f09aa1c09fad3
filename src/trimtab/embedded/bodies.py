"""Bodies: reading what clients send, and answering in the form that they accept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Any

import msgspec

from trimtab.embedded import duplicates, jsontext, status
from trimtab.embedded.patches import json_kind
from trimtab.embedded.status import ApiProblem

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
TYPES = (JSON, YAML, PROTOBUF)
SUMMARY = 30
"""How much of a body a refusal repeats."""
UNKNOWN = "couldn't get version/kind; json parse error: "
WATCHED = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")

_EXPONENT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)[eE][-+]?[0-9]+$")


class Unrouted(ApiProblem):
    """What the real server refuses before it looks for an object: empty details."""

    @property
    def status(self) -> dict[str, Any]:
        return {**super().status, "details": {}}


class Form(msgspec.Struct, frozen=True):
    """How an answer is wanted: encoding, and whether whole, as a table or metadata."""

    media: str = JSON
    shape: str = ""
    """Empty (the object itself), ``Table``, ``PartialObjectMetadata`` or
    ``PartialObjectMetadataList``."""
    version: str = "v1"
    """Of the group meta.k8s.io, for shapes."""


@lru_cache(maxsize=256)
def form_of(accept: str, *, custom: bool = False, many: bool = False) -> Form:
    """The best form that a client accepts and we have; 406 if there is none.

    Of custom kinds only the metadata has a form in protobuf. Only of built-in ones the
    path itself is chosen by what is accepted, that of a list also for watches.
    """
    if not accept:
        return Form()
    if not custom:
        check_route(accept, TYPES + WATCHED if many else TYPES)
    wanted = choices(accept)
    for choice in wanted:
        form = _form(choice)
        if form is not None and _is_written(form, custom=custom):
            return form
    raise status.not_acceptable(TYPES)


def check_route(accept: str, types: Sequence[str] = TYPES) -> None:
    """That a client names one of the types outright, or all of them."""
    named = {choice.split(";")[0].strip() for choice in accept.split(",")}
    if accept and named.isdisjoint({"*/*", *types}):
        text = f"406: Not Acceptable\n\nAvailable representations: {', '.join(types)}"
        raise Unrouted(406, "NotAcceptable", text)


def media_of(accept: str) -> str:
    """The encoding of what is no object, such as a refusal: there is always one."""
    forms = (_form(choice) for choice in choices(accept))
    return next((each.media for each in forms if each and not each.shape), JSON)


def choices(accept: str) -> list[str]:
    """What a client accepts, what it likes best first."""
    return sorted(accept.split(","), key=_quality, reverse=True)


def _is_written(form: Form, *, custom: bool) -> bool:
    if form.media != PROTOBUF:
        return True
    return form.shape != "Table" and bool(form.shape or not custom)


def _quality(choice: str) -> float:
    """How much a client likes a form; of those it likes alike the first one wins."""
    for part in choice.split(";")[1:]:
        name, _, value = part.strip().partition("=")
        if name == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0


def _form(choice: str) -> Form | None:
    media, *parameters = (part.strip() for part in choice.split(";"))
    facts = dict(each.split("=", 1) for each in parameters if "=" in each)
    if media in ("*/*", "application/*"):
        media = JSON
    if media not in TYPES or facts.get("stream", "watch") != "watch":
        return None
    shape = facts.get("as", "")
    if not shape:
        return Form(media)
    known = shape in ("Table", "PartialObjectMetadata", "PartialObjectMetadataList")
    if not known or facts.get("g") != "meta.k8s.io":
        return None
    if facts.get("v") not in ("v1", "v1beta1"):
        return None
    return Form(media, shape, facts["v"])


def encode(value: Any, media: str = JSON) -> bytes:
    """An answer's bytes."""
    if media == YAML:
        import yaml

        return yaml.dump(value, Dumper=_dumper(), default_flow_style=False).encode()
    if media == PROTOBUF:
        from trimtab.embedded.protobuf_encoding import encode as encode_protobuf

        return encode_protobuf(value.get("apiVersion", ""), value["kind"], value)
    return msgspec.json.encode(value) + b"\n"


def _dumper() -> Any:
    import yaml

    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class Unreadable(Exception):
    """A body that cannot be read, in the words of the decoder that gave up."""


class Parsed(msgspec.Struct, frozen=True):
    """The object in a body, and what a strict decoder would not have read."""

    obj: dict[str, Any]
    pairs: Any = None
    """The same with every pair that was written, if some keys were written twice."""
    lines: tuple[str, ...] = ()
    """The lines of YAML that set a key again."""


def parse(body: bytes, content_type: str) -> Parsed:
    """The object in a body; 415 for another type.

    Errors: :class:`Unreadable`.
    """
    media = media_type(content_type) or JSON
    if media == JSON:
        value = _json(body)
        pairs = duplicates.pairs_of(body, value)
        return Parsed(_object(value), pairs)
    if media in (YAML, "text/yaml", "application/x-yaml"):
        value, lines = read_yaml(body)
        return Parsed(_object(value), None, lines)
    if media == PROTOBUF:
        from trimtab.embedded.protobuf import decode as decode_protobuf

        return Parsed(_object(decode_protobuf(body)))
    raise status.unsupported_media_type(TYPES)


def media_type(content_type: str) -> str:
    """The type without its parameters, which must be such; else what nobody reads."""
    media, *parameters = content_type.split(";")
    if parameters and not parameters[-1].strip():
        parameters.pop()
    if any("=" not in each for each in parameters):
        return content_type
    return media.strip().lower()


def decode(body: bytes, content_type: str, *, kind: str = "") -> dict[str, Any]:
    """The object in a body, wished to be of some kind; 400 for what is no object."""
    try:
        return parse(body, content_type).obj
    except Unreadable as problem:
        raise unrecognized(str(problem), body, kind=kind) from None


def unrecognized(problem: str, body: bytes, *, kind: str = "") -> ApiProblem:
    """That a body does not even say what it is."""
    if not kind:
        return status.bad_request(problem)
    return status.bad_request(
        f"the object provided is unrecognized (must be of type {kind}): {problem} "
        f"({_summary(body)})"
    )


def _summary(body: bytes) -> str:
    """The beginning of a body, readable if it looks like JSON."""
    if not body:
        return "<empty>"
    start = body[:SUMMARY]
    text = start.decode(errors="replace") if body[:1] == b"{" else start.hex()
    return text if len(body) <= SUMMARY else f"{text} ..."


def _json(body: bytes) -> Any:
    try:
        return jsontext.decode(body)
    except jsontext.Malformed as problem:
        raise Unreadable(f"{UNKNOWN}{problem}") from None


def _object(value: Any) -> dict[str, Any]:
    """A value that can say what kind of object it is; null says nothing."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Unreadable(
            f"{UNKNOWN}json: cannot unmarshal {json_kind(value)} into Go value of type "
            'struct { APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    for key in ("apiVersion", "kind"):
        given = value.get(key)
        if given is not None and not isinstance(given, str):
            raise Unreadable(
                f"{UNKNOWN}json: cannot unmarshal {json_kind(given)} into Go struct "
                f"field .{key} of type string"
            )
    return value


def read_yaml(body: bytes) -> tuple[Any, tuple[str, ...]]:
    """The first document in a text, and the lines that set a key again.

    Errors: :class:`Unreadable`.
    """
    import yaml

    try:
        loader = _loader()(body)
        node = loader.get_node() if loader.check_node() else None
        if node is None:
            return None, ()
        return loader.construct_document(node), tuple(_repeated(node, set()))
    except (yaml.YAMLError, ValueError) as error:
        raise Unreadable(f"yaml: {_yaml_problem(error, body)}") from None


def _repeated(node: Any, known: set[int]) -> Iterator[str]:
    if id(node) in known:  # an alias of what was looked at already
        return
    known.add(id(node))
    if node.id == "sequence":
        for each in node.value:
            yield from _repeated(each, known)
    elif node.id == "mapping":
        seen = set()
        for key, value in node.value:
            yield from _repeated(value, known)
            if key.id == "scalar" and key.value in seen:
                line = value.start_mark.line + 1
                yield f"line {line}: key {status.quoted(key.value)} already set in map"
            seen.add(key.value if key.id == "scalar" else None)


def _yaml_problem(error: Exception, body: bytes) -> str:
    """What is wrong with a text; the lines are counted as Go's parser counts them."""
    from yaml.reader import ReaderError
    from yaml.scanner import ScannerError

    if isinstance(error, ReaderError):
        return str(error.reason)
    problem = str(getattr(error, "problem", None) or error)
    if problem == "found undefined alias":
        mark = getattr(error, "problem_mark", None)
        rest = body.decode().splitlines()[mark.line][mark.column + 1 :] if mark else ""
        return f"unknown anchor '{(rest.split() or [''])[0]}' referenced"
    marks = (getattr(error, name, None) for name in ("context_mark", "problem_mark"))
    line = next((mark.line for mark in marks if mark is not None and mark.line), 0)
    if not line:
        return problem
    return f"line {line + isinstance(error, ScannerError)}: {problem}"


@lru_cache(maxsize=1)
def _loader() -> Any:
    """Safe, and like JSON in what it makes: dates stay text."""
    import yaml

    base: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)

    class Loader(base):  # type: ignore[misc]
        pass

    Loader.yaml_implicit_resolvers = {
        letter: [
            (tag, regexp) for tag, regexp in found if not tag.endswith("timestamp")
        ]
        for letter, found in base.yaml_implicit_resolvers.items()
    }
    # YAML wants a point in a number with an exponent; Go does not, nor does JSON.
    Loader.add_implicit_resolver(
        "tag:yaml.org,2002:float", _EXPONENT, [*"-+.0123456789"]
    )
    return Loader
