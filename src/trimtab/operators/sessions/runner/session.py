"""A session in its runner: its workspace, its threads, and what it begins with."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from random import Random

from trimtab.operators.sessions.runner.agent import Desk
from trimtab.operators.sessions.runner.facts import Facts, Repository
from trimtab.operators.sessions.runner.git import GitFailed
from trimtab.operators.sessions.runner.runs import Runs
from trimtab.operators.sessions.runner.workspace import Workspace

logger = logging.getLogger("trimtab.operators.sessions.runner")


class Session:
    """What a runner does for one session, from its beginning to its end.

    Flow: ``begin`` once; then the API calls what it needs; ``stop`` when the program
    ends, ``end`` when it goes on with another session.

    Guarantees: the prompt is told once, after everything that the session begins with
    was cloned or has failed to be; never in a session that is resumed.
    """

    def __init__(
        self,
        facts: Facts,
        group: asyncio.TaskGroup,
        *,
        random: Random,
        leave: Callable[[int], None],
    ) -> None:
        self.facts = facts
        self.model = facts.model
        self.workspace = Workspace(facts.folder, group)
        self.runs = Runs(
            Desk(
                folder=facts.folder,
                environment=facts.environment,
                repositories=self._repositories,
                workflow=lambda: self.workspace.workflow.url,
                leave=leave,
            ),
            group,
            random=random,
        )
        self._group: asyncio.TaskGroup = group
        self._beginning: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Make the workspace, and have the rest done.

        Errors: ``OSError`` if there can be no workspace.
        """
        self.workspace.prepare()
        self._beginning = self._group.create_task(self._begun())

    def stop(self) -> None:
        """Break off whatever is done; the workspace stays."""
        if self._beginning is not None:
            self._beginning.cancel()
        self.runs.interrupt()
        self.workspace.stop()

    async def end(self) -> None:
        """Break off whatever is done, and empty the workspace."""
        self.stop()
        await self.workspace.forget()

    async def _begun(self) -> None:
        for each in self.facts.repositories:
            await self._cloned(each)
        if self.facts.workflow.url:
            try:
                await self.workspace.use(self.facts.workflow)
            except GitFailed as error:
                logger.warning("The workflow cannot be used: %s", error)
        logger.info("The session %s is ready.", self.facts.name)
        if self.facts.prompt and not self.facts.resume:
            self.runs.start(self.facts.prompt, thread=self.facts.name)

    async def _cloned(self, repository: Repository) -> None:
        try:
            await self.workspace.add(
                repository.url, branch=repository.branch, name=repository.name
            )
        except GitFailed as error:
            # It is told to whoever asks for it; the session can do without.
            logger.warning("%s is not there: %s", repository.name, error)

    def _repositories(self) -> list[str]:
        folder = self.workspace.repositories
        return sorted(each.name for each in folder.iterdir() if each.name[0] != ".")
