"""Laws of what is admitted: all that may be meant, and no nonsense."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from random import Random

import pytest

from tests.operators.vmafx.platform import Platform, platform
from trimtab.api import Metadata
from trimtab.client import Invalid
from trimtab.operators.vmafx import admission
from trimtab.operators.vmafx.kinds import GROUP, VmafxJob, VmafxJobSpec
from trimtab.operators.vmafx.operator import make
from trimtab.runtime import Refused, Review
from trimtab.testing import Cluster
from trimtab.testing.errors import KubectlFailed


async def judged(reference: str, **spec: object) -> list[str]:
    """What is said of a job, which is taken."""
    given = {"distorted": "/clips/b.mp4", **spec}
    job = VmafxJob(spec=VmafxJobSpec(reference=reference, **given))  # type: ignore[arg-type]
    review: Review[VmafxJob] = Review("CREATE")
    await admission.job(job, review)
    return review.warnings


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("/clips/a\n.mp4", "control characters"),
        ("/clips/\0", "control characters"),
        ("http:/clips/a.mp4", "lacks the slashes"),
        ("s3:bucket/a.mp4", "lacks the slashes"),
        ("https:///a.mp4", "names no host"),
        ("s3:///a.mp4", "names no host"),
        ("http://[::1/a.mp4", "is no address"),
        ("file://nas/a.mp4", "is on another host"),
    ],
)
async def test_what_nothing_can_be_at_is_refused_and_named(text: str, why: str) -> None:
    with pytest.raises(Refused, match=why) as refused:
        await judged(text)
    assert str(refused.value).startswith("spec.reference: ")
    assert refused.value.status == 422


async def test_what_may_be_meant_is_taken_with_a_warning() -> None:
    for text in ("/a.mp4", "file:///a.mp4", "https://h/a.mp4?sig=1", "s3://b/a.y4m"):
        assert await judged(text) == []
    assert "whatever folder" in (await judged("a.mp4"))[0]
    assert "whatever folder" in (await judged("take2:final.mp4"))[0]
    assert "reads gs://" in (await judged("gs://b/a.mp4"))[0]
    said = await judged("https://me:secret@h/a.mp4")
    assert "reads the password" in said[0]
    assert "secret" not in said[0]
    assert "is the reference" in (await judged("/clips/b.mp4"))[0]
    assert "no name of a model" in (await judged("/a.mp4", model="path=/m"))[0]
    assert "before it begins" in (await judged("/a.mp4", cancel=True))[0]


async def test_whoever_cancels_a_job_is_not_held_up_by_its_inputs() -> None:
    old = VmafxJob(spec=VmafxJobSpec(reference="http:/a", distorted="http:/b"))
    await admission.job(old, Review("UPDATE", old=old))


def test_every_kind_is_asked_about_and_none_of_it_is_needed() -> None:
    app = make(random=Random(1))
    asked = {hook.kind for hook in app.webhooks.hooks}
    assert asked == {kind for kind in app.kinds() if kind.__resource__.group == GROUP}
    assert app.optional_webhooks


pytest_cluster = pytest.mark.cluster("embedded", "real")


@pytest.fixture
async def here(
    cluster: Cluster, namespace: str, tmp_path: Path
) -> AsyncIterator[Platform]:
    async with platform(cluster, namespace, tmp_path, webhooks=True) as made:
        yield made


MANIFEST = """
apiVersion: vmafx.dev/v1
kind: VmafxJob
metadata: {name: job}
spec: {reference: "https:///a.mp4", distorted: /b.mp4}
---
apiVersion: vmafx.dev/v1
kind: VmafxTenant
metadata: {name: acme}
spec:
  tenantId: acme
  oidc: {issuer: https://id.example.com, jwksEndpoint: http://id.example.com/keys}
---
apiVersion: vmafx.dev/v1
kind: VmafxModelTraining
metadata: {name: model}
spec:
  baseModel: tiny
  algorithm: online-sgd-ema
  outputRegistry: oci://example.com/models
  checkpoint: {interval: soon}
---
apiVersion: vmafx.dev/v1
kind: VmafxNode
metadata: {name: gpu}
spec: {gpuVendor: nvidia, image: example.com/node}
"""


@pytest_cluster
async def test_the_server_asks_and_people_read_the_answer(
    here: Platform, cluster: Cluster
) -> None:
    with pytest.raises(KubectlFailed) as failed:
        await cluster.kubectl("apply", "-n", here.namespace, "-f-", stdin=MANIFEST)
    said = failed.value.stderr
    assert 'webhook "job.vmafxjobs.vmafx.dev" denied the request: ' in said
    assert "spec.reference: https:///a.mp4 names no host." in said
    assert "spec.oidc.jwksEndpoint: keys from http://" in said
    assert "'soon' is no duration" in said
    assert "nothing here starts a node" in said


@pytest_cluster
async def test_numbers_that_a_wire_cannot_carry_are_refused(here: Platform) -> None:
    for spec in (
        {"priority": 2**31},
        {"deadlineSeconds": 10**12},
        {"ttlSecondsAfterFinished": 10**12},
        {"priority": -1},
    ):
        body = {
            "apiVersion": "vmafx.dev/v1",
            "kind": "VmafxJob",
            "metadata": {"name": "job"},
            "spec": {"reference": "/a.mp4", "distorted": "/b.mp4", **spec},
        }
        with pytest.raises(Invalid, match=next(iter(spec))):
            await here.client.create(body)


@pytest_cluster
async def test_only_cancel_and_the_time_to_live_of_a_job_change(here: Platform) -> None:
    spec = VmafxJobSpec(reference="/a.mp4", distorted="/b.mp4")
    where = Metadata(name="job", namespace=here.namespace)
    await here.client.create(VmafxJob(metadata=where, spec=spec))
    for change in (
        {"reference": "/c.mp4"},
        {"model": "vmaf_4k_v0.6.1"},
        {"backend": "cpu"},
        {"priority": 5},
        {"maxAttempts": 5},
        {"deadlineSeconds": 60},
    ):
        with pytest.raises(Invalid, match="create another job"):
            await here.client.patch(
                VmafxJob, "job", {"spec": change}, namespace=here.namespace
            )
    allowed = {"ttlSecondsAfterFinished": 60, "cancel": True}
    await here.client.patch(
        VmafxJob, "job", {"spec": allowed}, namespace=here.namespace
    )
    with pytest.raises(Invalid, match="stays so"):
        await here.client.patch(
            VmafxJob, "job", {"spec": {"cancel": False}}, namespace=here.namespace
        )
