"""The templates of a new project; ``@name@`` and its like are filled in."""

from __future__ import annotations

from typing import Final

OPERATOR: Final = '''\
"""The operator: each @kind@ becomes a Deployment, and its status says how it goes."""

from __future__ import annotations

import trimtab
from trimtab import (
    Conditions,
    Context,
    LabelSelector,
    Metadata,
    Resource,
    Result,
    Scope,
    Spec,
    Status,
    field,
)
from trimtab.kinds import (
    Container,
    Deployment,
    DeploymentSpec,
    PodSpec,
    PodTemplateSpec,
)


class @kind@Spec(Spec):
    """What somebody wants."""

    image: str = field(min_length=1, doc="The container image to run.")
    replicas: int = field(default=1, minimum=0, maximum=100)


class @kind@Status(Status):
    """What the operator made of it."""

    ready: int = 0
    conditions: Conditions = Conditions()


class @kind@(Resource, group="@group@", version="v1alpha1"):
    """One @kind@."""

    spec: @kind@Spec
    status: @kind@Status = @kind@Status()


app = trimtab.Operator("@name@")


@app.reconciles(@kind@, scope=Scope(everything=True), owns=[Deployment])
async def reconcile(wish: @kind@, ctx: Context) -> Result:
    """Make what should be, and say what is."""
    deployment = await ctx.apply(deployment_for(wish))
    ready = deployment.status.readyReplicas
    ctx.condition(
        "Ready",
        ready >= wish.spec.replicas,
        reason="Running" if ready >= wish.spec.replicas else "Starting",
        message=f"{ready} of {wish.spec.replicas} are ready.",
    )
    return ctx.done(status=@kind@Status(ready=ready))


def deployment_for(wish: @kind@) -> Deployment:
    """The Deployment that a wish comes to."""
    labels = {"app.kubernetes.io/name": wish.metadata.name}
    container = Container(name="main", image=wish.spec.image)
    return Deployment(
        metadata=Metadata(name=wish.metadata.name, labels=labels),
        spec=DeploymentSpec(
            replicas=wish.spec.replicas,
            selector=LabelSelector(matchLabels=labels),
            template=PodTemplateSpec(
                metadata=Metadata(labels=labels), spec=PodSpec(containers=[container])
            ),
        ),
    )
'''

TESTS: Final = '''\
"""What the operator promises: once without a server, once on an embedded cluster."""

from __future__ import annotations

from trimtab import Metadata
from trimtab.kinds import Deployment
from trimtab.testing import Cluster, rehearse, running

from @package@.operator import @kind@, @kind@Spec, app


def wish(replicas: int = 1) -> @kind@:
    spec = @kind@Spec(image="example.com/image:1", replicas=replicas)
    return @kind@(metadata=Metadata(name="mine"), spec=spec)


async def test_one_reconcile_applies_a_deployment() -> None:
    done = await rehearse(app, wish(replicas=2))
    assert done.one(Deployment).spec.replicas == 2
    assert done.object.status.conditions["Ready"].status == "False"


async def test_a_change_reaches_the_deployment(
    cluster: Cluster, namespace: str
) -> None:
    async with running(app, cluster, namespace) as run:
        await run.client.create(wish())
        await run.condition(@kind@, "mine", status="False")
        await run.client.patch(@kind@, "mine", {"spec": {"replicas": 3}})
        await run.until(Deployment, "mine", lambda each: each.spec.replicas == 3)
        # No node runs here, so the test says what one would.
        said = {"status": {"replicas": 3, "readyReplicas": 3}}
        await run.client.patch(Deployment, "mine", said, subresource="status")
        made = await run.condition(@kind@, "mine")
        assert made.status.ready == 3
'''

PROJECT: Final = """\
[build-system]
requires = ["hatchling>=1.26"]
build-backend = "hatchling.build"

[project]
name = "@name@"
version = "0.1.0"
description = "A Kubernetes operator for @kind@ objects"
readme = "README.md"
requires-python = ">=3.11"
dependencies = ["trimtab>=@trimtab@"]

[project.optional-dependencies]
dev = ["trimtab[embedded]", "mypy", "pytest>=8", "pytest-asyncio", "ruff"]

[tool.hatch.build.targets.wheel]
packages = ["src/@package@"]

[tool.mypy]
strict = true
mypy_path = "src"

[tool.pytest.ini_options]
addopts = ["--import-mode=importlib", "--strict-markers"]
asyncio_mode = "auto"
asyncio_default_fixture_loop_scope = "function"
pythonpath = ["src"]
testpaths = ["tests"]

[tool.ruff.lint]
select = ["ASYNC", "B", "E", "F", "I", "RUF", "UP", "W"]
ignore = ["E501"] # the formatter's concern
"""

MAKEFILE: Final = """\
IMAGE ?= registry.example.com/@name@
VERSION ?= 0.1.0
OPERATOR := @package@.operator
export PYTHONPATH := src

.PHONY: dev test format crd rbac chart image

dev: # run on an embedded cluster, and begin anew at every save
	trimtab dev src/@package@/operator.py

test: # style, types, and tests on the embedded cluster
	ruff check .
	mypy --strict src tests
	pytest

format: # and mend what can be mended
	ruff check --fix .
	ruff format .

crd: # print the CRDs
	@trimtab crd $(OPERATOR)

rbac: # print the roles
	@trimtab rbac $(OPERATOR)

chart: # write the Helm chart
	trimtab chart $(OPERATOR) --output chart --image $(IMAGE) --version $(VERSION)

image: # build the container's image, with podman or docker
	$(or $(shell command -v podman),docker) build -f Containerfile -t \\
		$(IMAGE):$(VERSION) .
"""

CONTAINER: Final = """\
FROM python:3.13-slim AS build
COPY . /src
RUN pip install --no-cache-dir --no-compile --prefix=/install /src

FROM python:3.13-slim
COPY --from=build /install /usr/local
ENV PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1
USER 65532:65532
ENTRYPOINT ["trimtab"]
CMD ["run", "@package@.operator", "--host=0.0.0.0"]
"""

CI: Final = """\
name: ci
on:
  push:
    branches: [main]
  pull_request:
permissions:
  contents: read
jobs:
  test:
    runs-on: ubuntu-latest
    timeout-minutes: 15
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "3.13"
          cache: pip
      - run: pip install -e '.[dev]'
      - run: make test
      - run: make chart
      - run: helm lint --strict chart
"""

README: Final = """\
# @name@

A Kubernetes operator: each `@kind@` becomes a Deployment.

    pip install -e '.[dev]'
    make dev      # an embedded cluster, reload at every save
    make test     # style, types, and tests on the embedded cluster

While `make dev` runs, in another terminal (it says which KUBECONFIG to export):

    kubectl apply -f example.yaml
    kubectl get @plural@
    trimtab why @kind@ mine

To install it in a cluster:

    make image && podman push registry.example.com/@name@:0.1.0
    make chart
    helm install @name@ chart --namespace @name@ --create-namespace
"""

EXAMPLE: Final = """\
apiVersion: @group@/v1alpha1
kind: @kind@
metadata:
  name: mine
spec:
  image: docker.io/library/nginx:stable
  replicas: 2
"""

IGNORED: Final = """\
__pycache__/
*.egg-info/
.mypy_cache/
.pytest_cache/
.ruff_cache/
.venv/
chart/
dist/
"""

FILES: Final = {
    "README.md": README,
    "pyproject.toml": PROJECT,
    "Makefile": MAKEFILE,
    "Containerfile": CONTAINER,
    "example.yaml": EXAMPLE,
    ".gitignore": IGNORED,
    ".dockerignore": IGNORED + ".git/\ntests/\n",
    ".github/workflows/ci.yaml": CI,
    "src/@package@/__init__.py": '"""@name@: a Kubernetes operator."""\n',
    "src/@package@/py.typed": "",
    "src/@package@/operator.py": OPERATOR,
    "tests/test_operator.py": TESTS,
}
