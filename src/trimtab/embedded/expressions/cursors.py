"""Cursors: a place among the words of an expression, and what is missed there.

What is said of a sign that is missing or too much is what cel-go's generated parser
says, which tries to go on as if it had been right.
"""

from __future__ import annotations

from trimtab.embedded.expressions import reading
from trimtab.embedded.expressions.complaints import Complaint
from trimtab.embedded.expressions.reading import Token


class Stop(Exception):
    """Nothing sensible can be read after this."""


class Cursor:
    """Goes through the words of a text, and collects what is wrong with them."""

    def __init__(self, source: str) -> None:
        self.complaints: list[Complaint] = []
        self.tokens = list(reading.tokens(source, self.complaints))
        self.at = 0

    def peek(self) -> Token:
        """The next word, which stays the next."""
        return self.tokens[self.at]

    def next(self) -> Token:
        """The next word; at the end there is always one more end."""
        token = self.tokens[self.at]
        if token.kind != "end":
            self.at += 1
        return token

    def take(self, *texts: str) -> Token | None:
        """The next word, if it is one of these signs."""
        token = self.tokens[self.at]
        if token.kind == "sign" and token.text in texts:
            self.at += 1
            return token
        return None

    def complain(self, at: int, text: str) -> None:
        """Remember a mistake."""
        self.complaints.append(Complaint(at, text))

    def close(self, text: str, *, listed: bool = False) -> None:
        """The sign that has to stand here; after what is ``listed``, or a comma."""
        if self.take(text):
            return
        token = self.peek()
        following = self.tokens[min(self.at + 1, len(self.tokens) - 1)]
        expected = f"{{'{text}', ','}}" if listed else f"'{text}'"
        if token.kind == "end" and not listed and text != ":" and self._unclosed() == 1:
            self.complain(token.at, f"Syntax error: missing '{text}' at '<EOF>'")
            return
        extra = following.kind == "sign" and following.text == text
        what = "extraneous" if extra else "mismatched"
        said = f"Syntax error: {what} input '{token.text}' expecting {expected}"
        self.complain(token.at, said)
        if not extra:
            raise Stop
        self.at += 2

    def _unclosed(self) -> int:
        """How many brackets are open at the end."""
        signs = [each.text for each in self.tokens if each.kind == "sign"]
        return sum((each in "([{") - (each in ")]}") for each in signs)

    def colon(self) -> None:
        """The sign between a key and its value, which is missed if a value is there."""
        token = self.peek()
        if token.kind in ("sign", "end"):
            self.close(":")
        else:
            text = f"Syntax error: missing ':' at '{token.text}'"
            self.complain(token.at, text)
