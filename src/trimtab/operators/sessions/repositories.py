"""Repositories: what each is called in a runner, by its address alone.

The operator and the runner have to agree on a name that nobody writes down: a runner
clones what its environment lists before anybody calls it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from hashlib import blake2s
from typing import Final

LONGEST: Final = 100
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._-]+")


def name_of(url: str) -> str:
    """The last part of an address, as the name of a folder."""
    last = re.split(r"[/:]", url.rstrip("/"))[-1].removesuffix(".git")
    plain = _FOREIGN.sub("-", last).strip(".-")[:LONGEST]
    return plain or "repository"


def names_of(urls: Iterable[str]) -> dict[str, str]:
    """A name for each address, no two the same.

    The first of several with the same last part has that for its name; the others have
    a few letters of their own after it.
    """
    made: dict[str, str] = {}
    taken: set[str] = set()
    for url in urls:
        if url in made:
            continue
        name = name_of(url)
        if name in taken:
            name = f"{name}-{blake2s(url.encode(), digest_size=4).hexdigest()}"
        made[url] = name
        taken.add(name)
    return made
