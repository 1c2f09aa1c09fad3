"""Configuration: ConfigMaps, Secrets, ServiceAccounts and Namespaces."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any, Final

from trimtab.embedded.builtin.validation import meta, texts
from trimtab.embedded.builtin.validation.problems import Found
from trimtab.embedded.status import quoted

JSON = Mapping[str, Any]

_LIMIT: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
_ACCOUNT: Final = "kubernetes.io/service-account.name"
_REDACTED: Final = "<secret contents redacted>"


def _size(value: str, *, encoded: bool) -> int:
    if encoded:
        return len(value) * 3 // 4 - value.count("=", -2)
    return len(value) if value.isascii() else len(value.encode("utf-8", "replace"))


def create_config_map(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    plain, binary = obj.get("data") or {}, obj.get("binaryData") or {}
    size = 0
    for key, value in plain.items():
        found.each(f"data[{key}]", key, texts.config_key(key))
        if key in binary:
            found.invalid(f"data[{key}]", key, "duplicate of key present in binaryData")
        size += _size(value, encoded=False)
    for key, value in binary.items():
        found.each(f"binaryData[{key}]", key, texts.config_key(key))
        size += _size(value, encoded=True)
    if size > _LIMIT:
        found.too_long("[]", _LIMIT)


def update_config_map(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    if old.get("immutable"):
        _immutable(found, obj, old, "data", "binaryData")
    create_config_map(found, obj)


def _immutable(found: Found, obj: JSON, old: JSON, *fields: str) -> None:
    if not obj.get("immutable"):
        found.forbidden("immutable", _FROZEN)
    for field in fields:
        if obj.get(field) != old.get(field):
            found.forbidden(field, _FROZEN)


def create_secret(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)
    data = obj.get("data") or {}
    for key in data:
        found.each(f"data[{key}]", key, texts.config_key(key))
    if sum(_size(value, encoded=True) for value in data.values()) > _LIMIT:
        found.too_long("data", _LIMIT)
    _secret_type(found, obj, data)


def _secret_type(found: Found, obj: JSON, data: Mapping[str, str]) -> None:
    """Some types promise some keys."""
    match obj.get("type"):
        case "kubernetes.io/service-account-token":
            notes = obj["metadata"].get("annotations") or {}
            if not notes.get(_ACCOUNT):
                found.required(f"metadata.annotations[{_ACCOUNT}]")
        case "kubernetes.io/dockercfg":
            _json(found, data, ".dockercfg")
        case "kubernetes.io/dockerconfigjson":
            _json(found, data, ".dockerconfigjson")
        case "kubernetes.io/basic-auth":
            if not data.keys() & {"username", "password"}:
                found.required("data[username]")
                found.required("data[password]")
        case "kubernetes.io/ssh-auth":
            if not data.get("ssh-privatekey"):
                found.required("data[ssh-privatekey]")
        case "kubernetes.io/tls":
            for key in ("tls.crt", "tls.key"):
                if key not in data:
                    found.required(f"data[{key}]")


def _json(found: Found, data: Mapping[str, str], key: str) -> None:
    path = f"data[{key}]"
    if key not in data:
        found.required(path)
        return
    try:
        value = json.loads(base64.b64decode(data[key]))
    except ValueError as error:
        found.invalid(path, _REDACTED, _go_words(data[key], error))
        return
    if value is not None and not isinstance(value, dict):
        names = {str: "string", bool: "bool", list: "array"}
        what = names.get(type(value), "number")
        detail = (
            f"json: cannot unmarshal {what} into Go value of type "
            "map[string]interface {}"
        )
        found.invalid(path, _REDACTED, detail)


def _go_words(encoded: str, error: ValueError) -> str:
    """What Go says of text that is not JSON; Python knows where it stopped."""
    text = base64.b64decode(encoded).decode("utf-8", "replace")
    position = error.pos if isinstance(error, json.JSONDecodeError) else 0
    rest = text[position:]
    for literal in ("null", "true", "false"):
        if not rest.startswith(literal[0]):
            continue
        for letter, wanted in zip(rest[1:], literal[1:], strict=False):
            if letter != wanted:
                where = f"in literal {literal} (expecting '{wanted}')"
                return f"invalid character {_letter(letter)} {where}"
    if not rest:
        return "unexpected end of JSON input"
    return f"invalid character {_letter(rest[0])} looking for beginning of value"


def _letter(given: str) -> str:
    shown = quoted(given)[1:-1].replace('\\"', '"').replace("'", "\\'")
    return f"'{shown}'"


def update_secret(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    found.immutable("type", obj.get("type", ""), old.get("type", ""))
    if old.get("immutable"):
        _immutable(found, obj, old, "data")
    create_secret(found, obj)


def create_service_account(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=True, name=texts.subdomain)


def update_service_account(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    create_service_account(found, obj)


def finalizer(found: Found, value: str, path: str) -> None:
    """The finalizer of a namespace."""
    found.each(path, value, texts.key(value))
    standard = ("kubernetes", "orphan", "foregroundDeletion")
    if "/" not in value and value not in standard:
        detail = "name is neither a standard finalizer name nor is it fully qualified"
        found.invalid(path, value, detail)


def create_namespace(found: Found, obj: JSON) -> None:
    meta.created(found, obj["metadata"], namespaced=False, name=texts.label)
    for value in obj["spec"].get("finalizers") or ():
        finalizer(found, value, "spec.finalizers")


def update_namespace(found: Found, obj: JSON, old: JSON) -> None:
    create_namespace(found, obj)
    meta.updated(found, obj["metadata"], old["metadata"])


def status_namespace(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    phase, deleted = (
        obj["status"].get("phase", ""),
        "deletionTimestamp" in obj["metadata"],
    )
    wanted = "Terminating" if deleted else "Active"
    if phase != wanted:
        state = "is not empty" if deleted else "is empty"
        detail = f"may only be '{wanted}' if `deletionTimestamp` {state}"
        found.invalid("status.Phase", phase, detail)


def finalize_namespace(found: Found, obj: JSON, old: JSON) -> None:
    meta.updated(found, obj["metadata"], old["metadata"])
    for index, value in enumerate(obj["spec"].get("finalizers") or ()):
        finalizer(found, value, f"spec.finalizers[{index}]")
