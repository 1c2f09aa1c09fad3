"""Laws of ``trimtab run`` with webhooks: served where it is told, or one sentence."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml

from tests.cli.commands import printed, refused
from trimtab.cli.loading import operator_in
from trimtab.client import Client, load
from trimtab.client.errors import Forbidden, NotFound, ServerError
from trimtab.kinds import Secret
from trimtab.runtime.webhooks.configurations import ValidatingWebhookConfiguration
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import forget

URL = "--webhook-url=https://127.0.0.1:0"
pytestmark = pytest.mark.usefixtures("modules")

SOURCE = """
from trimtab import Operator, Refused, Resource, Review, Spec

class PostSpec(Spec):
    text: str = ""

class Post(Resource, group="hooks.example.com", version="v1"):
    spec: PostSpec

app = Operator("{name}")

@app.validates(Post)
def check(post: Post, review: Review) -> None:
    if not post.spec.text:
        raise Refused("spec.text: say something.")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    file = tmp_path / "posts.py"
    file.write_text(SOURCE.format(name="posts"))
    return file


def test_what_cannot_be_served_is_one_sentence(
    cluster: Cluster, source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    where = f"--kubeconfig={cluster.kubeconfig}"
    said = refused(capsys, "run", str(source), where, "--port=-1")
    assert "posts declares webhooks, and nothing says how the API server" in said
    other = source.with_name("others.py")
    other.write_text(SOURCE.format(name="others"))
    said = refused(capsys, "run", str(source), str(other), where, URL)
    assert "posts, others: There is a webhook check.posts.hooks.example.com" in said
    said = refused(capsys, "run", str(source), str(two_of(other)), where)
    assert "posts declares webhooks, and nothing says how the API server" in said


@pytest.mark.parametrize(
    ("options", "why"),
    [
        (["--webhook-url=http://here"], "write https://HOST:PORT"),
        (["--webhook-url=https://"], "write https://HOST:PORT"),
        (["--webhook-url=https://a:x"], "write https://HOST:PORT"),
        (["--webhook-url=https://u:p@a"], "write https://HOST:PORT"),
        (["--webhook-service=a/b"], "is not a Service"),
        (["--webhook-service=a:0"], "is not a Service"),
        (["--webhook-service=a", URL], "not allowed with argument"),
        (["--webhook-port=x"], "is not a port"),
        (["--webhook-port=70000"], "is not a port"),
        ([URL, "--webhook-inject-from=a/b"], "give both"),
        (
            [URL, "--webhook-certificates=x", "--webhook-inject-from=a"],
            "NAMESPACE/NAME",
        ),
        ([URL, "--webhook-certificates=/nowhere"], "It needs tls.crt and tls.key."),
        ([URL, "--webhook-certificates=posts.py"], "It needs tls.crt and tls.key."),
        ([URL, "--webhook-certificates=spoiled"], "cannot be read (no PEM"),
        ([URL, "--host=256.0.0.1"], "The webhooks cannot listen on 256.0.0.1:"),
        ([URL, "--webhook-port=TAKEN"], "another program has that port."),
    ],
)
def test_an_option_of_webhooks_that_makes_no_sense_is_one_sentence(
    cluster: Cluster,
    source: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    why: str,
) -> None:
    monkeypatch.chdir(source.parent)
    spoiled = source.with_name("spoiled")
    spoiled.mkdir()
    for name in ("tls.crt", "tls.key"):
        (spoiled / name).write_text("nonsense")
    where = (f"--kubeconfig={cluster.kubeconfig}", "--port=-1", "--no-leader")
    if not any(each.startswith("--webhook-port") for each in options):
        options = ["--webhook-port=0", *options]
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        given = [each.replace("TAKEN", port) for each in options]
        assert why in refused(capsys, "run", str(source), *where, *given)


async def test_a_command_serves_webhooks_until_it_is_told_to_stop(
    cluster: Cluster,
    namespace: str,
    source: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async with commanded(cluster, namespace, capsys, source) as client:
        await eventually(lambda: says(client, "Post"), within=20, every=0.1)


async def test_several_operators_are_asked_at_one_port(
    cluster: Cluster,
    namespace: str,
    source: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    other = two_of(source.with_name("others.py"))
    async with commanded(cluster, namespace, capsys, source, other) as client:
        for kind in ("Post", "Other"):
            await eventually(partial(says, client, kind), within=20, every=0.1)
        ports = set()
        for name in ("posts", "others"):
            found = await client.get(
                ValidatingWebhookConfiguration, f"{name}-{namespace}"
            )
            (entry,) = found.webhooks
            plain = await client.get(
                ValidatingWebhookConfiguration.__resource__, found.metadata.name
            )
            url = urlsplit(plain["webhooks"][0]["clientConfig"]["url"])
            assert url.path.endswith(entry.name)
            ports.add(url.port)
        assert len(ports) == 1
        secrets = [each async for each in client.list(Secret, namespace=namespace)]
        ours = [each.metadata.name for each in secrets if "tls.crt" in each.data]
        assert ours == ["posts-webhooks"]


def two_of(file: Path) -> Path:
    """An operator of another kind."""
    file.write_text(SOURCE.format(name="others").replace("Post", "Other"))
    return file


async def says(client: Client, kind: str) -> bool:
    """Whether an object without a text is refused."""
    body = {
        "apiVersion": "hooks.example.com/v1",
        "kind": kind,
        "metadata": {"name": "a"},
        "spec": {},
    }
    try:
        await client.create(body, dry_run=True)
    except Forbidden as error:
        return "say something" in str(error)
    except (NotFound, ServerError):  # it is not served, or nobody answers
        return False
    return False


@asynccontextmanager
async def commanded(
    cluster: Cluster,
    namespace: str,
    capsys: pytest.CaptureFixture[str],
    *sources: Path,
) -> AsyncIterator[Client]:
    """``trimtab run`` of some files, until it is told to stop."""
    apps = [operator_in(each) for each in sources]
    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with Client(config) as client:
        for each in sources:
            definition = yaml.safe_load(printed(capsys, "crd", str(each)))
            await client.apply(definition, manager="tests", force=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "run", *map(str, sources), "--port=-1"),
            *(f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}"),
            *(URL, "--webhook-port=0", f"--namespaces={namespace}"),
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(os.environ),
        )
        try:
            yield client
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 30) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            for app in apps:
                await forget(client, app)
