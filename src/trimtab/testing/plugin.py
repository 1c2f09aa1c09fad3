"""The pytest plugin: a cluster for each test that asks for one.

The fixture `cluster` is an embedded one, which takes about a second; `--cluster=real`
makes it a real control plane, `--cluster=current` the cluster of the user's kubeconfig.
There is one for the whole run, started only if some test asks.

Every test that uses it carries the marker `cluster`, by itself. A test that can use
only some kinds, or that starts its own clusters, names them:
`@pytest.mark.cluster("real")`. In a run with another kind it is deselected rather than
skipped: nobody asked for it, so a run without it is complete.
"""

import contextlib
import re
import secrets
from collections.abc import Iterator
from typing import get_args

import pytest

from trimtab.testing.cluster import Cluster, started
from trimtab.testing.errors import ClusterError
from trimtab.testing.options import Kind, Options

KINDS: tuple[Kind, ...] = get_args(Kind)

FIXTURE = "cluster"
MARKER = "cluster"

_left_out = pytest.StashKey[list[pytest.Item]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("trimtab")
    group.addoption(
        "--cluster",
        choices=KINDS,
        default="embedded",
        help="where the tests that need a cluster run: on Trimtab's own (embedded, the "
        "default) or on a real control plane, either of them started for this run, or "
        "on the cluster of your current kubeconfig",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        f"{MARKER}(*kinds): needs a cluster, of one of these kinds if any are given; "
        "set on every test that uses the fixture `cluster`",
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    """Mark what uses the fixture; leave out what this run has no cluster for.

    First of all, so that `-m cluster` sees the marks.
    """
    for item in items:
        uses = FIXTURE in getattr(item, "fixturenames", ())
        # One that is there may name kinds, and the closest would hide it.
        if uses and item.get_closest_marker(MARKER) is None:
            item.add_marker(MARKER)
    chosen: Kind = config.getoption("--cluster")
    left_out = [item for item in items if not _runs_on(item, chosen)]
    config.stash[_left_out] = left_out
    if left_out:
        items[:] = [item for item in items if item not in left_out]
        config.hook.pytest_deselected(items=left_out)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    left_out = config.stash.get(_left_out, [])
    if left_out:
        kinds = sorted({kind for item in left_out for kind in _kinds(item)})
        ways = " or ".join(f"--cluster={kind}" for kind in kinds)
        need = "test needs" if len(left_out) == 1 else "tests need"
        terminalreporter.write_line(
            f"{len(left_out)} {need} another cluster and did not run: use {ways}."
        )


@pytest.fixture(scope="session")
def cluster_options() -> Options:
    """What the run's real cluster is made of; override it in your conftest.py."""
    return Options()


@pytest.fixture(scope="session")
def cluster(
    request: pytest.FixtureRequest, cluster_options: Options
) -> Iterator[Cluster]:
    """The cluster of this run, started when the first test asks for it.

    It belongs to no event loop, so tests with loops of their own may share it.
    """
    kind: Kind = request.config.getoption("--cluster")
    with contextlib.ExitStack() as stack:
        try:
            ready = stack.enter_context(started(kind, options=cluster_options))
        except ClusterError as error:
            pytest.fail(str(error), pytrace=False)
        yield ready


@pytest.fixture
def namespace(cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[str]:
    """The name of a fresh namespace, whose deletion is asked for after the test.

    Nobody waits for the deletion. On a real cluster without controllers it never
    ends, which harms nothing, as the name is used only once.
    """
    name = _namespace_name(request.node.name)
    if cluster.kind == "embedded":
        # Here, because ssl and http cost every pytest run that starts no cluster.
        from trimtab.testing.embedded import embedded_namespace

        with embedded_namespace(cluster.plane, name):
            yield name
        return
    run = cluster.tool.run_blocking
    run("create", "namespace", name)
    if cluster.controllers:  # no Pod can be made until this is there
        run("wait", "--for=create", "serviceaccount/default", f"--namespace={name}")
    yield name
    run("delete", "namespace", name, "--wait=false", "--ignore-not-found", within=10.0)


def _kinds(item: pytest.Item) -> tuple[Kind, ...]:
    """The kinds of cluster that a test can use, as its marker says; () is any."""
    marker = item.get_closest_marker(MARKER)
    return marker.args if marker else ()


def _runs_on(item: pytest.Item, chosen: Kind) -> bool:
    if item.get_closest_marker(MARKER) is None:
        return True
    return chosen in (_kinds(item) or KINDS)


def _namespace_name(test: str) -> str:
    """A valid namespace name, unique, that tells people which test made it."""
    words = re.sub(r"[^a-z0-9]+", "-", test.lower().removeprefix("test_"))
    return f"{words[:50].strip('-') or 'test'}-{secrets.token_hex(4)}"
