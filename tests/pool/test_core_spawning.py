"""Laws of templates and of the row of a new worker."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

from tests.pool.core_site import SMALL, site
from trimtab.api import Metadata, Quantity, crd
from trimtab.pool import templates
from trimtab.pool.accounts import Accounts
from trimtab.pool.kinds import (
    KINDS,
    Budgets,
    Shape,
    Worker,
    WorkerPool,
    WorkerPoolSpec,
)
from trimtab.pool.states import State
from trimtab.pool.swapping import Rows
from trimtab.testing import Cluster, eventually

TEMPLATE: dict[str, Any] = {
    "metadata": {"labels": {"app": "sql"}, "annotations": {"note": "x"}},
    "spec": {
        "containers": [
            {
                "name": "main",
                "image": "sql",
                "env": [{"name": "A", "value": "b"}],
                "resources": {"requests": {"cpu": "9", "gpu": "1"}},
            },
            {"name": "side", "image": "logs"},
        ],
        "volumes": [{"name": "data", "emptyDir": {}}],
        "someFutureField": {"kept": True},
    },
}


def pool(**spec: Any) -> WorkerPool:
    settings: dict[str, Any] = {"template": TEMPLATE, "shapes": [SMALL], **spec}
    return WorkerPool(
        metadata=Metadata(name="p", namespace="n", uid="pool uid"),
        spec=WorkerPoolSpec(**settings),
    )


def row(of: WorkerPool) -> Worker:
    made = templates.row(of, of.spec.shapes[0], name="w", spawner="a")
    metadata = Metadata(name="w", namespace="n", uid="u", labels=made.metadata.labels)
    return Worker(metadata=metadata, spec=made.spec)


def test_a_pod_is_the_whole_template_with_the_size_of_its_shape() -> None:
    made = templates.pod(pool(), row(pool()))
    main, side = made["spec"]["containers"]
    amounts = {"cpu": "500m", "memory": "256Mi"}
    assert main["resources"] == {
        "requests": {"gpu": "1", **amounts},
        "limits": amounts,
    }
    assert side == {"name": "side", "image": "logs"}
    assert made["spec"]["someFutureField"] == {"kept": True}
    assert made["metadata"]["labels"]["app"] == "sql"
    assert made["metadata"]["annotations"] == {"note": "x"}
    assert main["env"][0] == {"name": "A", "value": "b"}


def test_a_pod_belongs_to_its_worker_and_has_its_secret_and_no_token() -> None:
    made = templates.pod(pool(), row(pool()))
    (owner,) = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Worker", "u", True)
    secret = {"name": templates.VOLUME, "secret": {"secretName": "w"}}
    assert secret in made["spec"]["volumes"]
    assert made["spec"]["automountServiceAccountToken"] is False
    assert made["spec"]["restartPolicy"] == "Never"


def test_making_a_pod_does_not_change_the_template() -> None:
    one = pool()
    assert templates.pod(one, row(one)) == templates.pod(one, row(one))
    assert len(one.spec.template["spec"]["volumes"]) == 1


def test_a_revision_depends_on_what_a_worker_is_made_of_and_on_nothing_else() -> None:
    def revision(**spec: Any) -> str:
        of = pool(**spec)
        return templates.revision(of.spec, of.spec.shapes[0])

    same = revision()
    turned = {key: TEMPLATE[key] for key in reversed(TEMPLATE)}
    spelled = Shape(name="small", cpu=Quantity("0.5"), memory=Quantity("262144Ki"))
    assert revision(template=turned) == same
    assert revision(shapes=[spelled]) == same
    assert revision(minIdle=7, idleTTL=1) == same
    larger = Shape(name="small", cpu=Quantity("1"), memory=Quantity("256Mi"))
    others = [
        revision(shapes=[larger]),
        revision(port=1),
        revision(template={"spec": {"containers": []}}),
    ]
    assert len({same, *others}) == 4


def test_people_can_read_what_workers_do() -> None:
    (version,) = crd(Worker)["spec"]["versions"]
    columns = [each["name"] for each in version["additionalPrinterColumns"]]
    shown = [name for name in columns if name not in ("Holder", "Epoch", "Reason")]
    assert shown == ["State", "Tenant", "Shape", "Owner", "Age"]
    assert [crd(kind)["spec"]["names"]["shortNames"] for kind in KINDS] == [
        ["wp"],
        ["wk"],
        ["tl"],
        ["wc"],
    ]


@pytest.mark.cluster("embedded", "real")
async def test_the_slot_of_a_failed_spawn_is_free_only_when_its_row_is_over(
    cluster: Cluster, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where a write that was broken off before arrives in the middle of it."""
    async with site(cluster, namespace) as here:
        read, leave = Rows.read, Accounts.leave
        late: list[str] = []
        freed: list[State] = []

        async def read_early(rows: Rows, worker: Worker) -> Worker:
            found = await read(rows, worker)
            name = worker.metadata.name
            if name not in late:
                late.append(name)
                body = {"metadata": {"annotations": {"late": "write"}}}
                await here.client.patch(Worker, name, body, namespace=namespace)
            return found

        async def left(
            accounts: Accounts, pool: WorkerPool, tenant: str, names: Iterable[str]
        ) -> None:
            rows = {each.metadata.name: each for each in await here.workers()}
            freed.extend(rows[name].status.state for name in names)
            await leave(accounts, pool, tenant, names)

        monkeypatch.setattr(Rows, "read", read_early)
        monkeypatch.setattr(Accounts, "leave", left)
        # There is no node, so no pod becomes ready.
        budgets = Budgets(spawn=1, activation=1, acquire=1)
        await here.pool(minIdle=1, maxWorkers=1, budgets=budgets)
        async with here.replica():
            await eventually(lambda: len(freed) > 0, within=20.0)
        assert late
        assert set(freed) == {State.RETIRED}
