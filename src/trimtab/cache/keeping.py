"""Forms: how an object is kept, from the whole of it down to its key alone.

Packed forms are one ``bytes`` each: a flag, uid and version in the clear (a relist
compares them without unpacking), then deflated with a dictionary that is made of the
first objects of the kind. Objects of one kind repeat each other far more than
themselves, so a dictionary saves most of what there is to save.
"""

from __future__ import annotations

import logging
import zlib
from collections.abc import Callable, Iterable
from functools import lru_cache
from operator import attrgetter
from typing import Any, Final, Generic, Literal, TypeAlias, get_args

import msgspec

from trimtab.api import codec
from trimtab.api.conditions import Conditions
from trimtab.cache.changes import NO_DIFFERENCE, R

Form: TypeAlias = Literal["full", "slice", "bytes", "key"]
Kept: TypeAlias = Literal["full", "slice", "key"]
Keep: TypeAlias = Kept | Callable[[R], Kept]
"""What to keep of the objects of a kind: one form for all, or one for each object.

``full`` keeps the whole object (without managedFields) beside its slice, for
``Store.full``; ``key`` only says that the object is there.
"""

log = logging.getLogger(__name__)

DICTIONARY: Final = 12 * 1024
"""Bytes of a dictionary. With 8 it saves a tenth less, with 16 hardly any more."""
_LEVEL: Final = 6
_WINDOW: Final = -14  # 16 KiB, and raw: nothing here ever leaves the process
_MEMORY: Final = 7
_WHOLE: Final = 1
_PRIMED: Final = 2


class Whole(msgspec.Struct, gc=False):
    """An object that is kept full and whose slice is at hand."""

    slice: Any
    data: bytes


class Stub(msgspec.Struct, gc=False):
    """An object of which only the key is kept, and what tells that it changed."""

    data: bytes
    """A flag, uid and version, then a checksum for each field, two levels deep."""
    values: tuple[tuple[str, ...], ...]
    """What it is found by in each index, in the order of the indexes."""

    @classmethod
    def of(cls, obj: Any, values: Iterable[tuple[str, ...]]) -> Stub:
        data = b"".join((b"\1", head(obj), b"\0", prints(obj)))
        shared = tuple(_once(each) for each in values)
        return cls(data, shared if any(shared) else ())

    def found_by(self, at: int) -> tuple[str, ...]:
        """The values in the index at this place; indexes that came later have none."""
        return self.values[at] if at < len(self.values) else ()

    @property
    def prints(self) -> bytes:
        return self.data[self.data.index(b"\0", 1) + 1 :]


@lru_cache(maxsize=4096)
def _once(values: tuple[str, ...]) -> tuple[str, ...]:
    """The same tuple for all stubs that are found by the same values."""
    return values


_FORMS: Final[dict[type, Form]] = {bytes: "bytes", Whole: "full", Stub: "key"}


class Packer:
    """Deflates texts that resemble each other; the first of them make the dictionary.

    What is packed before there is a dictionary is packed without one, and says so.
    """

    __slots__ = ("_blank", "_dictionary", "_samples")

    def __init__(self) -> None:
        self._samples: list[bytes] = []
        self._dictionary = b""
        self._blank: Any = None

    def pack(self, text: bytes, *, flags: int, head: bytes) -> bytes:
        if not self._dictionary:
            self._learn(text)
            deflate = zlib.compressobj(_LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY)
        else:
            flags |= _PRIMED
            deflate = self._blank.copy()
        return b"".join(
            (bytes((flags,)), head, b"\0", deflate.compress(text), deflate.flush())
        )

    def _learn(self, text: bytes) -> None:
        self._samples.append(text)
        if sum(map(len, self._samples)) >= DICTIONARY:
            self._dictionary = b"".join(self._samples)[-DICTIONARY:]
            self._samples = []
            # Its copies have read the dictionary already, which is most of the work.
            self._blank = zlib.compressobj(
                _LEVEL, zlib.DEFLATED, _WINDOW, _MEMORY, zdict=self._dictionary
            )

    def unpack(self, data: bytes) -> bytes:
        start = data.index(b"\0", 1) + 1
        if data[0] & _PRIMED:
            inflate = zlib.decompressobj(_WINDOW, zdict=self._dictionary)
        else:
            inflate = zlib.decompressobj(_WINDOW)
        return inflate.decompress(memoryview(data)[start:])


class Keeper(Generic[R]):
    """Makes and reads the forms of one kind.

    Guarantees: what was decoded and packed reads back equal; one dictionary for each
    of the two packed forms, of ``DICTIONARY`` bytes.
    """

    __slots__ = (
        "_decoder",
        "_keep",
        "_kind",
        "_slices",
        "_warned",
        "_wholes",
        "needs_raw",
    )

    def __init__(self, kind: type[R], keep: Keep[R] | None) -> None:
        self._kind = kind
        self._keep = keep or "slice"
        if not callable(self._keep) and self._keep not in get_args(Kept):
            raise ValueError(
                f"{keep!r} is not something to keep of a {kind.__resource__.kind}; "
                f"choose one of {', '.join(get_args(Kept))}, or a function of it."
            )
        self._warned = False
        self.needs_raw = callable(keep) or keep == "full"
        self._decoder = msgspec.msgpack.Decoder(kind, dec_hook=codec.dec_hook)
        self._slices = Packer()
        self._wholes = Packer()

    def wanted(self, obj: R) -> Kept:
        """What to keep of an object; its slice where the choice fails."""
        if not callable(self._keep):
            return self._keep
        try:
            return self._keep(obj)
        except Exception:
            if not self._warned:
                self._warned = True
                log.exception("What to keep of %s cannot be decided.", obj)
            return "slice"

    def whole(self, obj: R, raw: bytes) -> Whole:
        text = without_managed_fields(raw)
        return Whole(obj, self._wholes.pack(text, flags=_WHOLE, head=head(obj)))

    def packed(self, obj: R) -> bytes:
        return self._slices.pack(_encode(plain(obj)), flags=0, head=head(obj))

    def unpacked(self, data: bytes) -> R:
        """The slice of an object that was packed, in either form."""
        if data[0] & _WHOLE:
            return codec.decode(self._kind, self._wholes.unpack(data))
        return self._decoder.decode(self._slices.unpack(data))

    def full(self, data: bytes) -> dict[str, Any] | None:
        """The whole object, if that is what was packed."""
        if not data[0] & _WHOLE:
            return None
        found: dict[str, Any] = msgspec.json.decode(self._wholes.unpack(data))
        return found

    def promoted(self, obj: R, data: bytes) -> Any:
        """The form of a packed object that somebody reads."""
        return Whole(obj, data) if data[0] & _WHOLE else obj


def head(obj: Any) -> bytes:
    """Uid and version as they stand at the beginning of a packed form."""
    metadata = obj.metadata
    return f"{metadata.uid} {metadata.resourceVersion}".encode()


def identity(entry: Any) -> tuple[str, str]:
    """The uid and the version of an entry in whatever form."""
    kind = type(entry)
    if kind is bytes or kind is Stub:
        data = entry if kind is bytes else entry.data
        uid, _, version = data[1 : data.index(b"\0", 1)].decode().rpartition(" ")
        return uid, version
    metadata = entry.slice.metadata if kind is Whole else entry.metadata
    return metadata.uid, metadata.resourceVersion


def form(entry: Any) -> Form:
    """The name of the form that an entry has."""
    return _FORMS.get(type(entry), "slice")


class _Envelope(msgspec.Struct):
    metadata: dict[str, msgspec.Raw]


def without_managed_fields(raw: bytes) -> bytes:
    """The JSON of an object without the one part that nobody should keep."""
    whole = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    metadata = msgspec.json.decode(raw, type=_Envelope).metadata
    if metadata.pop("managedFields", None) is None:
        return bytes(raw)
    whole["metadata"] = msgspec.Raw(msgspec.json.encode(metadata))
    return msgspec.json.encode(whole)


# Slices are packed without what has its default. That is smaller, and the only way to
# an equal object: a default of () would otherwise come back as [].


def plain(obj: msgspec.Struct) -> dict[str, Any]:
    """What a struct says beyond its defaults, by the names on the wire."""
    out: dict[str, Any] = {}
    for attribute, name, default in _defaults(type(obj)):
        value = getattr(obj, attribute)
        if value is not default and value != default:
            out[name] = _plain(value)
    return out


def _plain(value: Any) -> Any:
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is list or kind is tuple:
        return [_plain(item) for item in value]
    if kind is dict:
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, msgspec.Struct):
        return plain(value)
    if kind is Conditions:
        items = [plain(item) for item in value.values()]
        # That there were duplicates is part of what was read.
        return items + items[:1] if value.had_duplicates else items
    return value.__encode__() if hasattr(value, "__encode__") else value


@lru_cache(maxsize=1024)
def _defaults(kind: type[msgspec.Struct]) -> tuple[tuple[str, str, Any], ...]:
    found = []
    for field in msgspec.structs.fields(kind):
        default: Any = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        found.append((field.name, field.encode_name, default))
    return tuple(found)


_encode = msgspec.msgpack.Encoder().encode
_encode_sorted = msgspec.msgpack.Encoder(order="deterministic").encode


def prints(obj: Any) -> bytes:
    """Four bytes for each field of a kind, two levels deep: equal where it is equal."""
    return b"".join(
        zlib.crc32(_encode_sorted(_plain(get(obj)))).to_bytes(4, "big")
        for get in _printed(obj.__class__)[1]
    )


def printed_differences(kind: Any, old: bytes, new: bytes) -> tuple[str, ...]:
    """The paths whose prints differ."""
    return tuple(
        path
        for at, path in enumerate(_printed(kind)[0])
        if old[4 * at : 4 * at + 4] != new[4 * at : 4 * at + 4]
    )


@lru_cache(maxsize=256)
def _printed(kind: Any) -> tuple[tuple[str, ...], tuple[Callable[[Any], Any], ...]]:
    paths: list[str] = []
    getters: list[Callable[[Any], Any]] = []
    for part in msgspec.structs.fields(kind):
        if isinstance(part.type, type) and issubclass(part.type, msgspec.Struct):
            for field in msgspec.structs.fields(part.type):
                path = f"{part.encode_name}.{field.encode_name}"
                if path not in NO_DIFFERENCE:
                    paths.append(path)
                    getters.append(attrgetter(f"{part.name}.{field.name}"))
        else:
            paths.append(part.encode_name)
            getters.append(attrgetter(part.name))
    return tuple(paths), tuple(getters)
