"""The figures and tables of docs/choosing-a-tolerance.md, and the picture of docs/intersection.md.

python docs/make_images.py          a minute on one core
"""

import pathlib

import numpy as np
from rich.console import Console
from rich.table import Table

import lexrl
from lexrl import exact, video
from lexrl.report import tradeoffs
from lexrl.schedules import Power
from lexrl.tolerance import Absolute

IMAGES = pathlib.Path(__file__).parent / "images"
GRID_ORDER, ORDER = "min cost > max reward", "max signal_1 > max signal_2"
SEEDS = 10
console = Console(width=100)


def main() -> None:
    grid = lexrl.GridNav.generate(size=8, map_seed=3).momdp(gamma=0.95)
    action_tolerance(grid)
    policy_slack(grid)
    # In half of its states the first objective has ties.
    momdp = lexrl.MOMDP.random(momdp_seed=1, num_states=8, num_actions=3, num_signals=2, tie_fraction=0.5)
    noisy_estimates(momdp)
    kinds_of_tolerance(momdp)
    crossing()


def crossing() -> None:
    """A state of Intersection, a second after it began."""
    env = lexrl.Intersection()
    state, _ = env.begin(3)
    (IMAGES / "intersection.png").write_bytes(video.png(env.render(env.step(state, 2).state)))


def action_tolerance(momdp: lexrl.MOMDP) -> None:
    """What a tolerance on actions costs and buys on a small GridNav, exactly, next to the bound of Proposition 1."""
    gap = float(exact.action_gaps(exact.solve(momdp, GRID_ORDER)).deciding[0])
    tolerances = np.geomspace(1e-6, 3, 400)
    rows = exact.tolerance_table(momdp, GRID_ORDER, tolerances.tolist())
    loss, reward = np.array([row.loss[0] for row in rows]), np.array([row.returns[1] for row in rows])
    panels = [
        tradeoffs.ToleranceCurve("cost given up", loss, tolerances / (1 - momdp.gamma[0])),
        tradeoffs.ToleranceCurve("reward", reward),
    ]
    title = f"GridNav 8 x 8, {GRID_ORDER}: a tolerance on actions"
    tradeoffs.tolerance_curves(tolerances, panels, gap, title).save(IMAGES / "tolerance-actions.png")
    few = [0.0, 1e-5, 1e-3, 1e-2, 0.03, 0.1, 0.3, 1.0]
    table = Table("tolerance", "cost given up", "bound", "reward", title=f"deciding gap {gap:.3g}")
    for row in exact.tolerance_table(momdp, GRID_ORDER, few):
        bound = row.tolerance / (1 - momdp.gamma[0])
        table.add_row(*(f"{one:.3g}" for one in (row.tolerance, row.loss[0], bound, row.returns[1])))
    console.print(table)


def policy_slack(momdp: lexrl.MOMDP) -> None:
    """What a slack on the whole policy's cost buys on the same map."""
    curve = exact.critical_slack(momdp, GRID_ORDER)
    slack, returns = np.array([point.slack for point in curve]), np.stack([point.returns for point in curve])
    title = f"GridNav 8 x 8, {GRID_ORDER}: a slack on the policy"
    figure = tradeoffs.slack_curve(slack, -returns[:, 0], returns[:, 1], ("cost", "reward"), title)
    figure.save(IMAGES / "tolerance-slack.png")
    table = Table("slack", "cost", "reward", "shadow price", title=f"{len(curve)} corners")
    for point in exact.critical_slack(momdp, GRID_ORDER, [0.0, 0.01, 0.05, 0.1, 0.19, 0.5, 1.0, 2.0]):
        table.add_row(*(f"{one:.3g}" for one in (point.slack, -point.returns[0], point.returns[1], point.shadow_price)))
    console.print(table)


def noisy_estimates(momdp: lexrl.MOMDP) -> None:
    """The effect of a tolerance on Q-learning, whose estimates are noisy."""
    best = exact.solve(momdp, ORDER)
    gap = float(exact.action_gaps(best).deciding[0])
    fine, coarse = np.geomspace(1e-4, 1, 400), np.geomspace(1e-4, 1, 13)
    exactly = np.stack([row.loss for row in exact.tolerance_table(momdp, ORDER, fine.tolist())])
    learned = best.returns - np.stack([learned_returns(momdp, one, 2e5) for one in coarse])
    panels = [
        tradeoffs.ToleranceCurve(f"objective {i + 1} given up", exactly[:, i], learned=(coarse, learned[..., i]))
        for i in range(2)
    ]
    title = f"A MOMDP with ties: Q-learning after 200,000 steps, {SEEDS} seeds"
    tradeoffs.tolerance_curves(fine, panels, gap, title).save(IMAGES / "tolerance-noise.png")


def kinds_of_tolerance(momdp: lexrl.MOMDP) -> None:
    """Fixed and shrinking tolerances, and evidence instead of one, after some and after many steps."""
    best = exact.solve(momdp, ORDER)
    table = Table("tolerance", "steps", "objective 1 given up", "objective 2 given up", title=f"{best.returns}")
    fixed = (Absolute(0.0), Absolute(0.03), Absolute(1.0) * Power(1.0), Absolute(1.0) * Power(0.3))
    for tolerance, evidence in (*((one, None) for one in fixed), (Absolute(0.0), lexrl.Evidence())):
        for steps in (2e5, 2e6):
            lost = (best.returns - learned_returns(momdp, tolerance, steps, evidence)).mean(axis=0)
            name = str(tolerance) if evidence is None else f"evidence: {evidence}"
            table.add_row(name, f"{steps:,.0f}", *(f"{one:.3f}" for one in lost))
    console.print(table)


def learned_returns(
    momdp: lexrl.MOMDP, tolerance: object, steps: float, evidence: lexrl.Evidence | None = None
) -> np.ndarray:
    """Exact returns of the greedy policies of Q-learning: `[seeds, M]`."""
    env = lexrl.FiniteEnv(momdp, max_episode_steps=50)
    given = {"gamma": 0.9, "alpha": "n^-0.7", "exploration": "epsilon 0.5", "tolerance": tolerance}
    algorithm = lexrl.QLearning(**{**lexrl.catalog.TEXTBOOK, **given, "evidence": evidence})
    result = lexrl.train(algorithm, env, ORDER, seeds=SEEDS, total_timesteps=steps)
    return np.stack([exact.evaluate(momdp, policy, ORDER).returns for policy in result.probabilities()])


if __name__ == "__main__":
    main()
