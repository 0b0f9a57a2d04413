"""Write `docs/solved.md`: the optimum of well-known finite environments for every order of their objectives.

python docs/make_solved_table.py [--only FrozenLake-v1 ...]
"""

import argparse
import itertools
import pathlib
import time

import lexrl
from lexrl.momdp import MOMDP

ENVS = {
    "FrozenLake-v1": 1.0,
    "CliffWalking-v1": 1.0,
    "Taxi-v4": 1.0,
    "Blackjack-v1": 1.0,
    "deep-sea-treasure-v0": 1.0,
    "resource-gathering-v0": 0.9,
    "fruit-tree-v0": 0.99,
    "four-room-v0": 0.99,
}
"""With the discount they are solved with."""

HEAD = """# Environments of Gymnasium, solved

`lexrl solve gym:NAME` turns an environment of Gymnasium or MO-Gymnasium with discrete actions and integer observations
into a finite MOMDP and solves it: from its transition table where it has one and its reward is the only signal, else by
visiting every state and trying every action, twice, with every answer its random generator can give. 20,000 steps of
ordinary episodes must show nothing else: a table that they contradict does not count, and what is not Markov in its
observations is refused. In Python: `lexrl.momdp_from_env("NAME", gamma)`.

This page was written by `python docs/make_solved_table.py`. Rewards are all maximized; `reward_1 > reward_2` means that
the first is the more important one. Orders with the same optimum share a row; `reward_1 > …` stands for all orders that
begin so.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description="Solve well-known finite environments.")
    parser.add_argument("--only", nargs="+", choices=ENVS, default=list(ENVS))
    chosen = parser.parse_args().only
    parts = [HEAD, *(section(name, ENVS[name]) for name in chosen)]
    pathlib.Path(__file__).with_name("solved.md").write_text("\n".join(parts))


def section(name: str, gamma: float) -> str:
    """One environment: its size, its command, and a table of optima."""
    start = time.perf_counter()
    momdp = lexrl.momdp_from_env(name, gamma)
    found: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for signals in itertools.permutations(momdp.signals):
        found.setdefault(optimum(momdp, signals), set()).add(signals)
    print(f"{name}: {momdp.num_states} states, {time.perf_counter() - start:.1f} s")
    order = " > ".join(f"max {signal}" for signal in momdp.signals)
    lines = [
        f"## {name}\n",
        f"{momdp.num_states:,} states (in the last one episodes have ended), {momdp.num_actions} actions, gamma "
        f"{gamma:g}:\n",
        f'    lexrl solve gym:{name} --order "{order}" --gamma {gamma:g}\n',
        f"| order | {' | '.join(momdp.signals)} |",
        "|---" * (1 + len(momdp.signals)) + "|",
    ]
    for returns, orders in found.items():
        lines.append(f"| {', '.join(described(orders, (), momdp.signals))} | {' | '.join(returns)} |")
    return "\n".join(lines) + "\n"


def described(orders: set[tuple[str, ...]], begin: tuple[str, ...], signals: tuple[str, ...]) -> list[str]:
    """Which of the orders that begin so are in the set, in as few words as possible."""
    rest = [signal for signal in signals if signal not in begin]
    inside = [(*begin, *more) in orders for more in itertools.permutations(rest)]
    if all(inside):
        ending = tuple(rest) if len(rest) < 2 else ("…",)
        return [" > ".join((*begin, *ending))]
    return [text for signal in rest for text in described(orders, (*begin, signal), signals)] if any(inside) else []


def optimum(momdp: MOMDP, signals: tuple[str, ...]) -> tuple[str, ...]:
    """The returns under one order, in the order of the signals."""
    solution = lexrl.solve(momdp, " > ".join(f"max {signal}" for signal in signals))
    named = dict(zip(solution.objectives, solution.returns, strict=True))
    return tuple(f"{named[signal] + 0.0:.6g}" for signal in momdp.signals)


if __name__ == "__main__":
    main()
