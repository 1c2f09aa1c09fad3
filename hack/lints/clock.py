"""Rule: time is the loop's and randomness is handed in, so a simulation owns both."""

from __future__ import annotations

from collections.abc import Iterator

from hack.lints.source import Finding, Source

# These speak to the world outside of any simulation: certificates and tokens that
# expire by the wall clock, servers that other people's clients talk to, and the wiring
# that hands a clock to everything else.
ALLOWED = (
    "src/trimtab/cli/",
    "src/trimtab/testing/",
    "src/trimtab/embedded/",
    "src/trimtab/sim/provided.py",
    "src/trimtab/client/credentials.py",
    "src/trimtab/client/execplugin.py",
    "src/trimtab/client/incluster.py",
    "src/trimtab/client/kubeconfig.py",
    "src/trimtab/operators/sessions/app.py",
    "src/trimtab/operators/vmafx/app.py",
    "src/trimtab/operators/vmafx/training/__main__.py",
)
CLOCKS = frozenset(
    {
        "datetime.date.today",
        "datetime.datetime.now",
        "datetime.datetime.today",
        "datetime.datetime.utcnow",
        "time.monotonic",
        "time.monotonic_ns",
        "time.perf_counter",
        "time.perf_counter_ns",
        "time.time",
        "time.time_ns",
    }
)
CHANCES = frozenset({"os.urandom", "uuid.uuid1", "uuid.uuid4"})
CHANCE_MODULES = ("random.", "secrets.")
GENERATOR = "random.Random"


def check(source: Source) -> Iterator[Finding]:
    if source.within(*ALLOWED):
        return
    for node, name in source.references():
        if name in CLOCKS:
            yield source.finding(
                node,
                f"{name} is a clock that no simulation owns: use the time() of the"
                " running loop, or take the time as an argument.",
            )
        elif name in CHANCES or _is_chance(name):
            yield source.finding(
                node,
                f"{name} is chance that no seed replays: take a random.Random as an"
                " argument and use its methods.",
            )


def _is_chance(name: str) -> bool:
    # One dot: what hangs below a function was found with the function itself.
    one_of_them = name.startswith(CHANCE_MODULES) and name.count(".") == 1
    return one_of_them and name != GENERATOR
