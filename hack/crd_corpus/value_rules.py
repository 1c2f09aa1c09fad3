"""Rules for single values: numbers, texts and times."""

from __future__ import annotations

from collections.abc import Iterator

from hack.crd_corpus.cases import EITHER, Case, rule
from hack.crd_corpus.schemas import integer, number, string


def _scalars() -> Iterator[Case]:
    yield Case(integer(), [rule("self > 3")], [3, 4])
    yield Case(integer(), [rule("self > 3 && self < 10")], [3, 4, 10])
    yield Case(integer(), [rule("self % 2 == 0 || self == 7")], [3, 4, 7])
    yield Case(integer(), [rule("10 / self == 5")], [2, 3, 0])
    yield Case(integer(), [rule("10 % self == 1")], [3, 4, 0])
    yield Case(integer(), [rule("self + 1 > 0")], [1, 9223372036854775807])
    yield Case(integer(), [rule("self * self > 0")], [2, 4294967296, -1])
    yield Case(integer(), [rule("-self < 0")], [1, -1, -9223372036854775808])
    yield Case(integer(), [rule("self - 9223372036854775807 < 0")], [1, -10])
    yield Case(integer(), [rule("self in [1, 2, 3]")], [1, 5])
    yield Case(integer(), [rule("!(self == 5)")], [5, 6])
    yield Case(integer(), [rule("self == 1 ? true : self > 5")], [1, 2, 6])
    yield Case(integer(), [rule("double(self) / 2.0 > 1.4")], [3, 2])
    yield Case(integer(), [rule("string(self) == '12'")], [12, 13])
    yield Case(integer(), [rule("uint(self) == 3u")], [3, 4, -1])
    yield Case(integer(), [rule("self < 3.5")], [3, 4])
    yield Case(integer(), [rule("type(self) == int")], [3])
    yield Case(integer(), [rule("[self, 3, 1].max() == 3")], [2, 4])
    yield Case(number(), [rule("self > 2.5")], [2.5, 3, 3.5])
    yield Case(number(), [rule("self * 2.0 == 3.0")], [1.5, 2])
    yield Case(number(), [rule("int(self) == 2")], [2.7, 3.1, 1e30])
    yield Case(number(), [rule("self / 0.0 > 1.0")], [1.5, -1.5, 0])
    yield Case(number(), [rule("string(self) == '1.5'")], [1.5, 2, 1e21])
    yield Case({"type": "boolean"}, [rule("self")], [True, False])
    yield Case(
        EITHER, [rule("type(self) == int ? self > 3 : self == 'x'")], [3, 4, "x", "y"]
    )
    yield Case(EITHER, [rule("self > 3")], [4, "x"])
    yield Case(EITHER, [rule("self == 'x'")], [4, "x"])
    yield Case(EITHER, [rule("self.startsWith('x')")], [4, "x"])
    yield Case(EITHER, [rule("int(self) > 3")], [4, "5", "x"])


def _text(written: str, *values: str) -> Case:
    return Case(string(maxLength=30), [rule(written)], list(values))


def _strings() -> Iterator[Case]:
    yield _text("self.startsWith('a')", "ab", "b")
    yield _text("self.endsWith('z')", "az", "b")
    yield _text("self.contains('mid')", "amidb", "b")
    yield _text("self.matches('^[a-z]+$')", "ab", "A", "")
    yield _text("self.size() > 2", "ab", "abc", "äöü")
    yield _text("size(self) > 2 && self != 'bad'", "ab", "bad", "good")
    yield _text("self + 'x' == 'ax'", "a", "b")
    yield _text("self < 'm'", "a", "z")
    yield _text("self.lowerAscii() == 'abc'", "ABC", "abd")
    yield _text("self.upperAscii() == 'ABC'", "abc", "äbc")
    yield _text("self.trim() == 'a'", " a\t", "b")
    yield _text("self.replace('a', 'b') == 'bbb'", "aba", "aaa", "c")
    yield _text("self.replace('a', 'b', 1) == 'bba'", "aba", "aaa")
    yield _text("self.split(',').size() == 2", "a,b", "a", "a,b,c")
    yield _text("self.split(',', 2)[1] == 'b,c'", "a,b,c", "a", "a,b")
    yield _text("self.split(',').join('-') == 'a-b'", "a,b", "a")
    yield _text("['a', self].join() == 'ab'", "b", "c")
    yield _text("self.indexOf('b') == 1", "ab", "ba")
    yield _text("self.indexOf('b', 2) == 3", "abab", "ab", "a")
    yield _text("self.lastIndexOf('b') == 3", "abab", "ab")
    yield _text("self.substring(1) == 'bc'", "abc", "a", "")
    yield _text("self.substring(1, 2) == 'b'", "abc", "a")
    yield _text("self.charAt(1) == 'b'", "abc", "a", "")
    yield _text("self.find('[0-9]+') == '12'", "a12b3", "x")
    yield _text("self.findAll('[0-9]+') == ['12', '3']", "a12b3", "x")
    yield _text("self.findAll('[0-9]+', 1) == ['12']", "a12b3", "x")
    yield _text("int(self) == 5", "5", "x", "05", "99999999999999999999")
    yield _text("double(self) == 1.5", "1.5", "x")
    yield _text("bool(self)", "true", "false", "x")
    yield _text("self == \"it's\" || self == r'\\d'", "it's", "\\d", "d")
    yield _text("self == '''a\"b'''", 'a"b', "x")
    yield _text("self == '\\u00e4\\x41\\101\\n'", "äAA\n", "x")
    yield _text("bytes(self).size() == 4", "äb", "abcd", "ab")
    yield _text("'%s is %d%%'.format([self, 5]) == 'a is 5%'", "a", "b")
    yield _text(
        "'%x %o %b %e %f'.format([255, 8, 5, 1.5, 2.0]) == self",
        "ff 10 101 1.500000e+00 2.000000",
        "x",
    )
    yield _text("strings.quote(self) == '\"a\"'", "a", "b")


def _addresses() -> Iterator[Case]:
    yield _text(
        "isURL(self) && url(self).getHost() == 'a.b:80'", "http://a.b:80/c", "x"
    )
    yield _text("url(self).getScheme() == 'https'", "https://a", "http://a", "x y")
    yield _text("url(self).getEscapedPath() == '/a%20b'", "http://a/a b", "http://a/b")
    yield _text(
        "url(self).getPort() == '8' && url(self).getHostname() == '::1'",
        "http://[::1]:8",
        "http://a",
    )
    yield _text(
        "url(self).getQuery()['q'] == ['1', '2']", "http://a/?q=1&q=2", "http://a/?z"
    )
    yield _text("isIP(self) && ip(self).family() == 4", "1.2.3.4", "::1", "x")
    yield _text("ip(self).isLoopback()", "127.0.0.1", "1.2.3.4", "x")
    yield _text("ip.isCanonical(self)", "::1", "::0001")
    yield _text(
        "isCIDR(self) && cidr(self).containsIP('10.0.0.1')",
        "10.0.0.0/8",
        "1.0.0.0/8",
        "x",
    )
    yield _text("cidr(self).containsCIDR('10.1.0.0/16')", "10.0.0.0/8", "10.1.2.0/24")
    yield _text(
        "cidr(self).prefixLength() == 8 && cidr(self).masked() == cidr(self)",
        "10.0.0.0/8",
        "10.0.0.1/8",
    )
    yield _text("cidr(self).ip() == ip('10.0.0.1')", "10.0.0.1/8", "10.0.0.0/8")


def _amounts() -> Iterator[Case]:
    yield _text(
        "isQuantity(self) && quantity(self).isGreaterThan(quantity('1Gi'))",
        "2Gi",
        "1Mi",
        "x",
    )
    yield _text("quantity(self) == quantity('1000m')", "1", "2", "x")
    yield _text(
        "quantity(self).add(quantity('1')).compareTo(quantity('3')) == 0", "2", "1"
    )
    yield _text(
        "quantity(self).isInteger() && quantity(self).asInteger() == 2", "2", "1.5"
    )
    yield _text(
        "quantity(self).asApproximateFloat() > 1.4 && quantity(self).sign() == 1",
        "1500m",
        "1",
        "-2",
    )
    yield _text("quantity(self).sub(1).isLessThan(quantity('1'))", "1", "3")
    yield _text("isSemver(self) && semver(self).major() == 1", "1.2.3", "2.0.0", "1.2")
    yield _text(
        "semver(self).isLessThan(semver('1.2.3'))", "1.2.2", "1.2.3-rc.1", "2.0.0"
    )
    yield _text("semver(self, true).minor() == 2", "v1.2", "01.02.03", "x")
    yield _text("format.dns1123Label().validate(self).hasValue()", "A_b", "ab")
    yield _text(
        "!format.named('uuid').value().validate(self).hasValue()",
        "x",
        "123e4567-e89b-12d3-a456-426614174000",
    )
    yield _text("format.named('nope').hasValue()", "x")
    yield _text("format.dns1123Subdomain().validate(self).value() == ['x']", "A_b")
    yield _text("self.reverse() == 'cba'", "abc")


def _times() -> Iterator[Case]:
    def moment(written: str, *values: str) -> Case:
        return Case(string(format="date-time"), [rule(written)], list(values))

    def length(written: str, *values: str) -> Case:
        return Case(string(format="duration"), [rule(written)], list(values))

    instant = "2020-03-04T05:06:07.089Z"
    yield moment(
        "self > timestamp('2020-01-01T00:00:00Z')", instant, "2019-01-01T00:00:00Z"
    )
    yield moment("self.getFullYear() == 2020 && self.getMonth() == 2", instant)
    yield moment("self.getDate() == 4 && self.getDayOfMonth() == 3", instant)
    yield moment("self.getDayOfWeek() == 3 && self.getDayOfYear() == 63", instant)
    yield moment("self.getHours() == 5 && self.getMinutes() == 6", instant)
    yield moment("self.getSeconds() == 7 && self.getMilliseconds() == 89", instant)
    yield moment("self.getHours('+02:30') == 7", instant)
    yield moment("self + duration('1h') > timestamp('2020-03-04T06:00:00Z')", instant)
    yield moment("self - timestamp('2020-03-04T00:00:00Z') > duration('5h')", instant)
    yield moment(
        "string(self) == '2020-03-04T05:06:07.089Z'", instant, "2020-03-04T05:06:07Z"
    )
    yield moment("int(self) == 1583298367", instant)
    yield Case(
        string(format="date"),
        [rule("self.getFullYear() == 2020")],
        ["2020-01-02", "2021-01-02"],
    )
    yield length("self > duration('1h')", "2h", "30m")
    yield length("self.getHours() == 1 && self.getMinutes() == 90", "90m", "1h")
    yield length("self.getSeconds() == 5400 && self.getMilliseconds() == 0", "90m")
    yield length("string(self) == '5400s'", "90m", "1s")
    yield length("self + duration('30m') == duration('1h')", "30m", "1h")
    yield Case(
        string(format="byte"),
        [rule("self.size() == 3 && self == b'abc'")],
        ["YWJj", "YWI="],
    )
    yield Case(string(format="byte"), [rule("string(self) == 'abc'")], ["YWJj", "/w=="])


def value_rules() -> Iterator[Case]:
    """Every case of this family."""
    yield from (*_scalars(), *_strings(), *_addresses(), *_amounts(), *_times())
