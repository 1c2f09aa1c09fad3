"""Access to workers: who may have one, by the API server's own reviews.

A caller may have a worker if RBAC lets it:

- the verb ``acquire`` on the WorkerPool: workers for any tenant;
- the verb ``acquire`` on ``workerpools/tenants`` of the name ``POOL:TENANT``: for one.
"""

from __future__ import annotations

from typing import Final

from trimtab.cache import Key
from trimtab.pool.kinds import WorkerPool
from trimtab.runtime.access import Identity, Reviews

TENANTS: Final = "tenants"


async def may(
    reviews: Reviews, caller: Identity, verb: str, pool: Key, *, tenant: str = ""
) -> bool:
    """Whether a caller may do this with a pool; for one tenant, if it names one."""
    namespace, name = pool
    if await reviews.may(caller, verb, WorkerPool, namespace=namespace, name=name):
        return True
    if not tenant:
        return False
    return await reviews.may(
        caller,
        verb,
        WorkerPool,
        namespace=namespace,
        name=f"{name}:{tenant}",
        subresource=TENANTS,
    )
