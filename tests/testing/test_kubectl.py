"""kubectl is bound to its cluster, ends with its caller, and tells no secrets."""

import asyncio
from pathlib import Path

import pytest

from tests.testing.helpers import is_alive, script
from trimtab.testing import KubectlFailed, eventually
from trimtab.testing.kubectl import Kubectl


def tool(folder: Path, text: str) -> Kubectl:
    program = script(folder / "kubectl", text)
    return Kubectl(
        program=program, kubeconfig=folder / "config", cache=folder / "cache"
    )


async def test_it_gets_its_own_kubeconfig_and_cache(tmp_path: Path) -> None:
    kubectl = tool(tmp_path, 'echo "$KUBECTL_KUBERC" "$@"')
    expected = (
        f"false --kubeconfig={tmp_path}/config --cache-dir={tmp_path}/cache get pods\n"
    )
    assert await kubectl.run("get", "pods") == expected
    assert kubectl.run_blocking("get", "pods") == expected


async def test_it_reads_what_it_is_given(tmp_path: Path) -> None:
    assert await tool(tmp_path, "cat").run("apply", "-f-", stdin="kind: Pod") == (
        "kind: Pod"
    )
    assert await tool(tmp_path, "cat").run("apply", "-f-") == ""


async def test_a_failure_tells_what_kubectl_said(tmp_path: Path) -> None:
    kubectl = tool(tmp_path, "echo ignored; echo pods not found >&2; exit 3")
    with pytest.raises(
        KubectlFailed, match="`kubectl get pods` failed with exit code 3: pods"
    ):
        await kubectl.run("get", "pods")
    with pytest.raises(KubectlFailed) as caught:
        kubectl.run_blocking("get", "pods")
    assert caught.value.stderr == "pods not found"


@pytest.mark.parametrize("words", [("--token", "s3cret"), ("--token=s3cret",)])
async def test_a_token_is_never_in_an_error(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    with pytest.raises(KubectlFailed) as caught:
        await tool(tmp_path, "exit 1").run(*words, "get", "pods")
    assert "s3cret" not in str(caught.value)
    assert "get pods" in str(caught.value)


async def test_it_is_killed_when_its_time_is_up(tmp_path: Path) -> None:
    kubectl, pid = tool(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 1000"), ""
    for within in (0.5, 10.0):  # the longer one if it did not even begin
        with pytest.raises(KubectlFailed, match=rf"did not finish within {within:g} s"):
            await kubectl.run("get", "pods", "--watch", within=within)
        if (tmp_path / "pid").exists() and (pid := (tmp_path / "pid").read_text()):
            break
    assert not is_alive(int(pid))
    with pytest.raises(KubectlFailed, match=r"did not finish within 0\.1 s"):
        kubectl.run_blocking("get", "pods", "--watch", within=0.1)


async def test_it_is_killed_when_its_caller_is_cancelled(tmp_path: Path) -> None:
    kubectl = tool(tmp_path, f"echo $$ > {tmp_path}/pid; exec sleep 1000")
    async with asyncio.TaskGroup() as group:
        task = group.create_task(kubectl.run("get", "pods", "--watch"))
        pid_file = tmp_path / "pid"
        pid = int(await eventually(lambda: pid_file.exists() and pid_file.read_text()))
        task.cancel()
    assert not is_alive(pid)
