"""Signatures: every function that an expression may call, and with what.

The functions are those of Kubernetes 1.36: cel-go's own, its string, list, set,
optional and two-variable libraries, and Kubernetes' for URLs, IPs, quantities and
versions. Those for authorization are known everywhere, although only policies see
something that can be given to them.
``T | name(A) R`` is a method of ``T``. One capital letter stands for any type.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

import msgspec

from trimtab.embedded.expressions.kinds import Type, read_type

_COMPARED: Final = (
    *("bool", "int", "uint", "double", "string"),
    *("bytes", "timestamp", "duration"),
)
_NUMBERS: Final = ("int", "uint", "double")
_SORTED: Final = (
    *("int", "uint", "double", "bool", "duration"),
    *("timestamp", "string", "bytes"),
)

_TEXT: Final = """
_?_:_(bool, A, A) A
_&&_(bool, bool) bool
_||_(bool, bool) bool
!_(bool) bool
@not_strictly_false(bool) bool
_==_(A, A) bool
_!=_(A, A) bool
_+_(bytes, bytes) bytes
_+_(double, double) double
_+_(duration, duration) duration
_+_(duration, timestamp) timestamp
_+_(timestamp, duration) timestamp
_+_(int, int) int
_+_(list(A), list(A)) list(A)
_+_(string, string) string
_+_(uint, uint) uint
_/_(double, double) double
_/_(int, int) int
_/_(uint, uint) uint
_%_(int, int) int
_%_(uint, uint) uint
_*_(double, double) double
_*_(int, int) int
_*_(uint, uint) uint
-_(double) double
-_(int) int
_-_(double, double) double
_-_(duration, duration) duration
_-_(int, int) int
_-_(timestamp, duration) timestamp
_-_(timestamp, timestamp) duration
_-_(uint, uint) uint
_[_](list(A), int) A
_[_](map(A, B), A) B
_[_](optional(list(V)), int) optional(V)
_[_](optional(map(K, V)), K) optional(V)
_[?_](list(V), int) optional(V)
_[?_](optional(list(V)), int) optional(V)
_[?_](map(K, V), K) optional(V)
_[?_](optional(map(K, V)), K) optional(V)
@in(A, list(A)) bool
@in(A, map(A, B)) bool
cel.@mapInsert(map(K, V), K, V) map(K, V)
cel.@mapInsert(map(K, V), map(K, V)) map(K, V)
size(bytes) int
bytes | size() int
size(list(A)) int
list(A) | size() int
size(map(A, B)) int
map(A, B) | size() int
size(string) int
string | size() int
type(A) type(A)
bool(bool) bool
bool(string) bool
bytes(bytes) bytes
bytes(string) bytes
double(double) double
double(int) double
double(string) double
double(uint) double
duration(duration) duration
duration(int) duration
duration(string) duration
dyn(A) dyn
int(int) int
int(double) int
int(duration) int
int(string) int
int(timestamp) int
int(uint) int
string(string) string
string(bool) string
string(bytes) string
string(double) string
string(duration) string
string(int) string
string(timestamp) string
string(uint) string
string(ip) string
string(cidr) string
timestamp(timestamp) timestamp
timestamp(int) timestamp
timestamp(string) timestamp
uint(uint) uint
uint(double) uint
uint(int) uint
uint(string) uint
string | contains(string) bool
string | endsWith(string) bool
string | startsWith(string) bool
matches(string, string) bool
string | matches(string) bool
string | charAt(int) string
string | indexOf(string) int
string | indexOf(string, int) int
string | lastIndexOf(string) int
string | lastIndexOf(string, int) int
string | lowerAscii() string
string | upperAscii() string
string | replace(string, string) string
string | replace(string, string, int) string
string | split(string) list(string)
string | split(string, int) list(string)
string | substring(int) string
string | substring(int, int) string
string | trim() string
string | format(list(dyn)) string
strings.quote(string) string
list(string) | join() string
list(string) | join(string) string
string | find(string) string
string | findAll(string) list(string)
string | findAll(string, int) list(string)
list(A) | indexOf(A) int
list(A) | lastIndexOf(A) int
list(T) | slice(int, int) list(T)
list(list(T)) | flatten() list(T)
list(dyn) | flatten(int) list(dyn)
lists.range(int) list(int)
list(T) | reverse() list(T)
list(T) | distinct() list(T)
list(V) | first() optional(V)
list(V) | last() optional(V)
sets.contains(list(T), list(T)) bool
sets.equivalent(list(T), list(T)) bool
sets.intersects(list(T), list(T)) bool
optional.of(V) optional(V)
optional.ofNonZeroValue(V) optional(V)
optional.none() optional(V)
optional(V) | value() V
optional(V) | hasValue() bool
optional(V) | or(optional(V)) optional(V)
optional(V) | orValue(V) V
optional.unwrap(list(optional(V))) list(V)
list(optional(V)) | unwrapOpt() list(V)
url(string) url
url | getScheme() string
url | getHost() string
url | getHostname() string
url | getPort() string
url | getEscapedPath() string
url | getQuery() map(string, list(string))
isURL(string) bool
ip(string) ip
ip | family() int
ip.isCanonical(string) bool
ip | isUnspecified() bool
ip | isLoopback() bool
ip | isLinkLocalMulticast() bool
ip | isLinkLocalUnicast() bool
ip | isGlobalUnicast() bool
isIP(string) bool
cidr(string) cidr
cidr | containsIP(string) bool
cidr | containsIP(ip) bool
cidr | containsCIDR(string) bool
cidr | containsCIDR(cidr) bool
cidr | ip() ip
cidr | prefixLength() int
cidr | masked() cidr
isCIDR(string) bool
quantity(string) quantity
isQuantity(string) bool
sign(quantity) int
quantity | isGreaterThan(quantity) bool
quantity | isLessThan(quantity) bool
quantity | compareTo(quantity) int
quantity | asApproximateFloat() double
quantity | asInteger() int
quantity | isInteger() bool
quantity | add(quantity) quantity
quantity | add(int) quantity
quantity | sub(quantity) quantity
quantity | sub(int) quantity
semver(string) semver
semver(string, bool) semver
isSemver(string) bool
isSemver(string, bool) bool
semver | isGreaterThan(semver) bool
semver | isLessThan(semver) bool
semver | compareTo(semver) int
semver | major() int
semver | minor() int
semver | patch() int
authorizer | path(string) pathcheck
authorizer | group(string) groupcheck
authorizer | serviceAccount(string, string) authorizer
groupcheck | resource(string) resourcecheck
resourcecheck | subresource(string) resourcecheck
resourcecheck | namespace(string) resourcecheck
resourcecheck | name(string) resourcecheck
resourcecheck | fieldSelector(string) resourcecheck
resourcecheck | labelSelector(string) resourcecheck
pathcheck | check(string) decision
resourcecheck | check(string) decision
decision | errored() bool
decision | error() string
decision | allowed() bool
decision | reason() string
format | validate(string) optional(list(string))
format.named(string) optional(format)
jsonpatch.escapeKey(string) string
"""
_FORMATS: Final = (
    "dns1123Label dns1123Subdomain dns1035Label qualifiedName dns1123LabelPrefix "
    "dns1123SubdomainPrefix dns1035LabelPrefix labelValue uri uuid byte date datetime"
).split()


class Signature(msgspec.Struct, frozen=True, gc=False):
    """One way to call a function."""

    function: str
    method: bool
    args: tuple[Type, ...]
    """What it is called on, if it is a method, and its arguments."""
    result: Type
    params: frozenset[str]
    """The names that stand for any type."""


_LINE = re.compile(
    r"(?:(?P<on>\S.*?) \| )?(?P<name>\S+?)\((?P<args>.*)\) (?P<out>\S.*)"
)


@lru_cache(maxsize=1)
def signatures() -> dict[str, tuple[Signature, ...]]:
    """Every function by its name, its signatures in the order of trying them."""
    found: dict[str, tuple[Signature, ...]] = {}
    for line in [*_TEXT.strip().splitlines(), *_generated()]:
        signature = _read(line)
        held = found.get(signature.function, ())
        found[signature.function] = (*held, signature)
    return found


def _generated() -> list[str]:
    lines = []
    for sign in ("<", "<=", ">", ">="):
        same = [(each, each) for each in _COMPARED]
        mixed = [(a, b) for a in _NUMBERS for b in _NUMBERS if a != b]
        lines += [f"_{sign}_({a}, {b}) bool" for a, b in same + mixed]
    for each in _SORTED:
        lines += [
            f"list({each}) | isSorted() bool",
            f"list({each}) | max() {each}",
            f"list({each}) | min() {each}",
            f"list({each}) | sort() list({each})",
            f"list(T) | @sortByAssociatedKeys(list({each})) list(T)",
        ]
    lines += [f"list({each}) | sum() {each}" for each in (*_NUMBERS, "duration")]
    times = "FullYear Month DayOfYear DayOfMonth Date DayOfWeek Hours Minutes Seconds "
    for part in (times + "Milliseconds").split():
        lines += [
            f"timestamp | get{part}() int",
            f"timestamp | get{part}(string) int",
        ]
    for part in ("Hours", "Minutes", "Seconds", "Milliseconds"):
        lines.append(f"duration | get{part}() int")
    return lines + [f"format.{name}() format" for name in _FORMATS]


def _read(line: str) -> Signature:
    found = _LINE.fullmatch(line)
    assert found is not None, line
    args = [read_type(each) for each in _split(found["args"])]
    if found["on"]:
        args.insert(0, read_type(found["on"]))
    result = read_type(found["out"])
    params: set[str] = set()
    for each in [*args, result]:
        _collect(each, params)
    return Signature(
        function=found["name"],
        method=bool(found["on"]),
        args=tuple(args),
        result=result,
        params=frozenset(params),
    )


def _split(text: str) -> list[str]:
    """At the commas that are in no parentheses."""
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append(text[start:at])
            start = at + 1
    return [*parts, text[start:]] if text else []


def _collect(type: Type, params: set[str]) -> None:
    if type.kind == "param":
        params.add(type.name)
    for each in type.params:
        _collect(each, params)
