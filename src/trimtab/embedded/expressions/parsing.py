"""Parsing: from the words of an expression to its tree.

Mistakes are collected as cel-go's parser reports them. It is generated and mends the
input as it goes, which is followed here for the mistakes that people make: something
missing at the end, something too much, a keyword where a name should be.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from trimtab.embedded.expressions import literals, reading
from trimtab.embedded.expressions.complaints import Complaint, ExpressionError
from trimtab.embedded.expressions.cursors import Cursor, Stop
from trimtab.embedded.expressions.heights import as_high, balanced, higher, start_of
from trimtab.embedded.expressions.kinds import STRING
from trimtab.embedded.expressions.macros import MACROS, MacroError
from trimtab.embedded.expressions.nodes import (
    Bad,
    Call,
    Entries,
    Entry,
    Ident,
    Items,
    Literal,
    Message,
    Node,
    Select,
    qualified,
)
from trimtab.embedded.expressions.reading import Token

_RELATIONS: Final = {
    "<": "_<_",
    "<=": "_<=_",
    ">": "_>_",
    ">=": "_>=_",
    "==": "_==_",
    "!=": "_!=_",
    "in": "@in",
}
_SUMS: Final = {"+": "_+_", "-": "_-_"}
_PRODUCTS: Final = {"*": "_*_", "/": "_/_", "%": "_%_"}
_OPERAND: Final = (
    "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, "
    "NUM_UINT, STRING, BYTES, IDENTIFIER}"
)
TOO_DEEP: Final = "max recursion depth exceeded"
_DEEPEST: Final = 250
_TOO_NESTED: Final = f"expression recursion limit exceeded: {_DEEPEST}"
_LONGEST: Final = 100_000
_NOWHERE: Final = -1


def parse(source: str) -> Node:
    """The tree of an expression.

    Errors: ``ExpressionError`` with each mistake in it.
    """
    if len(source) > _LONGEST:
        size = f"size: {len(source)}, limit {_LONGEST}"
        text = f"expression code point size exceeds limit: {size}"
        raise ExpressionError(source, [Complaint(_NOWHERE, text)])
    parser = _Parser(source)
    tree = parser.whole()
    if parser.complaints:
        raise ExpressionError(source, parser.complaints)
    return tree


class _Parser(Cursor):
    def __init__(self, source: str) -> None:
        super().__init__(source)
        self._depths = {"expr": 0, "relation": 0, "calc": 0}

    def whole(self) -> Node:
        try:
            tree = self._expression()
            self._end()
        except Stop:
            return Bad(at=0)
        except RecursionError:
            # Python's own stack is shorter than the limit.
            self.complain(_NOWHERE, _TOO_NESTED)
            return Bad(at=0)
        if tree.height > _DEEPEST:
            self.complain(_NOWHERE, TOO_DEEP)
        return tree

    @contextmanager
    def _inside(self, rule: str) -> Iterator[None]:
        """Within a rule of the grammar, which may be in itself only so many times."""
        self._depths[rule] += 1
        if self._depths[rule] > _DEEPEST:
            self.complain(_NOWHERE, _TOO_NESTED)
            raise Stop
        yield
        self._depths[rule] -= 1

    def _end(self) -> None:
        token = self.peek()
        if token.kind != "end":
            single = self.tokens[self.at + 1].kind == "end"
            what = "extraneous" if single else "mismatched"
            text = f"Syntax error: {what} input '{token.text}' expecting <EOF>"
            self.complain(token.at, text)

    def _expression(self) -> Node:
        with self._inside("expr"):
            test = self._either()
            mark = self.take("?")
            if mark:
                yes = self._either()
                self.close(":")
                no = self._expression()
                test = self._call(mark.at, "_?_:_", test, yes, no)
        return test

    def _either(self) -> Node:
        return self._logic("||", self._both)

    def _both(self) -> Node:
        return self._logic("&&", self._relation)

    def _logic(self, sign: str, term: Callable[[], Node]) -> Node:
        terms, marks = [term()], []
        while mark := self.take(sign):
            marks.append(mark.at)
            terms.append(term())
        return balanced(f"_{sign}_", terms, marks)

    def _relation(self) -> Node:
        with self._inside("relation"):
            node = self._sum()
            while mark := self.take(*_RELATIONS):
                with self._inside("relation"):
                    other = self._sum()
                node = self._call(mark.at, _RELATIONS[mark.text], node, other)
        return node

    def _sum(self) -> Node:
        with self._inside("calc"):
            node = self._product()
            while mark := self.take(*_SUMS):
                with self._inside("calc"):
                    other = self._product()
                node = self._call(mark.at, _SUMS[mark.text], node, other)
        return node

    def _product(self) -> Node:
        node = self._unary()
        while mark := self.take(*_PRODUCTS):
            with self._inside("calc"):
                other = self._unary()
            node = self._call(mark.at, _PRODUCTS[mark.text], node, other)
        return node

    def _call(self, at: int, function: str, *args: Node) -> Node:
        return higher(Call(at=at, function=function, args=list(args)))

    def _unary(self) -> Node:
        for sign, function in (("!", "!_"), ("-", "-_")):
            first = self.take(sign)
            if not first:
                continue
            count = 1
            if sign == "-" and self.peek().kind in ("int", "float"):
                self.at -= 1
                break
            while self.take(sign):
                count += 1
            node = self._member()
            if count % 2 == 0:
                return node
            return as_high(Call(at=first.at, function=function, args=[node]))
        return self._member()

    def _member(self) -> Node:
        node = self._primary()
        while True:
            if mark := self.take("."):
                node = self._select(node, mark)
            elif mark := self.take("["):
                optional = self.take("?")
                index = self._expression()
                self.close("]")
                function = "_[?_]" if optional else "_[_]"
                node = self._call(mark.at, function, node, index)
            elif self.peek().text == "{" and qualified(node):
                node = self._message(node)
            else:
                return node

    def _select(self, operand: Node, mark: Token) -> Node:
        optional = self.take("?")
        token = self.peek()
        if token.kind == "escaped":
            self.at += 1
            self.complain(token.at, "unsupported syntax: '`'")
            return Bad(at=start_of(operand))
        if token.kind != "ident":
            self._no_name(token)
            return Bad(at=start_of(operand))
        self.at += 1
        opening = None if optional else self.take("(")
        if opening:
            args = self._arguments()
            return self._expanded(opening.at, token.text, operand, args)
        if optional:
            name: Node = Literal(at=token.at, value=token.text, type=STRING)
            return self._call(mark.at, "_?._", operand, name)
        return higher(Select(at=mark.at, operand=operand, field=token.text))

    def _no_name(self, token: Token) -> None:
        if token.text in ("true", "false", "null"):
            text = f"mismatched input '{token.text}' expecting IDENTIFIER"
            self.complain(token.at, f"Syntax error: {text}")
            self.at += 1
            return
        shown = "." if token.kind == "end" else f".{token.text}"
        text = f"Syntax error: no viable alternative at input '{shown}'"
        self.complain(token.at, text)
        raise Stop

    def _arguments(self) -> list[Node]:
        args: list[Node] = []
        if not self.take(")"):
            args.append(self._expression())
            while self.take(","):
                args.append(self._expression())
            self.close(")")
        return args

    def _expanded(
        self, at: int, function: str, target: Node | None, args: list[Node]
    ) -> Node:
        """A call, or what the macro of that name makes of it."""
        call = Call(at=at, function=function, target=target, args=args)
        as_high(call) if target is None else higher(call)
        macro = MACROS.get((function, len(args), target is not None))
        if macro is None:
            return call
        try:
            made = macro(at, target, args)
        except MacroError as error:
            self.complain(error.at, str(error))
            return Bad(at=at)
        made.height = call.height
        return made

    def _message(self, named: Node) -> Node:
        mark = self.next()
        fields: list[str] = []
        marks: list[int] = []
        values: list[Node] = []
        optional = set()
        while not self.take("}"):
            if self.take("?"):
                optional.add(len(values))
            fields.append(self._field())
            marks.append(self.peek().at)
            self.close(":")
            values.append(self._expression())
            if not self.take(","):
                self.close("}", listed=True)
                break
        made = Message(
            at=mark.at,
            name=qualified(named),
            fields=fields,
            marks=marks,
            values=values,
            optional=frozenset(optional),
        )
        return as_high(made)

    def _field(self) -> str:
        token = self.next()
        if token.kind != "ident":
            expected = "{'}', ',', '?', IDENTIFIER, ESC_IDENTIFIER}"
            said = f"mismatched input '{token.text}' expecting {expected}"
            self.complain(token.at, f"Syntax error: {said}")
            raise Stop
        return token.text

    def _primary(self) -> Node:
        dot = self.take(".")
        token = self.next()
        if token.kind == "ident":
            return self._named(token, dot)
        if dot is None:
            literal = self._literal(token)
            if literal is not None:
                return literal
            if token.text == "(" and token.kind == "sign":
                inner = self._expression()
                self.close(")")
                return inner
            if token.text == "[" and token.kind == "sign":
                return self._list(token)
            if token.text == "{" and token.kind == "sign":
                return self._map(token)
        text = f"Syntax error: mismatched input '{token.text}' expecting {_OPERAND}"
        if token.kind == "sign" and token.text not in ("in",):
            text = self._unexpected(token)
        self.complain(token.at, text)
        raise Stop

    def _unexpected(self, token: Token) -> str:
        """A sign where a value should be: too much, if a value follows."""
        following = self.peek()
        starts = following.kind not in ("sign", "end") or following.text in "[{(.-!"
        what = "extraneous" if starts and following.kind != "end" else "mismatched"
        return f"Syntax error: {what} input '{token.text}' expecting {_OPERAND}"

    def _named(self, token: Token, dot: Token | None) -> Node:
        if token.text in reading.RESERVED:
            self.complain(token.at, f"reserved identifier: {token.text}")
        name = token.text
        opening = self.take("(")
        if opening:
            return self._expanded(opening.at, name, None, self._arguments())
        at = token.at
        return Ident(at=at, name=name)

    def _literal(self, token: Token) -> Node | None:
        sign, at = "", token.at
        if token.text == "-" and self.peek().kind in ("int", "float"):
            sign, token = "-", self.next()
        try:
            node = literals.read(token, sign=sign, at=at)
        except ValueError:
            self.complain(at, "unable to unescape string")
            return Bad(at=at)
        if node is not None and not literals.fits(node):
            self.complain(at, f"invalid {node.type} literal")
        return node

    def _list(self, mark: Token) -> Node:
        items: list[Node] = []
        optional = set()
        while not self.take("]"):
            if self.take("?"):
                optional.add(len(items))
            items.append(self._expression())
            if not self.take(","):
                self.close("]", listed=True)
                break
        made = Items(at=mark.at, items=items, optional=frozenset(optional))
        return as_high(made)

    def _map(self, mark: Token) -> Node:
        entries: list[Entry] = []
        while not self.take("}"):
            optional = self.take("?") is not None
            key = self._expression()
            self.colon()
            entries.append(Entry(key, self._expression(), optional))
            if not self.take(","):
                self.close("}", listed=True)
                break
        return as_high(Entries(at=mark.at, entries=entries))
