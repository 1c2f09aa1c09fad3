"""The identity of a server: its authority, its certificates and its signing key.

Made at the first start and kept beside the data, or only in memory. What is close to
its end is made anew: the administrator's and the server's certificates by themselves,
the authority, which all clients know, only when it ends itself.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Collection, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.client.credentials import readable
from trimtab.client.errors import TrimtabError
from trimtab.embedded import files
from trimtab.embedded.certificates import (
    Authority,
    Pair,
    expiry,
    is_key,
    names_of,
    new_key,
    require_cryptography,
)

if TYPE_CHECKING:
    from cryptography import x509

ADMINISTRATOR = "admin"
MASTERS = "system:masters"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
SERVICE = (
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
)
RENEW_BEFORE = timedelta(days=60)
AUTHORITY, SERVER, ADMIN, ACCOUNTS = (
    "authority.pem",
    "server.pem",
    "administrator.pem",
    "service-accounts.pem",
)
ADVICE = "name another folder for the data, or see to its permissions"


class IdentityDamaged(TrimtabError):
    """A kept key cannot be read, and making another would lock every client out."""

    def __init__(self, path: Path) -> None:
        super().__init__(
            f"The key in {path} is damaged: put a copy in its place, or remove the "
            f"folder {path.parent} to have new keys made, and give every client the "
            "new kubeconfig."
        )


class Identity:
    """All that a server proves who it is with, and lets its clients do so.

    ``folder`` None keeps it in memory only. ``names`` are those that the server is
    reached under besides the loopback's and the cluster's own.

    Guarantees: the files have mode 0600, and each is whole or as it was before.

    Errors: :class:`~trimtab.embedded.files.FileProblem`, :class:`IdentityDamaged`,
    :class:`~trimtab.embedded.certificates.CryptographyMissing`.
    """

    def __init__(
        self, folder: Path | None, *, now: datetime, names: Sequence[str] = ()
    ) -> None:
        require_cryptography()
        self._folder = folder
        self._names = frozenset((*LOOPBACK, *SERVICE, *names))
        if folder is not None:
            files.make_private_folder(folder, advice=ADVICE)
        self.signing_key = self._kept_key()
        self._authority = self._kept_authority(now)
        self.server = self._kept(SERVER, self._fits_server, self._issue_server, now)
        self.administrator = self._kept(ADMIN, self._fits, self._issue_admin, now)

    def __repr__(self) -> str:
        return f"Identity(folder={self._folder}, names={sorted(self._names)})"

    @property
    def ca(self) -> bytes:
        """The authority's certificate, PEM: what a client needs to trust the server."""
        return self._authority.pair.certificate

    def issue(
        self,
        request: x509.CertificateSigningRequest,
        *,
        usages: Collection[str],
        lifetime: timedelta,
        now: datetime,
    ) -> bytes:
        """A certificate of the present authority for a request, PEM."""
        return self._authority.issue(request, usages=usages, lifetime=lifetime, now=now)

    def renew(self, now: datetime) -> bool:
        """Make anew what is close to its end; True if anything was."""
        before = (self.ca, self.server, self.administrator)
        if self._ends_soon(self._authority.pair, now):
            self._authority = self._new_authority(now)
        if not self._fits_server(self.server, now):
            self.server = self._made(SERVER, self._issue_server(now))
        if not self._fits(self.administrator, now):
            self.administrator = self._made(ADMIN, self._issue_admin(now))
        return before != (self.ca, self.server, self.administrator)

    def context(self) -> ssl.SSLContext:
        """For the server's side of TLS: 1.2 or newer, client certificates optional.

        A certificate that another authority signed, or that has ended, ends the
        handshake; the real server says 401, which OpenSSL gives us no way to.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.verify_mode = ssl.CERT_OPTIONAL
        # A resumed session would outlive the client's certificate.
        context.options |= ssl.OP_NO_TICKET
        context.num_tickets = 0
        context.set_alpn_protocols(["http/1.1"])
        self.arm(context)
        return context

    def arm(self, context: ssl.SSLContext) -> None:
        """Have a context use the present certificates for every new connection."""
        with readable(self.server.pem) as path:
            context.load_cert_chain(path)
        context.load_verify_locations(cadata=self.ca.decode())

    def _kept(
        self,
        name: str,
        fits: Callable[[Pair, datetime], bool],
        make: Callable[[datetime], Pair],
        now: datetime,
    ) -> Pair:
        """The certificate of a file if it still fits, else a new one."""
        pem = self._read(name)
        if pem is not None:
            try:
                pair = Pair.parse(pem)
            except ValueError:
                pass  # nobody else has this one, so a new one harms nobody
            else:
                if fits(pair, now):
                    return pair
        return self._made(name, make(now))

    def _kept_authority(self, now: datetime) -> Authority:
        pem = self._read(AUTHORITY)
        if pem is None:
            return self._new_authority(now)
        try:
            authority = Authority(Pair.parse(pem))
        except ValueError:
            assert self._folder is not None, "it was read from there"
            raise IdentityDamaged(self._folder / AUTHORITY) from None
        if self._ends_soon(authority.pair, now):
            return self._new_authority(now)
        return authority

    def _kept_key(self) -> bytes:
        pem = self._read(ACCOUNTS)
        if pem is None:
            pem = new_key()
            self._write(ACCOUNTS, pem)
        elif not is_key(pem):
            assert self._folder is not None, "it was read from there"
            raise IdentityDamaged(self._folder / ACCOUNTS)
        return pem

    def _new_authority(self, now: datetime) -> Authority:
        authority = Authority.make("trimtab", now=now)
        self._made(AUTHORITY, authority.pair)
        return authority

    def _issue_server(self, now: datetime) -> Pair:
        names = sorted(self._names)
        return self._authority.issue_server("kube-apiserver", names=names, now=now)

    def _issue_admin(self, now: datetime) -> Pair:
        return self._authority.issue_client(ADMINISTRATOR, groups=(MASTERS,), now=now)

    def _fits(self, pair: Pair, now: datetime) -> bool:
        return self._authority.signed(pair) and not self._ends_soon(pair, now)

    def _fits_server(self, pair: Pair, now: datetime) -> bool:
        return self._fits(pair, now) and names_of(pair) == self._names

    def _ends_soon(self, pair: Pair, now: datetime) -> bool:
        return expiry(pair) - now < RENEW_BEFORE

    def _made(self, name: str, pair: Pair) -> Pair:
        self._write(name, pair.pem)
        return pair

    def _read(self, name: str) -> bytes | None:
        if self._folder is None:
            return None
        return files.read(self._folder / name, advice=ADVICE)

    def _write(self, name: str, content: bytes) -> None:
        if self._folder is not None:
            files.write_private(self._folder / name, content, advice=ADVICE)
