"""``trimtab vmafx tenants list|check``: who is served, and why a token is not.

What ``check`` says is for who runs the platform: callers are never told.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trimtab.cli import common

if TYPE_CHECKING:
    from trimtab.operators.vmafx.tenancy.judging import Entry, Verdict
    from trimtab.operators.vmafx.tenancy.opening import Tenancy

ABOUT = "Tenants: whose tokens a gateway accepts."
LIST = "Show the tenants of a namespace, or of a file, and what is wrong with them."
CHECK = """
Say whose token it is, and what its owner may be; or why it is refused. Keys are read
from the issuers, as a gateway reads them. The exit code is 1 for a refusal.
"""
OBJECTS = "objects"
_HEAD = ("TENANT", "NAMESPACES", "ISSUER", "READY", "REASON")


def add(commands: argparse._SubParsersAction[Any]) -> None:
    """Describe the arguments."""
    made = commands.add_parser("tenants", help="who is served", description=ABOUT)
    inner = made.add_subparsers(metavar="VERB", required=True)
    listed = inner.add_parser("list", help="show the tenants", description=LIST)
    check = inner.add_parser("check", help="look at a token", description=CHECK)
    check.add_argument(
        "token",
        nargs="?",
        default="-",
        metavar="FILE",
        help="with the token in it (default: what is typed in)",
    )
    add_authority(check)
    for each, call in ((listed, _list), (check, _check)):
        each.set_defaults(run=_run, call=call)
        each.add_argument(
            "--namespace", "-n", help="of the gateway (default: the context's)"
        )
        each.add_argument(
            "--file", type=Path, help="with the tenants, instead of a cluster's objects"
        )
        common.add_cluster(each)


def add_authority(made: argparse.ArgumentParser) -> None:
    """Describe who vouches for issuers."""
    made.add_argument(
        "--issuer-ca",
        type=Path,
        metavar="FILE",
        help="PEM of who vouches for the servers of issuers (default: the system's)",
    )


def tenancy_of(
    named: str, authority: Path | None, environment: Mapping[str, str] = os.environ
) -> Tenancy | None:
    """Where a gateway has its tenants from: objects, a file, or one provider.

    Errors: :class:`ConfigError` for two of them at once.
    """
    from trimtab.client import ConfigError
    from trimtab.operators.vmafx.tenancy.opening import Tenancy, provider

    issuer = environment.get("VMAFX_AUTH_ISSUER", "")
    keys = environment.get("VMAFX_JWKS_ENDPOINT", "")
    if not (named or issuer or keys):
        return None
    if named and (issuer or keys):
        raise ConfigError(
            "There are tenants or there is one provider (VMAFX_AUTH_ISSUER): not both."
        )
    spec = None
    if not named:
        spec = provider(
            issuer=issuer,
            keys=keys,
            audience=environment.get("VMAFX_AUTH_AUDIENCE", ""),
            tenant=environment.get("VMAFX_AUTH_TENANT_CLAIM", ""),
            roles=environment.get("VMAFX_AUTH_ROLES_CLAIM", ""),
        )
    return Tenancy(
        file=None if named in ("", OBJECTS) else Path(named),
        provider=spec,
        authority=_authority(authority),
    )


def _authority(file: Path | None) -> bytes | None:
    return common.contents(file, what="who vouches for issuers") if file else None


def _run(options: argparse.Namespace) -> int:
    return common.running(_called(options))


async def _called(options: argparse.Namespace) -> int:
    with common.needing("vmafx", what="The tenants of vmafx"):
        entries = await _entries(options)
    code: int = await options.call(options, entries)
    return code


async def _entries(options: argparse.Namespace) -> list[Entry]:
    from trimtab.client import Client
    from trimtab.operators.vmafx.tenancy import reading

    if options.file is not None:
        found: list[Entry] = await reading.from_file(options.file)()
        return found
    async with Client(common.config_of(options, namespace=options.namespace)) as client:
        found = await reading.from_server(client, client.config.namespace)()
        return found


async def _list(options: argparse.Namespace, entries: list[Entry]) -> int:
    from trimtab.operators.vmafx.tenancy.judging import judged

    verdicts = judged(sorted(entries))
    rows = [_HEAD, *map(_row, verdicts)]
    widths = [max(len(row[column]) for row in rows) for column in range(len(_HEAD))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        print("   ".join(cells).rstrip())
    for each in verdicts:
        if not each.is_ready:
            print(f"{each.name}: {each.message}")
    return 0


def _row(verdict: Verdict) -> tuple[str, ...]:
    from trimtab.operators.vmafx.tenancy.judging import places_of

    spec = verdict.spec
    places = ",".join(places_of(spec))
    return (
        spec.tenantId,
        places,
        spec.oidc.issuer,
        str(verdict.is_ready),
        verdict.reason,
    )


async def _check(options: argparse.Namespace, entries: list[Entry]) -> int:
    import asyncio
    from datetime import UTC, datetime

    from trimtab.client.calling import Caller
    from trimtab.operators.vmafx.roots import Roots
    from trimtab.operators.vmafx.tenancy.identities import Doorkeeper
    from trimtab.operators.vmafx.tenancy.keys import Keys
    from trimtab.operators.vmafx.tenancy.registry import Registry

    token = await asyncio.to_thread(_token, options.token)
    registry = Registry(home="", roots=Roots())
    registry.load(entries, now=asyncio.get_running_loop().time())
    calls = Caller()
    keys = Keys(calls, ca=_authority(options.issuer_ca))
    doorkeeper = Doorkeeper(registry, keys, now=lambda: datetime.now(UTC))
    try:
        async with asyncio.TaskGroup() as group:
            reading = group.create_task(keys.run())
            code, sentence = await _said(doorkeeper, token)
            reading.cancel()
    finally:
        await calls.close()
    print(sentence)
    return code


async def _said(doorkeeper: Any, token: str) -> tuple[int, str]:
    from trimtab.operators.vmafx.tenancy.keys import NoKeys
    from trimtab.operators.vmafx.tenancy.tokens import Refused

    try:
        found = await doorkeeper.resolved(token)
    except (Refused, NoKeys) as error:
        return 1, f"Refused. {error}"
    roles = ", ".join(sorted(found.roles)) or "nothing"
    where = found.namespace or "no namespace"
    return 0, f"Accepted as {found.tenant}, with {roles}; its jobs go to {where}."


def _token(file: str) -> str:
    if file == "-":
        return sys.stdin.read(1 << 16).strip()
    return (
        common.contents(Path(file), what="the token").decode(errors="replace").strip()
    )
