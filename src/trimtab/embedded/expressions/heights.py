"""Heights: how deep a tree is, which is counted while it is made.

cel-go refuses an expression in which too many calls, fields and choices are in each
other; everything that walks a tree relies on that.
"""

from __future__ import annotations

from typing import TypeVar

from trimtab.embedded.expressions.nodes import Call, Node

N = TypeVar("N", bound=Node)


def as_high(node: N) -> N:
    """The node, as high as the highest of its parts."""
    node.height = max((part.height for part in node.parts()), default=0)
    return node


def higher(node: N) -> N:
    """The node, one higher than the highest of its parts."""
    as_high(node).height += 1
    return node


def balanced(function: str, terms: list[Node], marks: list[int]) -> Node:
    """Terms with an operator between each two, as a tree without long branches."""
    if not marks:
        return terms[0]
    middle = len(marks) // 2
    left = balanced(function, terms[: middle + 1], marks[:middle])
    right = balanced(function, terms[middle + 1 :], marks[middle + 1 :])
    return as_high(Call(at=marks[middle], function=function, args=[left, right]))


def start_of(node: Node) -> int:
    """Where the text of a node begins."""
    return min(each.at for each in node.walk())
