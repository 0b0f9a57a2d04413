"""How tabular algorithms explore: lexicographic epsilon-greedy, softmax, and epsilon-greedy within every prefix."""

from typing import Any

import equinox as eqx
from jax import Array

from lexrl import lex
from lexrl.algorithms import validation
from lexrl.errors import InputError
from lexrl.schedules import Constant, Linear, OfRun, Schedule, as_schedule, named
from lexrl.units import counts


class EpsilonGreedy(eqx.Module):
    """Lexicographic epsilon-greedy (Algorithm 1): epsilon is a schedule in n(s), the visits to the state."""

    epsilon: Schedule = eqx.field(converter=named("epsilon"), default=Constant(0.05), metadata=counts("visits"))

    def __check_init__(self):
        validation.require_in_unit_interval(epsilon=self.epsilon.largest())

    def __str__(self) -> str:
        return f"epsilon {self.epsilon}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array, time: Array) -> Array:
        return lex.epsilon_greedy(q, tau, self.epsilon(visits))


class Softmax(eqx.Module):
    """Lexicographic softmax: the temperature is a schedule in n(s), the visits to the state."""

    temperature: Schedule = eqx.field(converter=named("temperature"), default=Constant(0.05), metadata=counts("visits"))

    def __str__(self) -> str:
        return f"softmax {self.temperature}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array, time: Array) -> Array:
        return lex.softmax(q, tau, self.temperature(visits))


class Prefixes(eqx.Module):
    """Epsilon-greedy within every prefix of the order: an exploring step draws one of `D_0 .. D_{M-1}`, and any of its
    actions; epsilon is a schedule in the number of updates. Some episodes go where little was tried instead."""

    epsilon: Schedule = eqx.field(
        converter=named("epsilon"), default=Linear(1.0, 0.3, OfRun(0.5)), metadata=counts("updates")
    )
    novelty: float = 0.5
    """Share of episodes that look for novelty, times epsilon."""

    def __check_init__(self):
        validation.require_in_unit_interval(novelty=self.novelty)

    def __str__(self) -> str:
        return f"prefixes {self.epsilon}"

    def probabilities(self, q: Array, tau: lex.Slack, visits: Array, time: Array) -> Array:
        return lex.prefix_greedy(q, tau, self.epsilon(time))


Exploration = EpsilonGreedy | Softmax | Prefixes


def as_exploration(given: Any) -> Any:
    """Text may be `prefixes 1 to 0.3 in 50%`, `epsilon 0.05`, `epsilon 100/n` or `softmax n^-0.3`."""
    if isinstance(given, int | float):
        given = str(given)
    if not isinstance(given, str):
        return given
    kind, _, rate = given.strip().partition(" ")
    if kind not in ("epsilon", "softmax", "prefixes") or not rate:
        raise InputError(
            f"The exploration {given!r} cannot be read; write 'prefixes 1 to 0.3 in 50%', 'epsilon 0.05', "
            "'epsilon 100/n' or 'softmax 0.1'."
        )
    schedule = as_schedule(rate, name="temperature" if kind == "softmax" else "epsilon")
    return {"epsilon": EpsilonGreedy, "softmax": Softmax, "prefixes": Prefixes}[kind](schedule)
