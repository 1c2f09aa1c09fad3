"""Bodies: reading what clients send, and answering in the form that they accept."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from trimtab.embedded import status
from trimtab.embedded.status import ApiProblem

JSON = "application/json"
YAML = "application/yaml"
PROTOBUF = "application/vnd.kubernetes.protobuf"
WRITTEN = (JSON, YAML)
WATCHED = (f"{JSON};stream=watch", f"{PROTOBUF};stream=watch")


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


def form_of(accept: str) -> Form:
    """The best form that a client accepts and we have; 406 if there is none."""
    if not accept:
        return Form()
    choices = sorted(accept.split(","), key=_quality, reverse=True)
    for choice in choices:
        form = _form(choice)
        if form is not None:
            return form
    types = (JSON, YAML, PROTOBUF)
    if any(choice.split(";")[0].strip() in types for choice in choices):
        raise status.not_acceptable(types)
    listed = ", ".join(types)
    text = f"406: Not Acceptable\n\nAvailable representations: {listed}"
    raise Unrouted(406, "NotAcceptable", text)


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
    if media in ("*/*", ""):
        media = JSON
    if media not in WRITTEN or facts.get("stream", "watch") != "watch":
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
    return msgspec.json.encode(value) + b"\n"


def _dumper() -> Any:
    import yaml

    return getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def decode(body: bytes, content_type: str) -> dict[str, Any]:
    """The object in a body; 415 for another type, 400 for what is not an object."""
    media = content_type.split(";")[0].strip() or JSON
    if media == JSON:
        value = _json(body)
    elif media in (YAML, "text/yaml", "application/x-yaml"):
        value = _yaml(body)
    elif media == PROTOBUF:
        from trimtab.embedded.protobuf import decode as decode_protobuf

        value = decode_protobuf(body)
    else:
        raise status.unsupported_media_type((JSON, YAML, PROTOBUF))
    if not isinstance(value, dict):
        raise status.bad_request(
            "couldn't get version/kind; json parse error: json: cannot unmarshal "
            f"{_go_name(value)} into Go value of type struct "
            '{ APIVersion string "json:\\"apiVersion,omitempty\\""; '
            'Kind string "json:\\"kind,omitempty\\"" }'
        )
    return value


def decode_any(body: bytes) -> Any:
    """Any JSON value in a body (a patch may be a list)."""
    return _json(body)


def _json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except msgspec.DecodeError as error:
        raise status.bad_request(
            f"couldn't get version/kind; json parse error: {error}"
        ) from None


def _yaml(body: bytes) -> Any:
    import yaml

    try:
        return yaml.load(body, Loader=_loader())
    except (yaml.YAMLError, ValueError) as error:
        text = " ".join(str(error).split())
        raise status.bad_request(
            f"error converting YAML to JSON: yaml: {text}"
        ) from None


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
    return Loader


def _go_name(value: Any) -> str:
    names: Mapping[type, str] = {
        list: "array",
        str: "string",
        int: "number",
        float: "number",
        bool: "bool",
    }
    return names.get(type(value), "null")
