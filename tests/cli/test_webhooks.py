"""Laws of ``trimtab run`` with webhooks: served where it is told, or one sentence."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from pathlib import Path

import pytest
import yaml

from tests.cli.commands import printed, refused
from trimtab.cli.loading import operator_in
from trimtab.client import Client, load
from trimtab.client.errors import Forbidden, NotFound, ServerError
from trimtab.testing import Cluster, eventually
from trimtab.testing.operating import forget

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
    for wrong, why in (
        ("--webhook-url=http://here", "write https://HOST:PORT"),
        ("--webhook-service=a/b", "is not a Service"),
        ("--webhook-port=x", "is not a port"),
    ):
        assert why in refused(capsys, "run", str(source), where, wrong)
    url = "--webhook-url=https://127.0.0.1:0"
    folder = "--webhook-certificates=/nowhere"
    again = ("--webhook-port=0", "--port=-1", "--no-leader")
    said = refused(capsys, "run", str(source), where, url, folder, *again)
    assert "It needs tls.crt and tls.key." in said
    other = source.with_name("others.py")
    other.write_text(SOURCE.format(name="others").replace("Post", "Other"))
    said = refused(capsys, "run", str(source), str(other), where, url)
    assert "posts, others have webhooks, which need a port each" in said


async def test_a_command_serves_webhooks_until_it_is_told_to_stop(
    cluster: Cluster,
    namespace: str,
    source: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    app = operator_in(source)
    config = load(kubeconfig=cluster.kubeconfig, namespace=namespace)
    async with Client(config) as client:
        definition = yaml.safe_load(printed(capsys, "crd", str(source)))
        await client.apply(definition, manager="tests", force=True)
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "trimtab", "run", str(source), "--port=-1"),
            *(f"--kubeconfig={cluster.kubeconfig}", f"--namespace={namespace}"),
            *("--webhook-url=https://127.0.0.1:0", "--webhook-port=0"),
            f"--namespaces={namespace}",
            stderr=asyncio.subprocess.DEVNULL,
            env=dict(os.environ),
        )
        body = {
            "apiVersion": "hooks.example.com/v1",
            "kind": "Post",
            "metadata": {"name": "a"},
            "spec": {},
        }

        async def says() -> bool:
            try:
                await client.create(body, dry_run=True)
            except Forbidden as error:
                return "say something" in str(error)
            except (NotFound, ServerError):  # it is not served, or nobody answers
                return False
            return False

        try:
            await eventually(says, within=20, every=0.1)
            process.send_signal(signal.SIGTERM)
            assert await asyncio.wait_for(process.wait(), 6) == 0
        finally:
            if process.returncode is None:
                process.kill()
                await process.wait()
            await forget(client, app)
