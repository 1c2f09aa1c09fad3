"""Objects: for the schema with every keyword by hand, for the random ones by seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

JSON = dict[str, Any]

# For each property of the schema with every keyword: values that are tried in it.
TRIED: dict[str, list[Any]] = {
    "short": ["", "a", "ab", "abcd", "abcde", "ünï©", 5, None, True, ["a"], {}],
    "letters": ["abc", "ABC", "", "ab\n", 'say "hi"', "<a&b>"],
    "colour": ["red", "pink", "", 5, None, "RED"],
    "digit": [0, 9, 10, -1, 5.0, 5.5, 1e300, "5", True, None, 10.0, 123456789012],
    "open": [0, 1, 0.5, 0.0, 1.0, 2, "x"],
    "dozen": [12, 24, 13, 0, -12, 24.0, 25.0],
    "quarter": [0.25, 0.3, 1, 2, 1.75, 0],
    "small": [2147483647, 2147483648, -2147483649, 5.0, 3e10, 2.5],
    "large": [9223372036854775807, -9223372036854775808, 9.3e18, 1e19],
    "single": [3.4e38, 3.5e38, 1.5, 7],
    "double": [1.7e308, 1e-7, 3, "1"],
    "pick": [1, 3, 2.0, 2.7, "1", None],
    "level": [1, 2.5, 2, 1.0, 3.5, 1000000.0],
    "flag": [True, False, "true", 0, None],
    "bound": [2147483647, -1000001, 2147483648, 3000000001],
    "half": [0, 1, 2, 3, 2.5, 0.5],
    "wide": [1e6, 1000001, 1.5e6, 2e6, -1e22, 12345678.5],
    "either": [5, "5", "123456", 5.0, 5.5, True, None, [], {}],
    "either2": [5, "5%", "x", 5.5],
    "either3": [5, "abc", "abcd", True],
    "either4": [5, 6, "ab", "abc", False],
    "maybe": [None, "", "a", 5],
    "maybeEnum": [None, "a", "c"],
    "unicode": ["äöü", "a1", "äöüß"],
    "few": [[], [1], [1, 2, 3], [1, 2, 3, 4], ["a", 2], [None], "a", {}, None],
    "tags": [["a", "b"], ["a", "a"], ["a", "b", "a", "b", "a"], [None], [1, 1]],
    "sizes": [[1, 1.0], [1, 1], [0.5, 0.5], [1.5, 2]],
    "pairs": [
        [{"a": 1}, {"a": 1}],
        [{"a": 1, "b": "x"}, {"b": "x", "a": 1}],
        [{"a": 1}, {"a": 2}],
        [{"a": 1, "z": 1}, {"a": 1}],
    ],
    "ports": [
        [{"port": 80}, {"port": 80, "protocol": "UDP"}],
        [{"port": 80}, {"port": 80}],
        [{"port": 80}, {"port": 80, "protocol": "TCP"}],
        [{"port": 0}],
        [{"name": "x"}],
        [{"port": 1, "protocol": "SCTP"}, {"port": 1, "protocol": "SCTP"}],
        [5],
        [None],
        [{"port": 80, "extra": 1}],
    ],
    "named": [
        [{"name": "a"}, {"name": "a"}, {"name": "b"}],
        [{"name": "a", "value": "1"}, {"name": "b"}],
        [{"value": "x"}, {"value": "y"}],
        ["a"],
        [{"name": None}, {"name": None}],
        [{"name": 5}, {"name": 5}],
    ],
    "grid": [[[1, 2], [3]], [[1, 2, 3]], [[6]], [1], [[]]],
    "holes": [["a", None], [None, None], [1]],
    "records": [[{}, {"x": 1}, {"y": 2}], [{"z": 1}], [{"x": "a", "y": "b"}], [None]],
    "words": [["a"], [None], [None, "b"]],
    "labels": [
        {"a": "b"},
        {"a": "b", "c": "d", "e": "f"},
        {"a": "toolong"},
        {"a": 1},
        {"a": None},
        {"a.b/c": "toolong", "x y": 5},
        [],
        "x",
    ],
    "counts": [{}, {"a": 1}, {"a": 0}, {"a": 1.5}],
    "lookup": [{"k": {}}, {"k": {"x": "s"}}, {"k": None}, {"k": {"zz": 1}}, {"k": 5}],
    "nothing": [{}, {"a": 1}, {"a": {"b": 1}}, 5],
    "anything": [{}, {"a": 1, "b": {"c": [1]}}, {"a": None}],
    "closed": [{}, {"a": 1}, {"a": {"b": 1}, "c": 2}],
    "kept": [{}, {"a": None, "b": {"c": 1}}, [1]],
    "keptShape": [{"known": {"a": 1, "b": 2}, "more": {"x": 1}}, {"known": {"a": "s"}}],
    "keptAny": [5, "s", None, [1, {"a": None}], {"a": {"b": 1}}, True, 1.5],
    "raw": [
        {"apiVersion": "v1", "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "x": {"y": 1}},
        {"kind": "Pod"},
        {},
        {"apiVersion": "", "kind": ""},
        {"apiVersion": "a/b/c", "kind": "Pod_x"},
        {"apiVersion": 5, "kind": "Pod"},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "A_b"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a/b"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a b": "c d"}}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"unknown": 1, "name": "a"}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": 5}},
        {"apiVersion": "v1", "kind": "Pod", "metadata": 5},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"labels": {"a": 1}}},
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"namespace": "N_s", "annotations": {"bad key": "x"}},
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "a",
                "creationTimestamp": None,
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u"},
                ],
            },
        },
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"finalizers": ["nope"], "ownerReferences": [{"kind": "a"}]},
        },
    ],
    "template": [
        {"apiVersion": "v1", "kind": "Pod", "spec": {}},
        {"apiVersion": "v1", "kind": "Pod", "spec": {"size": "x", "b": 1}, "data": 1},
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"bad": {"x": 1}}, "spec": {}},
    ],
    "needs": [
        {},
        {"one": "a"},
        {"one": "a", "two": "b"},
        {"one": None, "two": "b"},
        {"one": 1, "two": 2, "three": 3, "four": 4},
    ],
    "nested": [{}, {"level": {}}, {"level": {"deep": {"name": None}}}, {"level": None}],
    "defaulted": [
        {},
        {"text": None, "null": None, "shape": None, "list": None},
        {"shape": {}},
        {"shape": {"y": None}},
        {"count": "x", "list": ["c"], "off": True},
        None,
    ],
    "dotted.name-with/all": ["ab", "abc"],
    "namespace": ["ab", "abc"],
    "any": [{}, {"a": 1}, {"b": 1}, {"b": 6}, {"b": 6, "c": 5}, {"a": "x", "b": "y"}],
    "one": [
        {},
        {"a": 1},
        {"a": 1, "b": 1},
        {"c": "x"},
        {"c": "y"},
        {"a": 1, "b": 1, "c": "xx"},
        {"a": "s"},
    ],
    "all": [{}, {"a": 4}, {"a": 1}, {"a": 3, "b": 9}, {"a": 4, "b": 9}, {"b": 9}],
    "not": [{}, {"a": 1}, {"b": 1}],
    "notBig": [9, 10, "x"],
    "nestedAny": [
        [{"kind": "big", "size": 100}],
        [{"kind": "big", "size": 5}],
        [{"kind": "small", "size": 50, "tags": ["abcd", "b", "c"]}],
        [{"kind": "other"}, {"kind": "small"}],
        [{}, {"size": "x"}],
    ],
    "oneScalar": [3, 5, 15, 14, 21, 28, "x", 25.5],
    "deepAll": ["abc", "ab", "xyz", "xyy", "abcz", "", "q"],
    "fbsonobjectid": ["507f1f77bcf86cd799439011", "507f1f77", "zz"],
    "furi": ["http://a/b", "/path", "a", "", "http://[::1", "http://a b", "mailto:x"],
    "femail": ["a@b.c", "A B <a@b.c>", "a", "a@", "@b", "a@b", '"x y"@b.c', "a@b, c@d"],
    "fhostname": ["a", "a.bc", "a_b", "-a", "a.b", "a" * 64, "ä.com", "a.com.", ""],
    "fipv4": ["1.2.3.4", "01.2.3.4", "1.2.3", "::1", "::ffff:1.2.3.4", "256.1.1.1", ""],
    "fipv6": ["::1", "1.2.3.4", "::ffff:1.2.3.4", "fe80::1%eth0", ":::", "2001:db8::"],
    "fcidr": [
        "10.0.0.0/8",
        "10.0.0.1/8",
        "010.0.0.0/8",
        "::/0",
        "10.0.0.0",
        "1.2.3.4/33",
    ],
    "fmac": ["01:23:45:67:89:ab", "01-23-45-67-89-ab", "0123.4567.89ab", "01:23", "x"],
    "fuuid": [
        "123e4567-e89b-12d3-a456-426614174000",
        "123E4567E89B12D3A456426614174000",
        "123e4567",
    ],
    "fuuid3": [
        "123e4567-e89b-32d3-a456-426614174000",
        "123e4567-e89b-12d3-a456-426614174000",
    ],
    "fuuid4": [
        "123e4567-e89b-42d3-a456-426614174000",
        "123e4567-e89b-42d3-c456-426614174000",
    ],
    "fuuid5": [
        "123e4567-e89b-52d3-8456-426614174000",
        "123e4567-e89b-42d3-a456-426614174000",
    ],
    "fisbn": ["0321751043", "978-0321751041", "0321751042", "x"],
    "fisbn10": ["0321751043", "080442957X", "978-0321751041"],
    "fisbn13": ["978-0321751041", "978 0 321 75104 1", "9780321751042"],
    "fcreditcard": ["4111 1111 1111 1111", "4111-1111-1111-1112", "x"],
    "fssn": ["078-05-1120", "078051120", "078 05 1120", "x"],
    "fhexcolor": ["#FFF", "fff", "#ffff", "#12345g", "123456"],
    "frgbcolor": ["rgb(1,2,3)", "rgb( 255, 255 ,255 )", "rgb(256,1,1)", "rgb(1,2)"],
    "fbyte": ["", "YWJj", "YWI=", "YW=", "a b", "YWJj\n", "_-__"],
    "fpassword": ["", "anything"],
    "fdate": ["2020-01-02", "2020-1-2", "2020-02-30", "2020-01-02T00:00:00Z", ""],
    "fduration": [
        "1h",
        "22 ns",
        "1 day",
        "1d2h",
        "3 weeks",
        "-1.5h",
        "x",
        "",
        "1",
        "0",
    ],
    "fdatetime": [
        "2020-01-02T03:04:05Z",
        "2020-01-02t03:04:05z",
        "2020-01-02T03:04:05.123456789+01:00",
        "2020-01-02T24:04:05Z",
        "2020-01-02 03:04:05Z",
        "2020-01-02T03:04:05",
        "2020-01-02",
        "",
        5,
        True,
        ["x"],
    ],
    "fk8sshortname": ["a-b", "a.b", "A", "-a", "a" * 64, ""],
    "fk8slongname": ["a.b", "a..b", "a" * 64 + ".b", "A"],
    "fnonsense": ["x", 5],
    "numberFormat": [5, 70000, 5.5],
    "eitherFormat": [5, "1.2.3.4", "x", 5.5, True],
}

ROOTS: list[JSON] = [
    {},
    {"spec": None},
    {"spec": {}},
    {"spec": 5},
    {"spec": {}, "other": {"a": 1}},
    {"spec": {}, "status": {"phase": "On"}},
    {"spec": {"nope": 1, "named": [{"name": "a", "nope": 1}]}, "more": 1},
    {"spec": {}, "metadata": {"labels": {"a": "b"}, "unknown": 1}},
    {"spec": {}, "metadata": {"ownerReferences": [{"nope": 1}]}},
    {"spec": {}, "metadata": {"labels": {"a": 5}}},
    {"spec": {"digit": 10, "colour": "pink", "short": "abcdefg", "few": []}},
]

CHANGES: list[tuple[JSON, JSON]] = [
    ({"spec": old}, {"spec": new})
    for old, new in (
        ({"digit": 1}, {"digit": 2}),
        ({"digit": 1}, {"digit": 20}),
        ({}, {"tags": ["a", "a"]}),
        ({"defaulted": {"text": "x"}}, {"defaulted": {}}),
        ({"maybe": "a"}, {"maybe": None}),
        ({"needs": {"one": "a", "two": "b"}}, {"needs": {"one": "a"}}),
    )
]
STATUSES: list[Any] = [
    {},
    {"phase": "On", "replicas": 3},
    {"phase": "Broken"},
    {"replicas": -1, "phase": 5},
    {"conditions": [{"type": "a"}, {"type": "a"}]},
    {"conditions": [{"status": "a"}]},
    {"nope": 1},
    None,
    5,
]


def by_hand() -> Iterator[JSON]:
    """Bodies for the schema with every keyword."""
    yield from ROOTS
    for name, values in TRIED.items():
        for value in values:
            yield {"spec": {name: value}}


class Filler:
    """Random values for a schema: mostly right, with mistakes mixed in."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.mistakes = 0.0

    def body(self, schema: JSON, *, mistakes: float) -> JSON:
        self.mistakes = mistakes
        body = self._record(schema)
        body.setdefault("spec", {})
        return body

    def _chance(self, share: float) -> bool:
        return self.random.random() < share

    def _any(self, schema: JSON) -> Any:
        if self._chance(self.mistakes):
            return self.random.choice([None, 5, "no", [], {}, True, 2.5, {"q": 1}])
        if "enum" in schema and self._chance(0.9):
            return self.random.choice(schema["enum"])
        kind = schema.get("type") or ("either" if len(schema) == 1 else "kept")
        return getattr(self, f"_{kind}")(schema)

    def _string(self, schema: JSON) -> str:
        words = ["", "a", "ab", "abc", "b7", "abcdefgh", "7", "2020-01-02", "1.2.3.4"]
        return self.random.choice(words)

    def _integer(self, schema: JSON) -> int:
        return self.random.choice([-4, -3, 0, 1, 2, 3, 5, 6, 10, 12, 13])

    def _number(self, schema: JSON) -> float:
        return self.random.choice([-3, -2.5, 0, 0.5, 1, 1.3, 2, 3.0, 7.25, 8])

    def _boolean(self, schema: JSON) -> bool:
        return self._chance(0.5)

    def _either(self, schema: JSON) -> int | str:
        return 3 if self._chance(0.5) else "5%"

    def _kept(self, schema: JSON) -> Any:
        return self.random.choice([{"x": {"y": None}}, [1, None], "s", 3])

    def _array(self, schema: JSON) -> list[Any]:
        return [self._any(schema["items"]) for _ in range(self.random.randint(0, 3))]

    def _object(self, schema: JSON) -> JSON:
        if "properties" in schema:
            return self._record(schema)
        values = schema.get("additionalProperties")
        keys = self.random.sample(["x", "y.z", "w/v", "k"], self.random.randint(0, 3))
        return {key: self._any(values) for key in keys} if values else {}

    def _record(self, schema: JSON) -> JSON:
        required = schema.get("required", ())
        value = {
            name: self._any(child)
            for name, child in schema["properties"].items()
            if self._chance(0.9 if name in required else 0.6)
        }
        if self._chance(self.mistakes):
            value["unknown"] = self.random.choice([1, {"deep": 1}, None])
        return value
