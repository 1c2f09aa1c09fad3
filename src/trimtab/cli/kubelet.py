"""``trimtab kubelet``: this machine as a node of the current cluster."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from trimtab.cli import common, node

ABOUT = """
Be a node of the cluster of the kubeconfig: run its pods as processes of this machine,
as the user that runs this. Nothing is isolated, so it is for pods that you trust.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("kubelet", help="be a node", description=ABOUT)
    made.set_defaults(run=run)
    common.add_cluster(made)
    node.add_images(made)
    made.add_argument("--name", help="the node's name (default: this machine's)")
    made.add_argument(
        "--folder",
        type=Path,
        metavar="DIR",
        help="where pods have their files (default: "
        "${XDG_DATA_HOME:-~/.local/share}/trimtab/nodes/NAME)",
    )
    made.add_argument(
        "--alone",
        action="store_true",
        help="also do what nobody else does in a cluster without a control plane: "
        "schedule pods, run Deployments, ReplicaSets, Jobs and CronJobs, and forward "
        "Services",
    )


def run(options: argparse.Namespace) -> int:
    """Run pods until a signal comes."""
    from trimtab.runtime import logs

    logs.setup(level="INFO")
    common.running(_run(options))
    return 0


async def _run(options: argparse.Namespace) -> None:
    import asyncio

    from trimtab.cli import allowed
    from trimtab.cli.up import default_data, stop_on_signals
    from trimtab.client import Client, TrimtabError
    from trimtab.kinds import Pod
    from trimtab.kubelet.assembly import Parts

    if not node.can_run_pods():
        raise TrimtabError("Pods can run as processes on Linux only.")
    name = options.name or node.node_name()
    folder = options.folder or default_data() / "nodes" / name
    config = common.config_of(options)
    stop = stop_on_signals()
    async with Client(config) as client:
        await allowed.check_reads(client, Pod)
        made = node.assembly(
            client,
            options,
            name=name,
            folder=_made(folder.expanduser().absolute()),
            server=config.server,
            parts=Parts(
                scheduler=options.alone,
                workloads=options.alone,
                services=options.alone,
                endpoint=True,
            ),
        )
        async with asyncio.TaskGroup() as group:
            running = group.create_task(made.run())
            ready = group.create_task(made.kubelet.ready.wait())
            await asyncio.wait((running, ready), return_when=asyncio.FIRST_COMPLETED)
            if ready.done():
                print(f"The node {name} is ready. Control-C stops it.", flush=True)
            await stop.wait()
            running.cancel()


def _made(folder: Path) -> Path:
    from trimtab.client import ConfigError

    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(
            f"{folder} cannot be used ({error.strerror}): name another folder for the"
            " files of pods with --folder, or see to its permissions."
        ) from error
    return folder
