"""Admission: what no rule of a CRD can say of jobs, nodes and what else there is.

Refused is only what can never come to anything; what may be a mistake is a warning, so
that every manifest that means something elsewhere is taken here too. While nobody
answers, everything passes: what is wrong with a job is then told by the node.
"""

from __future__ import annotations

import re
from urllib.parse import urlsplit

from trimtab.operators.vmafx.kinds import VmafxJob, VmafxNode
from trimtab.operators.vmafx.scaling import podspec as nodes
from trimtab.operators.vmafx.scaling.kinds import VmafxNodeSet
from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
from trimtab.operators.vmafx.training import podspec
from trimtab.operators.vmafx.training.kinds import VmafxModelTraining
from trimtab.runtime import Operator
from trimtab.runtime.webhooks import Refused, Review

_SCHEME = re.compile(r"^([A-Za-z][A-Za-z0-9+.-]+):(//)?")
_MODEL = re.compile(r"^[A-Za-z0-9_.-]+$")
_READ = frozenset({"file", "http", "https", "s3"})
_HOSTED = frozenset({"http", "https", "s3"})


def declare(app: Operator) -> None:
    """Have an operator asked about all kinds of video scoring."""
    app.validates(VmafxJob, name="job", failure_policy="Ignore")(job)
    app.validates(VmafxNode, name="node", failure_policy="Ignore")(node)
    app.validates(VmafxModelTraining, name="training", failure_policy="Ignore")(
        training
    )
    app.validates(VmafxTenant, name="tenant", failure_policy="Ignore")(tenant)
    app.validates(VmafxNodeSet, name="nodeset", failure_policy="Ignore")(nodeset)


async def job(seen: VmafxJob, review: Review[VmafxJob]) -> None:
    """Inputs that are addresses, if they look like some."""
    spec = seen.spec
    if review.old is not None:
        return  # inputs never change; whoever cancels a job is not held up
    for name, text in (("reference", spec.reference), ("distorted", spec.distorted)):
        _check_input(name, text)
        _doubt_input(name, text, review)
    if spec.reference == spec.distorted:
        review.warn("spec.distorted: it is the reference, which has a score by itself.")
    if spec.model is not None and not _MODEL.match(spec.model):
        review.warn(f"spec.model: {spec.model!r} is no name of a model here.")
    if spec.cancel:
        review.warn("spec.cancel: the job is cancelled before it begins.")


def _check_input(name: str, text: str) -> None:
    """Refuse what is an address, and one that nothing can be at."""
    if not text.isprintable():
        raise Refused(
            f"spec.{name}: an input has no control characters in its name.", status=422
        )
    found = _SCHEME.match(text)
    if found is None:
        return
    scheme, slashes = found[1].lower(), found[2]
    try:
        host = urlsplit(text).hostname or ""
    except ValueError:
        raise Refused(f"spec.{name}: {text} is no address.", status=422) from None
    if scheme in _READ and not slashes:
        raise Refused(
            f"spec.{name}: {text} lacks the slashes of an address; write {scheme}://.",
            status=422,
        )
    if scheme in _HOSTED and not host:
        raise Refused(f"spec.{name}: {text} names no host.", status=422)
    if scheme == "file" and host not in ("", "localhost"):
        raise Refused(
            f"spec.{name}: {text} is on another host, {host}; a file:// address has "
            "three slashes, as in file:///clips/a.mp4.",
            status=422,
        )


def _doubt_input(name: str, text: str, review: Review[VmafxJob]) -> None:
    found = _SCHEME.match(text)
    if found is None or not found[2]:
        if not text.startswith("/"):
            review.warn(f"spec.{name}: {text} is below whatever folder a node runs in.")
        return
    if found[1].lower() not in _READ:
        review.warn(f"spec.{name}: no node of this version reads {found[1]}://.")
    if urlsplit(text).password:
        review.warn(f"spec.{name}: whoever reads the job reads the password in it.")


async def node(seen: VmafxNode, review: Review[VmafxNode]) -> None:
    """A node that somebody made by hand."""
    if seen.spec.image is not None:
        review.warn("spec.image: nothing here starts a node from it.")


async def training(
    seen: VmafxModelTraining, review: Review[VmafxModelTraining]
) -> None:
    """What a trainer can be started with, and what outlives it."""
    if why := podspec.problem(seen):
        review.warn(why)
    elif not seen.spec.storage.claim and not seen.spec.storage.hostPath:
        review.warn("spec.storage: what is learned goes with the trainer's pod.")
    if podspec.is_pushed_by_people(seen):
        review.warn(
            f"spec.outputRegistry: no trainer pushes to {seen.spec.outputRegistry}; "
            "models are in its own folder."
        )


async def nodeset(seen: VmafxNodeSet, review: Review[VmafxNodeSet]) -> None:
    """A template that a pod can be made of."""
    try:
        nodes.pod(seen, seen.metadata.name)
    except nodes.BadTemplate as problem:
        raise Refused(str(problem), status=422) from None


async def tenant(seen: VmafxTenant, review: Review[VmafxTenant]) -> None:
    """Roles and addresses that fit together."""
    rbac, oidc = seen.spec.rbac, seen.spec.oidc
    if rbac.defaultRole not in rbac.allowedRoles:
        review.warn(f"spec.rbac.defaultRole: {rbac.defaultRole} is not allowed below.")
    if not oidc.jwksEndpoint.lower().startswith("https://"):
        review.warn("spec.oidc.jwksEndpoint: keys from http:// can be anybody's.")
