"""Refusing: validating policies in use."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hack.policy_corpus.bodies import JSON, check, config, rule
from hack.policy_corpus.scenarios import NAME, NAMESPACES, Scenario


def refusing() -> Iterator[Callable[[Scenario], None]]:
    """Every scenario, in a fixed order."""
    yield from (verdicts, reasons, messages, ignored, warned, conditions, variables)
    yield from (request, namespaces, authorizers, budgets, notes, updates)


def verdicts(it: Scenario) -> None:
    it.validating(
        check(f"{NAME} != 'one'"),
        check(f"{NAME} != 'two'", message=" two is not wanted "),
        check(f"{NAME} != 'three'", messageExpression="'no ' + object.metadata.name"),
        check(f"{NAME} != 'missing' || object.data.key == 'x'"),
        check(f"{NAME} != 'wrong' || object.data.key > 5"),
        check(f"{NAME} != 'zero' || 1 / int(object.data.key) == 1"),
        check(f"{NAME} != 'two' && {NAME} != 'three'", message="the second"),
        check(f"{NAME} != 'deep' || object.spec.template.spec.x"),
    )
    for name in ("one", "two", "three", "missing", "zero", "deep", "fine"):
        it.config(name, {"key": "0"} if name in ("wrong", "zero") else {})
    it.config("wrong", {"key": "a"})
    it.create(config("", generateName="made-"))


def reasons(it: Scenario) -> None:
    for reason in ("Forbidden", "Invalid", "RequestEntityTooLarge"):
        it.validating(
            check(f"{NAME} != '{reason.lower()}'", reason=reason, message="no"),
            part=reason.lower(),
        )
    for name in ("forbidden", "invalid", "requestentitytoolarge"):
        it.config(name)


def messages(it: Scenario) -> None:
    for number, text in enumerate(
        (
            "'a\\nb'",
            "'   '",
            "string(object.data.nothing)",
            "'x' + string(1 / 0)",
            "lists.range(6000).map(x, 'a').join()",
            "' kept '",
            "string(object.metadata.labels)",
        )
    ):
        told = f"{NAME} != 'm{number}'"
        it.validating(
            check(told, message="said instead", messageExpression=text),
            part=f"m{number}",
        )
        it.config(f"m{number}")


def ignored(it: Scenario) -> None:
    it.validating(
        check("object.data.nothing == 'x'"),
        check(f"{NAME} != 'bad'", message="still no"),
        failurePolicy="Ignore",
    )
    it.config("bad")
    it.config("good")


def warned(it: Scenario) -> None:
    it.validating(
        check(f"{NAME} != 'both'", message="first"),
        check(f"{NAME} != 'both'", message='second "quoted" \\'),
        check(f"{NAME} != 'both' || object.data.x == ''"),
        binding={"validationActions": ["Warn", "Audit"]},
    )
    it.validating(
        check(f"{NAME} != 'noted'"),
        part="audit",
        binding={"validationActions": ["Audit"]},
    )
    for name in ("both", "noted", "none"):
        it.config(name)


def conditions(it: Scenario) -> None:
    def given(*texts: str) -> list[JSON]:
        return [{"name": f"c{i}", "expression": each} for i, each in enumerate(texts)]

    no = check(f"{NAME} != 'a'", message="no")
    it.validating(no, matchConditions=given("true", f"{NAME} == 'b'"), part="never")
    it.config("a")
    for part, policy, texts in (
        ("holds", "Fail", (f"{NAME} == 'holds'", "request.operation == 'CREATE'")),
        ("broken", "Fail", (f"{NAME} == 'broken'", "object.data.x == 'y'")),
        ("twice", "Fail", (f"{NAME} == 'twice'", "object.a == 1", "object.c == 1")),
        ("lenient", "Ignore", (f"{NAME} == 'lenient'", "object.data.x == 'y'")),
        ("decided", "Fail", ("object.data.x == 'y'", f"{NAME} == 'other'")),
    ):
        no = check(f"{NAME} != '{part}'", message="no")
        it.validating(
            no, part=part, matchConditions=given(*texts), failurePolicy=policy
        )
        it.config(part)


def variables(it: Scenario) -> None:
    it.validating(
        check(f"{NAME} != 'used' || variables.text == ''"),
        check(f"{NAME} != 'broken' || variables.broken == 1"),
        check(f"{NAME} != 'chained' || variables.chained == 1"),
        check(
            f"{NAME} != 'told'",
            messageExpression="'%d %s'.format([variables.size, variables.names])",
        ),
        check(f"{NAME} != 'typed' || variables.names[0].startsWith('z')"),
        check(f"{NAME} != 'who' || !variables.may"),
        variables=[
            {"name": "names", "expression": "object.data.map(k, k)"},
            {"name": "size", "expression": "size(variables.names)"},
            {"name": "text", "expression": "object.metadata.name"},
            {"name": "broken", "expression": "object.data.nothing"},
            {"name": "chained", "expression": "variables.broken + 1"},
            {
                "name": "may",
                "expression": "authorizer.requestResource.check('create').allowed()",
            },
        ],
    )
    for name in ("used", "broken", "chained", "told", "typed", "who", "unused"):
        it.config(name, {"key": "value"})


def request(it: Scenario) -> None:
    texts = (
        "string(request.kind.group) + '/' + request.kind.version + request.kind.kind",
        "request.resource.resource + '.' + request.requestResource.group",
        "request.requestKind.kind + request.requestResource.version",
        "request.operation + ' ' + request.name + ' in ' + request.namespace",
        "string(request.dryRun)",
        "request.options.kind + ' ' + request.options.apiVersion",
        "string('system:masters' in request.userInfo.groups)",
        "request.subResource",
        "string(has(request.subResource)) + string(has(request.name))",
        "string(has(request.userInfo.uid)) + string(has(request.userInfo.extra))",
        "string(has(request.options.dryRun))",
        "string(oldObject == null) + string(object == null)",
        "string(object.apiVersion + object.kind)",
        "'%s'.format([object.metadata.map(k, k).filter(k, k != 'uid').sort()])",
    )
    for number, text in enumerate(texts):
        it.validating(
            check(f"{NAME} != 'r{number}'", message="nothing", messageExpression=text),
            part=f"r{number}",
        )
        it.config(f"r{number}")
    it.create(config("r4"), dryRun="All")
    it.create(config("r10"), dryRun="All")


def namespaces(it: Scenario) -> None:
    it.validating(
        check(
            f"{NAME} != 'labels'",
            messageExpression="namespaceObject.metadata.labels['for']",
        ),
        check(
            f"{NAME} != 'name'",
            messageExpression="namespaceObject.metadata.name + namespaceObject."
            "status.phase",
        ),
        check(f"{NAME} != 'kind' || namespaceObject.spec.finalizers.size() == 0"),
        check(f"{NAME} != 'uid' || namespaceObject.metadata.UID == 'x'"),
    )
    for name in ("labels", "name", "kind", "uid"):
        it.config(name)
    it.validating(
        check("namespaceObject == null", message="there is one"),
        check(
            f"{NAME} != 'policy-namespaces-two'",
            messageExpression="string(has(request.namespace)) + request.namespace",
        ),
        check("!has(object.metadata.labels.deny)", message="denied"),
        part="own",
        rules=[rule("namespaces", operations=["*"])],
        match={
            "namespaceSelector": {},
            "objectSelector": {"matchLabels": {"scenario": "namespaces"}},
        },
    )
    ours = {"scenario": "namespaces"}
    for name, labels in (
        ("policy-namespaces-two", ours),
        ("policy-namespaces-three", {**ours, "deny": "yes"}),
        ("policy-namespaces-four", {"deny": "yes"}),
    ):
        it.ask("POST", NAMESPACES, {"metadata": {"name": name, "labels": labels}})


def authorizers(it: Scenario) -> None:
    account = f"authorizer.serviceAccount('{it.namespace}', 'somebody')"
    pods = f"{account}.group('').resource('pods')"
    for number, text in enumerate(
        (
            f"{pods}.namespace('x').check('get').allowed()",
            f"{pods}.check('get').reason() != ''",
            f"{account}.path('/nowhere').check('get').allowed()",
            "!authorizer.path('/nowhere').check('get').allowed()",
            "!authorizer.requestResource.check('create').allowed()",
            "authorizer.path('').check('get').allowed()",
            "authorizer.group('').resource(' ').check('get').allowed()",
            "authorizer.serviceAccount('A', 'b').path('/x').check('get').allowed()",
            "authorizer.serviceAccount('a', 'B').path('/x').check('get').allowed()",
            (
                f"{pods}.subresource('log').name('a').labelSelector('a=b').fieldSelector"
                "('a=b').check('get').errored()"
            ),
            (
                f"{pods}.check('a').allowed() && {pods}.check('b').allowed() "
                f"&& {pods}.check('c').allowed()"
            ),
            " && ".join(
                f"authorizer.group('').resource('pods').check('{each}').allowed()"
                for each in "abc"
            ),
        )
    ):
        told = check(f"{NAME} != 'a{number}' || {text}")
        it.validating(told, part=f"a{number}")
        it.config(f"a{number}")


def budgets(it: Scenario) -> None:
    for part, count in (("steep", 1_000_000), ("fine", 900_000)):
        text = f"lists.range({count}).size() > 0"
        it.validating(check(f"{NAME} != '{part}' || {text}"), part=part)
        it.config(part)
    asked = "authorizer.path('/a').check('get').allowed()"
    dear = check(f"{NAME} != 'together' || {asked} && {asked}")
    it.validating(*[dear] * 15, part="together")
    it.config("together")


def notes(it: Scenario) -> None:
    def note(text: str) -> JSON:
        return {"key": "note", "valueExpression": text}

    for part, policy, text in (
        ("good", "Fail", "'a'"),
        ("nothing", "Fail", "null"),
        ("broken", "Fail", "string(object.data.nothing)"),
        ("lenient", "Ignore", "string(object.data.nothing)"),
    ):
        it.validating(
            part=part,
            auditAnnotations=[note(text)],
            failurePolicy=policy,
            match={"objectSelector": {"matchLabels": {"part": part}}},
        )
        it.config(part, labels={"part": part})


def updates(it: Scenario) -> None:
    it.validating(
        check(
            "request.operation != 'UPDATE' || object.data.x == oldObject.data.x",
            messageExpression="oldObject.data.x + ' to ' + object.data.x",
        ),
        check(f"{NAME} != 'never'"),
    )
    it.make(it.path(), config("one", {"x": "1"}))
    where = f"{it.path()}/one"
    it.ask("PATCH", where, {"data": {"x": "2"}})
    it.ask("PATCH", where, {"data": {"y": "2"}})
    it.ask("PUT", where, config("one", {"x": "3"}))
    it.config("never")
