"""Access: the kubeconfig with which the administrator comes in.

A file that is there already keeps all that it says about other clusters: what is ours
is put beside it, as other tools that start clusters do.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

import msgspec

from trimtab.client.errors import TrimtabError
from trimtab.embedded import files
from trimtab.embedded.certificates import Pair

NAME = "trimtab"
SECTIONS = ("clusters", "users", "contexts")
ADVICE = "name another file with --kubeconfig"


class KubeconfigForeign(TrimtabError):
    """The file is there and is no kubeconfig."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"{path} is not a kubeconfig and was left as it is: {ADVICE}, or move this "
            "one away."
        )


def kubeconfig(server: str, *, ca: bytes, administrator: Pair) -> dict[str, Any]:
    """A kubeconfig for one server, with its administrator as the only user."""
    cluster = {"certificate-authority-data": _data(ca), "server": server}
    user = {
        "client-certificate-data": _data(administrator.certificate),
        "client-key-data": _data(administrator.key),
    }
    context = {"cluster": NAME, "user": NAME}
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": NAME, "cluster": cluster}],
        "users": [{"name": NAME, "user": user}],
        "contexts": [{"name": NAME, "context": context}],
        "current-context": NAME,
    }


def write(path: Path, content: dict[str, Any]) -> None:
    """Write a kubeconfig; entries of other names in the file stay.

    Guarantees: the file has mode 0600, and is whole or as it was before.

    Errors: :class:`KubeconfigForeign`, :class:`~trimtab.embedded.files.FileProblem`.
    """
    there = files.read(path, advice=ADVICE)
    if there is not None and there.strip():
        content = _merged(_parsed(path, there), content)
    # JSON is YAML too, and needs no library that would hold up the start.
    text = msgspec.json.format(msgspec.json.encode(content), indent=2) + b"\n"
    if text != there:
        files.write_private(path, text, advice=ADVICE)


def _parsed(path: Path, text: bytes) -> dict[str, Any]:
    try:
        found = msgspec.json.decode(text)
    except msgspec.DecodeError:
        found = _yaml(path, text)
    known = isinstance(found, dict) and found.get("kind", "Config") == "Config"
    sections = [found.get(each) or [] for each in SECTIONS] if known else [None]
    if not all(isinstance(section, list) for section in sections):
        raise KubeconfigForeign(path)
    parsed: dict[str, Any] = found
    return parsed


def _yaml(path: Path, text: bytes) -> Any:
    import yaml

    try:
        return yaml.safe_load(text)
    except (yaml.YAMLError, ValueError):
        raise KubeconfigForeign(path) from None


def _merged(there: dict[str, Any], ours: dict[str, Any]) -> dict[str, Any]:
    merged = {**there, **ours}
    for section in SECTIONS:
        names = {each["name"] for each in ours[section]}
        others = [each for each in there.get(section) or [] if _name(each) not in names]
        merged[section] = [*others, *ours[section]]
    return merged


def _name(entry: Any) -> object:
    return entry.get("name") if isinstance(entry, dict) else None


def _data(pem: bytes) -> str:
    return base64.b64encode(pem).decode()
