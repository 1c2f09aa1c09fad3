"""A service account for a gateway, with all rights that it needs; one can be taken."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import yaml

from tests.pool.town import Town
from trimtab.client import NotFound
from trimtab.testing.waiting import eventually

Plain = dict[str, Any]

RBAC = "rbac.authorization.k8s.io"


def _all_of(*groups: str) -> list[Plain]:
    return [{"apiGroups": list(groups), "resources": ["*"], "verbs": ["*"]}]


ALL_BUT_LEASES = _all_of("", "events.k8s.io", "trimtab.dev")
LEASES = _all_of("coordination.k8s.io")
REVIEWS = _all_of("authentication.k8s.io", "authorization.k8s.io")
NAME, RENEWS = "limited", "limited-renews"


class Limited:
    """The account, and the right to write Leases, which is a binding of its own."""

    def __init__(self, here: Town, kubeconfig: Path) -> None:
        self._here = here
        self.kubeconfig = kubeconfig
        self._user = f"system:serviceaccount:{here.namespace}:{NAME}"
        self._subjects = [
            {"kind": "ServiceAccount", "name": NAME, "namespace": here.namespace}
        ]

    async def make(self) -> None:
        """Make the account, and give it all rights."""
        client, namespace = self._here.client, self._here.namespace
        account: Plain = {"apiVersion": "v1", "kind": "ServiceAccount"}
        meta = {"name": NAME, "namespace": namespace}
        await client.create({**account, "metadata": meta})
        await self._rights("Role", NAME, ALL_BUT_LEASES)
        await self._rights("ClusterRole", f"{namespace}-{NAME}", REVIEWS)
        await self._rights("Role", RENEWS, LEASES, bind=False)
        await self.may_renew()
        token = (await client.token(NAME, namespace=namespace)).token
        written = yaml.safe_load(self._here.cluster.kubeconfig.read_text())
        for each in written["users"]:
            each["user"] = {"token": token}
        self.kubeconfig.touch(mode=0o600)
        self.kubeconfig.write_text(yaml.safe_dump(written))

    async def may_renew(self) -> None:
        await self._bind("Role", RENEWS)
        await self._until(True)

    async def may_not_renew(self) -> None:
        """From now on the API server refuses it every write of a Lease."""
        await self._delete("RoleBinding", RENEWS)
        await self._until(False)

    async def remove(self) -> None:
        name = f"{self._here.namespace}-{NAME}"
        await self._delete("ClusterRoleBinding", name)
        await self._delete("ClusterRole", name)

    async def _rights(
        self, kind: str, name: str, rules: list[Plain], *, bind: bool = True
    ) -> None:
        made: Plain = {"apiVersion": f"{RBAC}/v1", "kind": kind}
        await self._here.client.create(
            {**made, "metadata": self._meta(kind, name), "rules": rules}
        )
        if bind:
            await self._bind(kind, name)

    async def _bind(self, kind: str, name: str) -> None:
        made: Plain = {"apiVersion": f"{RBAC}/v1", "kind": f"{kind}Binding"}
        role = {"apiGroup": RBAC, "kind": kind, "name": name}
        await self._here.client.create(
            {
                **made,
                "metadata": self._meta(kind, name),
                "roleRef": role,
                "subjects": self._subjects,
            }
        )

    def _meta(self, kind: str, name: str) -> Plain:
        there = {} if kind == "ClusterRole" else {"namespace": self._here.namespace}
        return {"name": name, **there}

    async def _delete(self, kind: str, name: str) -> None:
        client = self._here.client
        info = await client.discover(f"{RBAC}/v1", kind)
        namespace = None if kind.startswith("Cluster") else self._here.namespace
        with suppress(NotFound):
            await client.delete(info, name, namespace=namespace)

    async def _until(self, allowed: bool) -> None:
        """Wait until the server's own view of its rules has followed."""
        about = {"group": "coordination.k8s.io", "resource": "leases", "verb": "patch"}
        body: Plain = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "metadata": {},
            "spec": {
                "user": self._user,
                "resourceAttributes": {**about, "namespace": self._here.namespace},
            },
        }

        async def look() -> bool:
            answer = await self._here.client.create(body)
            return bool(answer["status"].get("allowed")) is allowed

        await eventually(look, every=0.02)


@asynccontextmanager
async def limited(here: Town, folder: Path) -> AsyncIterator[Limited]:
    """An account that has all rights; what it has in the whole cluster is removed."""
    made = Limited(here, folder / "limited.kubeconfig")
    try:
        await made.make()
        yield made
    finally:
        await made.remove()
