"""What can go wrong with a score, and whether trying again could help."""

from __future__ import annotations

from trimtab.client.errors import TrimtabError


class ScoringError(TrimtabError):
    """There is no score; the sentence says why."""


class BadInput(ScoringError):
    """What was asked for can never be scored: no other attempt will help.

    The sentence names the input that is wrong.
    """


class ToolFailed(ScoringError):
    """The tool, the machine or the way to an input failed: trying again may help."""
