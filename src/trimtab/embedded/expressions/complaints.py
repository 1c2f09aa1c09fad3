"""Complaints: what is wrong with an expression, and where, as cel-go prints it."""

from __future__ import annotations

import msgspec


class Complaint(msgspec.Struct, frozen=True):
    """One mistake at one place; of the whole text, if that is before its begin."""

    at: int
    text: str


class ExpressionError(ValueError):
    """An expression that cannot be used; its text shows each mistake in its line."""

    def __init__(self, source: str, complaints: list[Complaint]) -> None:
        self.complaints = complaints
        super().__init__(shown(source, complaints))


def shown(source: str, complaints: list[Complaint]) -> str:
    """Every complaint with the line that it is about, in the order of the text."""
    ordered = sorted(complaints, key=lambda each: each.at)
    return "\n".join(_shown(source, each) for each in ordered)


def _shown(source: str, complaint: Complaint) -> str:
    if complaint.at < 0:
        return f"ERROR: <input>:-1:0: {complaint.text}"
    before = source[: complaint.at]
    line = before.count("\n") + 1
    column = len(before) - (before.rfind("\n") + 1)
    text = source.split("\n")[line - 1].replace("\t", " ")
    dots = "".join("." if letter.isascii() else "\uff0e" for letter in text[:column])
    here = text[column : column + 1]
    mark = "\uff3e" if here and not here.isascii() else "^"
    head = f"ERROR: <input>:{line}:{column + 1}: {complaint.text}"
    return f"{head}\n | {text}\n | {dots}{mark}"
