"""The certificates and keys of one test control plane.

Everything is made afresh for each cluster, lives for a week, and is written with mode
0600.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from trimtab.testing.errors import ClusterError

if TYPE_CHECKING:
    from trimtab.client.certifying import Key

LIFETIME = timedelta(days=7)
LOOPBACK = ("localhost", "127.0.0.1", "::1")


def make(folder: Path) -> None:
    """Write every key and certificate that a control plane needs into `folder`.

    `ca`, `apiserver` (for 127.0.0.1, ::1 and localhost), `admin` (in the group
    `system:masters`) and `controller-manager` are pairs of `.crt` and `.key`;
    `service-account.key` signs service account tokens.

    Errors: `ClusterError` when the package `cryptography` is not installed.
    """
    try:
        authority = Authority(folder)
    except ImportError as error:
        raise ClusterError(
            "a real test cluster needs the package cryptography for its certificates: "
            "install it with `pip install trimtab[embedded]`."
        ) from error
    authority.issue("apiserver", common_name="kube-apiserver", names=LOOPBACK)
    authority.issue("admin", common_name="admin", groups=("system:masters",))
    authority.issue("controller-manager", common_name="system:kube-controller-manager")
    authority.key("service-account")


class Authority:
    """A certificate authority of its own, which nothing else trusts."""

    def __init__(self, folder: Path) -> None:
        from trimtab.client import certifying

        self._folder = folder
        self._now = datetime.now(UTC)
        self._key = certifying.new_key()
        self._name = certifying.name("trimtab-test")
        until = self._now + LIFETIME
        made = certifying.authority(self._name, self._key, now=self._now, until=until)
        self._save("ca", made, self._key)

    def issue(
        self,
        name: str,
        *,
        common_name: str,
        groups: Sequence[str] = (),
        names: Sequence[str] = (),
    ) -> None:
        """Write `<name>.crt` and `<name>.key`, for a server of these names or else for
        a client."""
        from trimtab.client import certifying

        key = certifying.new_key()
        made = certifying.certificate(
            certifying.name(common_name, groups),
            key,
            issuer=self._name,
            signer=self._key,
            now=self._now,
            until=self._now + LIFETIME,
            names=names,
        )
        self._save(name, made, key)

    def key(self, name: str, key: Key | None = None) -> None:
        """Write `<name>.key`, a new one if none is given."""
        from trimtab.client import certifying

        # A kube-apiserver reads public keys out of private ones in this form only.
        pem = certifying.key_pem(key or certifying.new_key(), traditional=True)
        write_private(self._folder / f"{name}.key", pem)

    def _save(self, name: str, certificate: bytes, key: Key) -> None:
        self.key(name, key)
        write_private(self._folder / f"{name}.crt", certificate)


def write_private(path: Path, content: bytes) -> None:
    """Write a new file that only this user can read."""
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(content)
