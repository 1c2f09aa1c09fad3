"""Git: the program, run with arguments of its own and nothing of the terminal's.

No shell reads what it is given, no option hides in an address or a branch, and it asks
nobody for a password.
"""

from __future__ import annotations

import os
import re
from base64 import b64encode
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from trimtab.client.commands import CommandFailed, output
from trimtab.client.errors import TrimtabError

SECONDS: Final = 300.0
"""For one command; large repositories take their time."""
SAID: Final = 2000
PROTOCOLS: Final = "file:git:http:https:ssh"
_BRANCH: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./+@#-]{0,249}")
_USER: Final = re.compile(r"(\w+://)[^/@\s]+@")


class GitFailed(TrimtabError):
    """Git did not do it; the message has what it said last."""


def check_branch(branch: str) -> str:
    """A branch that is one; an empty one means the default."""
    bad = ".." in branch or branch.endswith(("/", ".", ".lock")) or "@{" in branch
    if branch and (bad or not _BRANCH.fullmatch(branch)):
        raise GitFailed(f"{branch[:80]!r} is no name of a branch.")
    return branch


def check_url(url: str) -> str:
    """An address that git may be given."""
    if not url or url.startswith("-") or not url.isprintable() or "::" in url:
        raise GitFailed(f"{url[:80]!r} is no address of a repository.")
    return url


def credentials(tokens: Mapping[str, str]) -> dict[str, str]:
    """Variables that let git show a token to each of some hosts.

    In variables and not in arguments: everybody on a machine sees those.
    """
    made = {"GIT_CONFIG_COUNT": str(len(tokens))} if tokens else {}
    for number, (host, token) in enumerate(tokens.items()):
        basic = b64encode(f"oauth2:{token}".encode()).decode()
        made[f"GIT_CONFIG_KEY_{number}"] = f"http.https://{host}/.extraHeader"
        made[f"GIT_CONFIG_VALUE_{number}"] = f"Authorization: Basic {basic}"
    return made


async def git(
    *arguments: str,
    folder: Path | None = None,
    extra: Mapping[str, str] | None = None,
    within: float = SECONDS,
) -> str:
    """Run git; what it prints.

    Guarantees: when it returns or is cancelled, git has ended.

    Errors: :class:`GitFailed`, in which no password is shown.
    """
    place = ("-C", str(folder)) if folder else ()
    try:
        printed = await output(
            *("git", *place, *arguments),
            within=within,
            environment=_surroundings(extra or {}),
        )
    except CommandFailed as error:
        said = _last(error.complaint)
        raise GitFailed(f"git {arguments[0]} {error}{said}") from None
    return printed.decode(errors="replace")


def _surroundings(extra: Mapping[str, str]) -> dict[str, str]:
    # The repository that this program itself may lie in is none of its business.
    kept = {name: value for name, value in os.environ.items() if name[:4] != "GIT_"}
    return {
        **kept,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ALLOW_PROTOCOL": PROTOCOLS,
        "LC_ALL": "C",
        **extra,
    }


def _last(complaint: str) -> str:
    """What git said, without the name or password in an address."""
    text = _USER.sub(r"\1", " ".join(complaint.split()))[-SAID:]
    return f": {text}" if text else "."
