"""Worlds for the tests: the operators that they simulate, and the searches of them."""

from __future__ import annotations

import importlib
from collections.abc import Iterable

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


SCENARIOS = {
    "shops": shop_scenario,
    "tokens": token_scenario,
    "websites": website_scenario,
}
