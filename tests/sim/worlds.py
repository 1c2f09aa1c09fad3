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


def town(name: str) -> Callable[..., Scenario]:
    """A scenario of the pool."""

    def made(**changes: object) -> Scenario:
        world = importlib.import_module("tests.pool.pool_world")
        scenario: Scenario = getattr(world, name)(**changes)
        return scenario

    return made


SCENARIOS: dict[str, Callable[..., Scenario]] = {
    "shops": shop_scenario,
    "tokens": token_scenario,
    "websites": website_scenario,
    "town": town("pool_scenario"),
    "leaderless town": town("leaderless_scenario"),
    "unled town": town("unled_scenario"),
    "lone town": town("lone_scenario"),
}


def studio(module: str, name: str) -> Callable[..., Scenario]:
    """A scenario of video scoring."""

    def made(**changes: object) -> Scenario:
        scenario: Scenario = getattr(importlib.import_module(module), name)(**changes)
        return scenario

    return made


STUDIOS: dict[str, Callable[..., Scenario]] = {
    "studio": studio("tests.operators.vmafx.studio", "studio_scenario"),
    "told studio": studio("tests.sim.studios", "told_scenario"),
    "cut-off studio": studio("tests.sim.studios", "cut_off_scenario"),
}
"""Searched by tests of their own, and for mutants."""
