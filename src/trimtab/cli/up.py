"""``trimtab up``: an API server on this machine, until it is told to stop."""

from __future__ import annotations

import argparse
import json
import os
import shlex
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common, node

if TYPE_CHECKING:
    import asyncio

    from trimtab.embedded.server import Server

PORT = 6443
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
ABOUT = """
Start an API server that answers as Kubernetes does, and write a kubeconfig for it.
Pods run as processes of this machine, as the user that runs this; nothing is isolated,
so it is for pods that you trust. Control-C, or SIGTERM, stops it; the data stays.
"""


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("up", help="start an API server", description=ABOUT)
    made.set_defaults(run=run)
    _add_files(made)
    made.add_argument(
        "--port",
        type=common.port,
        metavar="N",
        help=f"where to listen; 0 is any free port (default: {PORT}, or any free port "
        "with --memory)",
    )
    made.add_argument(
        "--host",
        default="127.0.0.1",
        metavar="ADDRESS",
        help="where to listen (default: 127.0.0.1, which only this machine reaches)",
    )
    node.add_node(made)


def _add_files(made: argparse.ArgumentParser) -> None:
    place = made.add_mutually_exclusive_group()
    place.add_argument(
        "--data",
        type=Path,
        metavar="DIR",
        help="the folder that everything is kept in (default: "
        "${XDG_DATA_HOME:-~/.local/share}/trimtab)",
    )
    place.add_argument(
        "--memory", action="store_true", help="keep nothing: all is gone when it stops"
    )
    made.add_argument(
        "--kubeconfig",
        type=Path,
        metavar="FILE",
        help="where to write the kubeconfig; what the file says about other clusters "
        "stays (default: kubeconfig in the folder of the data)",
    )
    made.add_argument(
        "--ready-file",
        type=Path,
        metavar="FILE",
        help="a file to write when the server is ready, and to remove when it stops",
    )
    made.add_argument(
        "--tokens",
        type=Path,
        metavar="FILE",
        help="tokens that are let in besides the administrator's certificate, in the "
        "format of kube-apiserver's --token-auth-file",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until a signal comes."""
    import logging

    logging.basicConfig(format="%(levelname)s %(name)s: %(message)s")
    common.running(_serve(options))
    return 0


async def _serve(options: argparse.Namespace) -> None:
    node.check_images(options)
    with common.needing("embedded", what="The API server"):
        from trimtab.embedded.authentication import read_tokens
        from trimtab.embedded.server import Server

    data = None if options.memory else _absolute(options.data or default_data())
    port = options.port
    if port is None:
        port = 0 if options.memory else PORT
    server = Server(
        data=data,
        host=options.host,
        port=port,
        kubeconfig=_absolute(options.kubeconfig),
        tokens=read_tokens(options.tokens) if options.tokens else (),
    )
    stop = stop_on_signals()
    async with server, node.beside(options, server, data=data) as name:
        with _ready(options.ready_file, server):
            _say(server, data, name)
            await stop.wait()


def stop_on_signals() -> asyncio.Event:
    """An event that the first signal sets; the second one ends the process at once."""
    import asyncio

    loop = asyncio.get_running_loop()
    stop = asyncio.Event()

    def stopped() -> None:
        stop.set()
        for number in SIGNALS:
            loop.remove_signal_handler(number)
            signal.signal(number, signal.SIG_DFL)

    for number in SIGNALS:
        loop.add_signal_handler(number, stopped)
    return stop


@contextmanager
def _ready(path: Path | None, server: Server) -> Iterator[None]:
    """Have the file that says so exist for as long as the server is ready."""
    from trimtab.embedded.files import write_private

    if path is None:
        yield
        return
    facts = {
        "server": server.url,
        "kubeconfig": str(server.kubeconfig),
        "pid": os.getpid(),
    }
    content = json.dumps(facts).encode() + b"\n"
    write_private(path, content, advice="name another file with --ready-file")
    try:
        yield
    finally:
        path.unlink(missing_ok=True)


def _say(server: Server, data: Path | None, name: str) -> None:
    kept = "in memory, gone when it stops" if data is None else str(data)
    lines = (
        f"The API server is ready at {server.url}",
        f"  data       {kept}",
        f"  node       {name or 'none'}",
        "",
        f"export KUBECONFIG={shlex.quote(str(server.kubeconfig))}",
        "",
        "Control-C stops it.",
    )
    print("\n".join(lines), flush=True)


def default_data() -> Path:
    """The user's own folder for what Trimtab keeps."""
    base = Path(os.environ.get("XDG_DATA_HOME", ""))
    # The XDG specification says that a relative path must be ignored.
    if not base.is_absolute():
        base = Path.home() / ".local" / "share"
    return base / "trimtab"


def _absolute(path: Path | None) -> Path | None:
    return None if path is None else path.expanduser().absolute()
