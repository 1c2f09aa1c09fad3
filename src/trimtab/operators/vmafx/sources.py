"""Where a clip comes from: a path or an address, checked and safely named."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import unquote, urlsplit

import msgspec

from trimtab.operators.vmafx import s3
from trimtab.operators.vmafx.problems import BadInput

# A scheme has two letters at least, so that no path is one.
_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+)://")


class Source(msgspec.Struct, frozen=True):
    """One clip: what people call it, and how it is read."""

    name: str
    # What is opened: it names its protocol, so no option and no other can be meant.
    opened: str
    # None of what comes from the network.
    path: Path | None = None


def is_remote(text: str) -> bool:
    """Whether it is read from the network."""
    return text.lower().startswith(("http://", "https://", s3.SCHEME))


def source(text: str) -> Source:
    """What a path or a ``file://``, ``http(s)://`` or ``s3://`` address stands for.

    Errors: :class:`BadInput` for an empty text, another scheme, a file on another host,
    or an object of S3 that has no name.
    """
    if not text:
        raise BadInput("An input is empty: give the path or the address of a clip.")
    if "\0" in unquote(text):
        raise BadInput(f"{text!r} cannot be read: no name has a zero byte in it.")
    found = _SCHEME.match(text)
    if found is None:
        return _local(text, Path(text))
    scheme = found[1].lower()
    if scheme == "file":
        return _local(text, _path_of(text))
    if scheme == "s3":
        return _object(s3.SCHEME + text[len(s3.SCHEME) :])
    if is_remote(text):
        return Source(name=_without_secrets(text), opened=text)
    raise BadInput(
        f"{text} cannot be read: the schemes are file, http, https and s3, and "
        f"{scheme} is none of them."
    )


def _object(text: str) -> Source:
    bucket, key = s3.parts(text)
    if not bucket or not key or key.endswith("/") or ".." in key.split("/"):
        raise BadInput(
            f"{text} cannot be read: an object of S3 is s3://BUCKET/KEY, without dots "
            "that lead elsewhere."
        )
    return Source(name=text, opened=text)


def _local(text: str, path: Path) -> Source:
    """A file of this machine, checked for what ffmpeg says unclearly."""
    whole = path.absolute()
    try:
        size = whole.stat().st_size if whole.is_file() else None
    except OSError as error:
        reason = (error.strerror or "no answer").lower()
        raise BadInput(f"{text} cannot be read: {reason}.") from error
    if size is None:
        why = "it is not a file" if whole.exists() else "there is no such file"
        raise BadInput(f"{text} cannot be read: {why}.")
    if size == 0:
        raise BadInput(f"{text} is an empty file: there is no video in it.")
    return Source(name=text, opened=f"file:{whole}", path=whole)


def _path_of(text: str) -> Path:
    parts = urlsplit(text)
    if parts.netloc not in ("", "localhost"):
        raise BadInput(
            f"{text} is on another host, {parts.netloc}: a file:// address has three "
            "slashes, as in file:///clips/a.mp4."
        )
    return Path(unquote(parts.path))


def _without_secrets(text: str) -> str:
    """The address without what may be a password or a signature."""
    parts = urlsplit(text)
    host = parts.netloc.rpartition("@")[2]
    signed = "?…" if parts.query else ""
    return f"{parts.scheme}://{host}{parts.path}{signed}"


def named(text: str) -> str:
    """What an input is called in a message: without what may be a secret."""
    return _without_secrets(text) if is_remote(text) else text
