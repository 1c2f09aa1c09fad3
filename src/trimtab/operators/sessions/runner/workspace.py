"""The workspace: the folder that the agent works in, with its repositories.

A repository is cloned beside its place and moved there when it is whole. Who asked for
it may stop waiting: it is cloned all the same, and whoever asks next waits for that.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar

import msgspec

from trimtab.operators.sessions.repositories import name_of
from trimtab.operators.sessions.runner.git import (
    GitFailed,
    check_branch,
    check_url,
    credentials,
    git,
)

_NAME: Final = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._-]{0,119}")
T = TypeVar("T")


class Workflow(msgspec.Struct, frozen=True, kw_only=True):
    """The instructions that the agent works by; without an address there are none."""

    url: str = ""
    branch: str = ""
    path: str = ""


class Workspace:
    """See the module's first lines.

    Guarantees: one thing at a time is done to a repository, in the order in which it
    was asked for. What is under way ends with the task group.
    """

    def __init__(self, folder: Path, group: asyncio.TaskGroup) -> None:
        self.folder = folder
        self.workflow = Workflow()
        self._group: asyncio.TaskGroup = group
        self._under_way: dict[str, asyncio.Task[Any]] = {}
        """The last thing that was asked for a repository."""

    @property
    def repositories(self) -> Path:
        return self.folder / "repos"

    @property
    def workflows(self) -> Path:
        return self.folder / "workflows"

    def prepare(self) -> None:
        """Make the folders.

        Errors: ``OSError``.
        """
        for folder in (self.repositories, self.workflows):
            folder.mkdir(parents=True, exist_ok=True)

    async def add(
        self,
        url: str,
        *,
        branch: str = "",
        name: str = "",
        tokens: Mapping[str, str] | None = None,
    ) -> tuple[str, bool]:
        """Have a repository on a branch; its name, and whether it was cloned for that.

        Errors: :class:`GitFailed`.
        """
        place = self._place(self.repositories, name or name_of(check_url(url)))
        work = partial(self._have, url, branch, place, credentials(tokens or {}))
        return place.name, await self._after(place.name, work)

    async def remove(self, name: str) -> bool:
        """Have a repository no more; whether there was one."""
        place = self._place(self.repositories, name)
        return await self._after(place.name, partial(self._removed, place))

    async def use(
        self, wanted: Workflow, *, tokens: Mapping[str, str] | None = None
    ) -> bool:
        """Work by a workflow; whether that is another one than before.

        Errors: :class:`GitFailed`; the workflow is the one before then.
        """
        return await self._after("", partial(self._used, wanted, tokens or {}))

    async def _used(self, wanted: Workflow, tokens: Mapping[str, str]) -> bool:
        if wanted == self.workflow:
            return False
        if wanted.url:
            name = name_of(check_url(wanted.url))
            place = self._place(self.workflows, name)
            await self._have(wanted.url, wanted.branch, place, credentials(tokens))
            inside = (place / wanted.path).resolve()
            if not inside.is_relative_to(place.resolve()) or not inside.is_dir():
                raise GitFailed(f"The workflow has no folder {wanted.path[:200]!r}.")
        self.workflow = wanted
        return True

    async def statuses(self) -> list[dict[str, Any]]:
        """What is there, with branches."""
        places = sorted(each for each in self.repositories.iterdir() if _is_whole(each))
        return [await self._status(place) for place in places]

    def stop(self) -> list[asyncio.Task[Any]]:
        """Break off what is under way; nothing that is half done is left in place."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        return tasks

    async def forget(self) -> None:
        """Empty it: somebody else comes."""
        if tasks := self.stop():
            await asyncio.wait(tasks)  # or a clone would go on writing
        self.workflow = Workflow()
        await asyncio.to_thread(self._empty)

    def _empty(self) -> None:
        for each in self.folder.iterdir() if self.folder.is_dir() else ():
            # The folder itself may be a volume, which stays.
            if each.is_dir() and not each.is_symlink():
                shutil.rmtree(each, ignore_errors=True)
            else:
                each.unlink(missing_ok=True)

    async def _after(self, name: str, work: Callable[[], Awaitable[T]]) -> T:
        """Do something after what was asked before it, also if nobody waits for it."""
        before = self._under_way.get(name)

        async def done() -> T | Exception:
            if before is not None:
                await asyncio.wait([before])
            try:
                return await work()
            except Exception as error:
                return error  # raised, it would end the whole program

        task: asyncio.Task[T | Exception] = self._group.create_task(done())
        self._under_way[name] = task
        task.add_done_callback(lambda _: self._settled(name, task))
        found = await asyncio.shield(task)
        if isinstance(found, Exception):
            raise found
        return found

    def _settled(self, name: str, task: asyncio.Task[Any]) -> None:
        if self._under_way.get(name) is task:
            del self._under_way[name]

    async def _have(
        self, url: str, branch: str, place: Path, extra: Mapping[str, str]
    ) -> bool:
        check_branch(branch)
        if _is_whole(place) and await self._origin(place) == url:
            await self._updated(place, branch, extra)
            return False
        fresh = place.with_name(f".{place.name}.new")
        await asyncio.to_thread(shutil.rmtree, fresh, True)
        on = (f"--branch={branch}",) if branch else ()
        await git("clone", *on, "--", check_url(url), str(fresh), extra=extra)
        await asyncio.to_thread(shutil.rmtree, place, True)
        fresh.rename(place)
        return True

    async def _updated(
        self, place: Path, branch: str, extra: Mapping[str, str]
    ) -> None:
        await git("fetch", "--prune", "origin", folder=place, extra=extra)
        if branch and await self._branch(place) != branch:
            await git("checkout", branch, "--", folder=place)

    async def _removed(self, place: Path) -> bool:
        return await asyncio.to_thread(_rid, place)

    async def _status(self, place: Path) -> dict[str, Any]:
        form = "--format=%(refname:lstrip=3)"
        listed = await git("for-each-ref", form, "refs/remotes/origin", folder=place)
        names = [each for each in listed.split("\n") if each and each != "HEAD"]
        head = "refs/remotes/origin/HEAD"
        try:
            default = await git("symbolic-ref", "--short", head, folder=place)
        except GitFailed:
            default = ""
        return {
            "name": place.name,
            "url": await self._origin(place),
            "branches": names,
            "currentActiveBranch": await self._branch(place),
            "defaultBranch": default.strip().removeprefix("origin/"),
        }

    async def _origin(self, place: Path) -> str:
        return (await git("remote", "get-url", "origin", folder=place)).strip()

    async def _branch(self, place: Path) -> str:
        return (await git("branch", "--show-current", folder=place)).strip()

    def _place(self, folder: Path, name: str) -> Path:
        if not _NAME.fullmatch(name):
            raise GitFailed(f"{name[:80]!r} is no name of a repository.")
        return folder / name


def _rid(place: Path) -> bool:
    """Remove a folder; whether there was one."""
    was = place.exists()
    shutil.rmtree(place, ignore_errors=True)
    return was


def _is_whole(place: Path) -> bool:
    return not place.name.startswith(".") and (place / ".git").exists()
