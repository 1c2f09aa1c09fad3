"""``trimtab vmafx gateway``: what nodes pull their jobs from, and clients call."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common
from trimtab.cli.vmafx import tenants

if TYPE_CHECKING:
    from trimtab.client import Config
    from trimtab.operators.vmafx.gateway import GatewayOptions

ABOUT = """
Serve the gRPC of vmafx, and its HTTP, over the VmafxJobs of a cluster. Any number of
these may run beside each other. Callers prove who they are with tokens of service
accounts, and may do what RBAC lets them; or, where there are tenants, with tokens of
their issuers.
"""
TENANTS = "VMAFX_TENANTS"
ROOTS = "VMAFX_SCORING_ROOTS"


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser(
        "gateway", help="give jobs to nodes, take their results", description=ABOUT
    )
    made.set_defaults(run=run)
    common.add_cluster(made)
    made.add_argument(
        "--namespace", "-n", help="where its nodes are kept (default: the context's)"
    )
    made.add_argument(
        "--everywhere", action="store_true", help="serve the jobs of all namespaces"
    )
    made.add_argument("--host", default="127.0.0.1", help="(default: 127.0.0.1)")
    made.add_argument(
        "--port", type=common.port, default=9090, help="0 is any (default: 9090)"
    )
    made.add_argument(
        "--http",
        type=common.port,
        metavar="PORT",
        help="serve /v1/score, /healthz, /readyz and /metrics there; 0 is any "
        "(default: not at all)",
    )
    made.add_argument(
        "--external-metrics",
        action="store_true",
        help="tell autoscalers there what waits, as external.metrics.k8s.io",
    )
    made.add_argument("--certificate", type=Path, metavar="FILE", help="of its TLS")
    made.add_argument("--key", type=Path, metavar="FILE", help="of its TLS")
    made.add_argument(
        "--names",
        type=common.names,
        default=(),
        metavar="NAMES",
        help="what nodes and clients call it, with commas between: it makes its own "
        "certificate for them, and publishes whom to trust in the ConfigMap "
        "vmafx-gateway",
    )
    _add_trust(made)
    made.add_argument(
        "--score", action="store_true", help="score as well, while callers wait"
    )
    made.add_argument("--ffmpeg", default="", help="the ffmpeg to measure with")
    common.add_log(made)


def _add_trust(made: argparse.ArgumentParser) -> None:
    """What may be scored, and who may ask for it."""
    made.add_argument(
        "--root",
        action="append",
        default=[],
        metavar="FOLDER|URL",
        help="what may be scored lies below it; may be repeated. Without one every "
        f"input is refused (default: {ROOTS}, separated by colons or spaces)",
    )
    made.add_argument(
        "--tenants",
        default=os.environ.get(TENANTS, ""),
        metavar="objects|FILE",
        help="accept the tokens of tenants and no others: those of the VmafxTenants in "
        f"its namespace, or of a file (default: {TENANTS})",
    )
    tenants.add_authority(made)
    made.add_argument(
        "--no-auth",
        action="store_true",
        help="let everybody do everything: on loopback only",
    )


def run(options: argparse.Namespace) -> int:
    """Serve until told to stop."""
    from trimtab.runtime import logs

    logs.setup(level=options.log.upper())
    config = common.config_of(options, namespace=options.namespace)
    common.running(_serve(options, config, _settings(options, config)))
    return 0


def roots_of(given: list[str], setting: str) -> tuple[str, ...]:
    """What the arguments name, else what the environment does."""
    # A colon separates folders, but is part of an address.
    named = setting.replace("://", "\0").replace(":", " ").replace("\0", "://").split()
    return tuple(given or named)


def _settings(options: argparse.Namespace, config: Config) -> GatewayOptions:
    from trimtab.cache import Scope
    from trimtab.client import ConfigError
    from trimtab.operators.vmafx.gateway import GatewayOptions
    from trimtab.operators.vmafx.roots import Roots

    if (options.certificate is None) != (options.key is None):
        raise ConfigError("A certificate needs its key: name both files, or none.")
    if options.external_metrics and options.http is None:
        raise ConfigError("--external-metrics are served by HTTP: name its --http.")
    tenancy = tenants.tenancy_of(options.tenants, options.issuer_ca)
    _check_open(options, tenancy is not None)
    everywhere = Scope(everything=True)
    here = Scope(namespaces=(config.namespace,))
    return GatewayOptions(
        namespace=config.namespace,
        # Tenants have namespaces of their own.
        scope=everywhere if options.everywhere or tenancy else here,
        host=options.host,
        port=options.port,
        http=options.http,
        external_metrics=options.external_metrics,
        certificate=options.certificate,
        key=options.key,
        names=options.names,
        roots=Roots(roots_of(options.root, os.environ.get(ROOTS, ""))),
        tenancy=tenancy,
    )


def _check_open(options: argparse.Namespace, has_tenants: bool) -> None:
    from trimtab.client import ConfigError

    if options.no_auth and has_tenants:
        raise ConfigError("Who is let in by tokens of tenants needs one: no --no-auth.")
    if options.no_auth and not options.host.startswith(("127.", "localhost", "[::1]")):
        raise ConfigError(
            f"On {options.host} others can call: --no-auth is for loopback only."
        )


async def _serve(
    options: argparse.Namespace, config: Config, settings: GatewayOptions
) -> None:
    from contextlib import AsyncExitStack
    from datetime import UTC, datetime
    from random import SystemRandom

    from trimtab.cli import allowed
    from trimtab.cli.vmafx.scorers import scorer
    from trimtab.client import Client
    from trimtab.operators.vmafx.gateway import serving
    from trimtab.operators.vmafx.kinds import VmafxJob
    from trimtab.operators.vmafx.roles import Everybody
    from trimtab.operators.vmafx.tenancy.kinds import VmafxTenant
    from trimtab.runtime.access import Reviews
    from trimtab.runtime.signals import Signals

    with Signals() as signals:
        async with AsyncExitStack() as stack:
            client = await stack.enter_async_context(Client(config))
            where = settings.scope.namespaces
            await allowed.check_reads(client, VmafxJob, namespaces=where)
            if options.tenants == tenants.OBJECTS:
                home = (settings.namespace,)
                await allowed.check_reads(client, VmafxTenant, namespaces=home)
            measure = scorer(ffmpeg=options.ffmpeg, threads=0)
            served = await stack.enter_async_context(
                serving(
                    client,
                    judge=Everybody() if options.no_auth else Reviews(client),
                    options=settings,
                    now=lambda: datetime.now(UTC),
                    random=SystemRandom(),
                    scorer=await stack.enter_async_context(measure)
                    if options.score
                    else None,
                )
            )
            print(f"Serving on {settings.host}:{served.grpc}.", flush=True)
            if served.http:
                print(f"HTTP on {settings.host}:{served.http}.", flush=True)
            await signals.stopped.wait()
