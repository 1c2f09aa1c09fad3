"""Worlds for the tests: the operators that they simulate, and the searches of them."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterable

from tests.sim import shops
from tests.sim.tokens import token_scenario
from trimtab.sim import Scenario
from trimtab.sim.server import Server

REGISTER = {"metadata": {"name": shops.REGISTER}}


def register_is_right(server: Server) -> Iterable[str]:
    """A law of the operator's own: every shop has one line in the register."""
    there = {each["metadata"]["name"] for each in server.of("sim.example.com/shops")}
    entries = {
        each["metadata"]["name"].partition(".")[2]
        for each in server.of("core/configmaps")
        if each["metadata"]["namespace"] == shops.REGISTER
        and "." in each["metadata"]["name"]
        and not each["metadata"]["name"].startswith("kube")
    }
    if there != entries:
        yield f"The shops are {sorted(there)}, the register has {sorted(entries)}."


def shop_scenario(**changes: object) -> Scenario:
    given = {"at_rest": (register_is_right,), "namespaces": (shops.REGISTER,)}
    return Scenario(operator=shops.app, **{**given, **changes})  # type: ignore[arg-type]


def website_scenario(**changes: object) -> Scenario:
    website = importlib.import_module("examples.website")
    return Scenario(operator=website.app, **changes)  # type: ignore[arg-type]


def elsewhere(module: str, name: str) -> Callable[..., Scenario]:
    """A scenario of something that ships, and that is imported when it is asked for."""

    def made(**changes: object) -> Scenario:
        scenario: Scenario = getattr(importlib.import_module(module), name)(**changes)
        return scenario

    return made


SCENARIOS: dict[str, Callable[..., Scenario]] = {
    "shops": shop_scenario,
    "tokens": token_scenario,
    "websites": website_scenario,
}
SHIPPED: dict[str, Callable[..., Scenario]] = {
    "town": elsewhere("tests.pool.pool_world", "pool_scenario"),
    "leaderless town": elsewhere("tests.pool.pool_world", "leaderless_scenario"),
    "unled town": elsewhere("tests.pool.pool_world", "unled_scenario"),
    "lone town": elsewhere("tests.pool.pool_world", "lone_scenario"),
    "sessions": elsewhere("tests.operators.sessions.simulated", "town_scenario"),
    "hasty sessions": elsewhere("tests.operators.sessions.simulated", "hasty_scenario"),
    "patient sessions": elsewhere(
        "tests.operators.sessions.simulated", "patient_scenario"
    ),
    "copying town": elsewhere("tests.operators.sessions.copying", "copies_scenario"),
    "running copying town": elsewhere(
        "tests.operators.sessions.copying", "running_scenario"
    ),
    "retaining town": elsewhere(
        "tests.operators.sessions.retaining", "retention_scenario"
    ),
    "studio": elsewhere("tests.operators.vmafx.studio", "studio_scenario"),
    "told studio": elsewhere("tests.sim.studios", "told_scenario"),
    "cut-off studio": elsewhere("tests.sim.studios", "cut_off_scenario"),
}
"""Searched by tests of their own, and for mutants."""
