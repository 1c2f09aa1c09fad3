"""The first page: a whole operator. Each Website becomes a Deployment.

Run it on the cluster of your kubeconfig: ``trimtab run examples/website.py``.
"""

from __future__ import annotations

import trimtab
from trimtab import Context, Metadata, Resource, Result, Scope, Spec, Status, field
from trimtab.api import LabelSelector
from trimtab.kinds import (
    Container,
    Deployment,
    DeploymentSpec,
    PodSpec,
    PodTemplateSpec,
)


class WebsiteSpec(Spec):
    """What somebody wants on the web."""

    image: str = field(min_length=1, doc="The container image to serve.")
    replicas: int = field(default=1, minimum=0, maximum=100)


class WebsiteStatus(Status):
    """What the operator made of it."""

    deployment: str = ""
    wished: int = 0
    ready: int = 0


class Website(Resource, group="example.com", version="v1", short="web"):
    """A website, and how many copies of it should run."""

    spec: WebsiteSpec
    status: WebsiteStatus = WebsiteStatus()


app = trimtab.Operator("websites")


@app.reconciles(Website, scope=Scope(everything=True), owns=[Deployment])
async def website(site: Website, ctx: Context) -> Result:
    """Look at what is, make what should be, say what was made."""
    deployment = await ctx.apply(deployment_for(site))
    return ctx.done(
        status=WebsiteStatus(
            deployment=deployment.metadata.name,
            wished=site.spec.replicas,
            ready=deployment.status.readyReplicas,
        )
    )


def deployment_for(site: Website) -> Deployment:
    labels = {"website": site.metadata.name}
    return Deployment(
        metadata=Metadata(name=site.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=site.spec.replicas,
            selector=LabelSelector(matchLabels=labels),
            template=PodTemplateSpec(
                metadata=Metadata(labels=labels),
                spec=PodSpec(containers=[Container(name="web", image=site.spec.image)]),
            ),
        ),
    )
