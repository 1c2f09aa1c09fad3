"""Credentials: what a request carries to say who asks, read again as it ages.

A :class:`Credentials` yields the headers of a request and, where it changes while the
process lives, the TLS material of the connection. Secrets stay in memory: no repr, log
line or error message shows one, and a private key reaches OpenSSL through memory that
has no name in any folder (or, where the system has no such thing, through a file that
only we can read and that is gone as soon as it was read).
"""

from __future__ import annotations

import asyncio
import base64
import logging
import os
import ssl
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Protocol

import msgspec

from trimtab.client.errors import ConfigError

logger = logging.getLogger(__name__)

# Half of what the kubelet leaves between renewing a ten-minute token and its end.
REREAD_AFTER = 60.0
# A certificate bundle of every public authority is a quarter of this.
FILE_LIMIT = 1 << 20

BEGIN = b"-----BEGIN CERTIFICATE-----"
END = b"-----END CERTIFICATE-----"
NO_HEADERS: Mapping[str, str] = MappingProxyType({})


class Guarded(msgspec.Struct, frozen=True):
    """A struct that may hold secrets: its repr has what ``shown`` has, and no more."""

    def shown(self) -> Mapping[str, object]:
        """The fields that anybody may see."""
        return {}

    def __repr__(self) -> str:
        shown = ", ".join(f"{key}={value!r}" for key, value in self.shown().items())
        return f"{type(self).__name__}({shown})"

    def __rich_repr__(self) -> Iterable[tuple[str, object]]:  # type: ignore[override]
        return self.shown().items()


class TlsMaterial(Guarded, frozen=True):
    """All that a TLS context is made of, as PEM in memory.

    ``ca`` None means the authorities that the system trusts. ``server_name`` is for the
    transport: the name to ask for and to verify, instead of the address's host. The
    three sources say to people where each part came from.
    """

    ca: bytes | None = None
    certificate: bytes | None = None
    key: bytes | None = None
    server_name: str | None = None
    insecure: bool = False
    ca_source: str = "The certificate authority"
    certificate_source: str = "The client certificate"
    key_source: str = "The client key"

    def shown(self) -> Mapping[str, object]:
        """Whether there is a certificate and a key, and neither of them."""
        return {
            "ca": "system" if self.ca is None else "own",
            "certificate": self.certificate is not None,
            "key": self.key is not None,
            "server_name": self.server_name,
            "insecure": self.insecure,
        }

    def context(self) -> ssl.SSLContext:
        """A client context: TLS 1.2 or newer, the server verified.

        Guarantees: verification is off only where ``insecure`` says so. As in client-go
        every certificate of ``ca`` is an anchor of trust, be it a root or not.

        Errors: :class:`ConfigError` names the source whose PEM cannot be used.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.hostname_checks_common_name = False
        if self.insecure:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        elif self.ca is None:
            context.load_default_certs()
        else:
            _trust(context, self.ca, source=self.ca_source)
        if self.certificate is not None:
            _present(context, self)
        return context


def _trust(context: ssl.SSLContext, bundle: bytes, *, source: str) -> None:
    """Trust every certificate of ``bundle``; like Go, pass over what is unreadable."""
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    if sum(_trusted(context, block) for block in _certificates(bundle)) == 0:
        raise ConfigError(
            f"{source} holds no PEM certificate that can be read; "
            "put the cluster's CA certificate there."
        )


def _trusted(context: ssl.SSLContext, block: str) -> bool:
    try:
        context.load_verify_locations(cadata=ssl.PEM_cert_to_DER_cert(block))
    except (ssl.SSLError, ValueError):
        return False
    return True


def _certificates(bundle: bytes) -> Iterator[str]:
    """The certificate blocks of a PEM text, without what stands around them."""
    for part in bundle.split(BEGIN)[1:]:
        body, end, _ = part.partition(END)
        if end:
            yield (BEGIN + body + END).decode("ascii", "replace")


def _present(context: ssl.SSLContext, material: TlsMaterial) -> None:
    """Give ``context`` the client certificate, so that a handshake can present it."""

    def locked() -> str:
        # Without this OpenSSL would ask on the terminal and wait for ever.
        raise ConfigError(
            f"{material.key_source} is protected by a passphrase; "
            "give a key without one (openssl pkey writes it)."
        )

    try:
        with readable(material.certificate or b"") as chain:
            with readable(material.key or b"") as key:
                context.load_cert_chain(chain, key, password=locked)
    except (ssl.SSLError, ValueError) as error:
        raise _refusal(material, error) from None
    except OSError as error:
        raise ConfigError(
            f"{material.key_source} cannot be handed to OpenSSL: "
            f"{error.strerror or 'the system refused'}; "
            "give this process a temporary folder it may write to."
        ) from None


def _refusal(material: TlsMaterial, error: Exception) -> ConfigError:
    """Which of certificate and key is to blame."""
    if getattr(error, "reason", None) == "KEY_VALUES_MISMATCH":
        return ConfigError(
            f"{material.key_source} is not the key of the certificate in "
            f"{material.certificate_source}; use the two that were made together."
        )
    probe = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    blocks = list(_certificates(material.certificate or b""))
    if not blocks or not all(_trusted(probe, block) for block in blocks):
        return ConfigError(
            f"{material.certificate_source} is not a PEM certificate that can be "
            "read; put the client's certificate there."
        )
    return ConfigError(
        f"{material.key_source} is not a PEM private key that can be read; "
        "put the key of the client certificate there."
    )


@contextmanager
def readable(data: bytes) -> Iterator[str]:
    """A path at which OpenSSL can read ``data``, for as long as the block lasts."""
    descriptor, path, temporary = _scratch()
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(data)
            file.flush()
            yield path
    finally:
        if temporary:
            os.unlink(path)


def _scratch() -> tuple[int, str, bool]:
    """A file that nobody else can read: in memory, else with mode 0600 in a folder."""
    if sys.platform == "linux":
        try:
            descriptor = os.memfd_create("trimtab")
        except OSError:
            pass  # forbidden to this process: a named file will do
        else:
            if os.path.exists(path := f"/proc/self/fd/{descriptor}"):
                return descriptor, path, False
            os.close(descriptor)
    import tempfile  # seldom needed, and it brings the compressors along

    descriptor, path = tempfile.mkstemp(prefix="trimtab-")
    return descriptor, path, True


class Credentials(Protocol):
    """Who asks.

    Guarantees: while nothing changed, ``headers`` and ``tls`` return the very object
    that they returned before, without I/O.

    Assumptions: used from one event loop at a time.

    Errors: :class:`ConfigError`, naming the file and the key, or the command.
    """

    async def headers(self) -> Mapping[str, str]:
        """The headers that say who asks; may be empty."""

    async def tls(self) -> TlsMaterial | None:
        """The material to connect with, whole; None: what the configuration has."""

    def invalidate(self, refused: Mapping[str, str] | None = None) -> None:
        """The server answered 401: get the credentials again at the next call.

        With ``refused``, the very mapping that ``headers`` returned for that call,
        nothing happens if the credentials were renewed since: a hundred calls that
        were refused together cause one renewal.
        """


class TlsFiles:
    """TLS material of which some stands in files that may change under us.

    The files are read at most once in ``age`` seconds. New contents are taken when a
    context can be made of them; until then (a rotation half done, a file missing) the
    old ones stay.
    """

    def __init__(
        self,
        material: TlsMaterial,
        *,
        paths: Mapping[str, str] = MappingProxyType({}),
        age: float = REREAD_AFTER,
    ) -> None:
        self._material = material
        self._paths = dict(paths)  # field of TlsMaterial -> file
        self._age = age
        self._read_at: float | None = None

    def __repr__(self) -> str:
        return f"TlsFiles({self._material!r}, rereads={sorted(self._paths)})"

    @property
    def material(self) -> TlsMaterial:
        """The material as it was read last."""
        return self._material

    @property
    def rotates(self) -> bool:
        """Whether the material can change at all."""
        return bool(self._paths)

    def current(self) -> TlsMaterial:
        """The material as it now is; the same object while it is the same."""
        now = asyncio.get_running_loop().time()
        if self._paths and (self._read_at is None or now - self._read_at >= self._age):
            self._read_at = now
            self._reread()
        return self._material

    def expire(self) -> None:
        """Read the files again at the next call."""
        self._read_at = None

    def _reread(self) -> None:
        try:
            found = {
                field: read_file(
                    path, source=getattr(self._material, f"{field}_source")
                )
                for field, path in self._paths.items()
            }
            fresh = msgspec.structs.replace(self._material, **found)
            if fresh != self._material:
                fresh.context()  # raises where the parts do not fit
                self._material = fresh
        except ConfigError as error:
            logger.warning("%s The material read before stays in use.", error)


class Static:
    """Credentials that never change: a token, a name and password, or none at all."""

    def __init__(
        self, headers: Mapping[str, str] = NO_HEADERS, *, files: TlsFiles | None = None
    ) -> None:
        self._headers = MappingProxyType(dict(headers))
        self._files = files

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(self._headers)})"

    async def headers(self) -> Mapping[str, str]:
        return self._headers

    async def tls(self) -> TlsMaterial | None:
        if self._files is None or not self._files.rotates:
            return None
        return self._files.current()

    def invalidate(self, refused: Mapping[str, str] | None = None) -> None:
        if self._files is not None:
            self._files.expire()


class TokenFile(Static):
    """A bearer token in a file that somebody renews, such as the kubelet.

    The file is read at most once in ``age`` seconds, and after ``invalidate``. If it
    cannot be read, the token read last stays in use, or else ``fallback``.
    """

    def __init__(
        self,
        path: str,
        *,
        source: str,
        fallback: str | None = None,
        files: TlsFiles | None = None,
        age: float = REREAD_AFTER,
    ) -> None:
        headers = bearer(fallback, source=source) if fallback else NO_HEADERS
        super().__init__(headers, files=files)
        self._path = path
        self._source = source
        self._age = age
        self._read_at: float | None = None

    async def headers(self) -> Mapping[str, str]:
        now = asyncio.get_running_loop().time()
        if self._read_at is None or now - self._read_at >= self._age:
            try:
                self.read()
            except ConfigError as error:
                if not self._headers:
                    raise
                logger.warning("%s The token read before stays in use.", error)
            self._read_at = now
        return self._headers

    def read(self) -> None:
        """Read the file now; :class:`ConfigError` if it has no token."""
        text = read_file(self._path, source=self._source).decode("utf-8", "replace")
        headers = bearer(text, source=self._source)
        if headers != self._headers:
            self._headers = headers

    def invalidate(self, refused: Mapping[str, str] | None = None) -> None:
        super().invalidate(refused)
        if refused is None or refused is self._headers:
            self._read_at = None


def bearer(token: str, *, source: str) -> MappingProxyType[str, str]:
    """The headers of a bearer token."""
    token = token.strip()
    if not token:
        raise ConfigError(f"{source} has an empty token; put a token there.")
    if not fits_header(token):
        raise ConfigError(
            f"{source} has a token with a line break, a control character or text "
            "that is not UTF-8 in it; put one token there and nothing else."
        )
    return MappingProxyType({"Authorization": f"Bearer {token}"})


def basic(username: str, password: str) -> Mapping[str, str]:
    """The headers of a name and a password."""
    pair = base64.b64encode(f"{username}:{password}".encode()).decode("ascii")
    return {"Authorization": f"Basic {pair}"}


def fits_header(value: str) -> bool:
    """Whether ``value`` can stand in a header without ending it."""
    return all(
        character == "\t" or (ord(character) >= 0x20 and character not in "\x7f\ufffd")
        for character in value
    )


def read_file(path: str, *, source: str, limit: int = FILE_LIMIT) -> bytes:
    """The bytes of a small file.

    Errors: a :class:`ConfigError` that begins with ``source``. The path is not in it:
    somebody may have put the secret itself where its file's name belongs.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(limit + 1)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a file name"
        raise ConfigError(
            f"{source} cannot be read ({reason}); "
            "name a file that is there and that this user may read."
        ) from None
    if len(data) > limit:
        raise ConfigError(
            f"{source} is a file of more than {limit} bytes; name the right file."
        )
    return data
