"""Everything that goes by a name: algorithms, environments, experiments, and the parts they are made of.

An algorithm, an environment or an experiment is its own file and one line here. The command line, `lexrl.LPPO`, saved
runs, the documentation and the conformance tests all read these tables. They hold strings, so that reading them imports
nothing; `Entry.load` imports what a line stands for.
"""

import importlib
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple, get_type_hints

from lexrl.errors import InputError, suggestion


class Entry(NamedTuple):
    """One line of a table."""

    name: str
    """On the command line and in files, as in `ppo-lagrangian`."""
    target: str
    """`module:attribute`: a class, a function that builds an instance, or for an experiment its module."""
    title: str
    """In reports and figures, as in `PPO-Lagrangian`."""
    parent: str = ""
    """The algorithm for one objective that this one extends, and equals when there is only one."""
    defaults: Mapping[str, Any] = MappingProxyType({})
    """Settings that differ from the class's own defaults."""
    presets: str = ""
    """Of an environment: the module with the settings of algorithms that are known to work on it."""

    def load(self) -> Any:
        """Import what the line stands for."""
        module, _, attributes = self.target.partition(":")
        found = importlib.import_module(module)
        for attribute in filter(None, attributes.split(".")):
            found = getattr(found, attribute)
        return found

    def make(self, **settings: Any) -> Any:
        """An instance with the defaults of this line and the given settings."""
        return self.load()(**{**self.defaults, **settings})

    def kind(self) -> type:
        """The class of the instances."""
        found = self.load()
        return found if isinstance(found, type) else get_type_hints(found)["return"]

    @property
    def attribute(self) -> str:
        """The public name in `lexrl`, as in `lexrl.LPPO`."""
        return self.target.partition(":")[2].partition(".")[0]

    def summary(self) -> str:
        """The first line of the documentation of what the line stands for."""
        line = (self.load().__doc__ or self.title).strip().splitlines()[0]
        return f"{line.removesuffix('.')}, as in {self.title}." if self.defaults else line


Table = dict[str, Entry]


def table(*entries: Entry) -> Table:
    """Entries by name."""
    return {entry.name: entry for entry in entries}


def add(entries: Table, entry: Entry) -> None:
    """Add a line to one of the tables, as a package of your own does: `add(ALGORITHMS, Entry(...))`."""
    if entry.name in entries and entries[entry.name] != entry:
        raise InputError(f"The name {entry.name!r} is taken by {entries[entry.name].target}; choose another one.")
    entries[entry.name] = entry


def find(entries: Table, name: str, kind: str) -> Entry:
    """The entry of a name; `kind` is what the sentence about an unknown one calls it."""
    if name not in entries:
        raise InputError(f"There is no {kind} {name!r}; there are {', '.join(entries)}.{suggestion(name, entries)}")
    return entries[name]


def entry_of(entries: Table, thing: Any) -> Entry | None:
    """The first line that stands for the class of an instance, None if there is no such line."""
    kind = type(thing)
    # A line names the class itself or a function beside it that builds instances, as `GridNav.generate` does.
    nearby = [entry for entry in entries.values() if entry.target.partition(":")[0] == kind.__module__]
    by_name = [entry for entry in nearby if entry.attribute == kind.__qualname__]
    return next((entry for entry in by_name or nearby if entry.kind() is kind), None)


_A = "lexrl.algorithms"

TEXTBOOK: dict[str, Any] = {
    "tolerance": 0.0,
    "alpha": 0.01,
    "min_alpha": 0.0,
    "exploration": "epsilon 0.05",
    "evidence": None,
    "guard": None,
}
"""Tabular learning with a fixed tolerance and constant rates."""

ALGORITHMS = table(
    Entry("q-learning", f"{_A}.q_learning:QLearning", "Q-learning"),
    Entry("sarsa", f"{_A}.sarsa:Sarsa", "SARSA"),
    Entry("expected-sarsa", f"{_A}.expected_sarsa:ExpectedSarsa", "Expected SARSA"),
    Entry("double-q", f"{_A}.double_q:DoubleQLearning", "Double Q-learning"),
    Entry("gabor", f"{_A}.q_learning:QLearning", "Gabor et al. 1998", defaults=TEXTBOOK),
    Entry("ldqn", f"{_A}.ldqn:LDQN", "LDQN", parent="dqn"),
    Entry("la2c", f"{_A}.la2c:LA2C", "LA2C", parent="a2c"),
    Entry("lppo", f"{_A}.lppo:LPPO", "LPPO", parent="ppo"),
    Entry("paper-la2c", f"{_A}.paper_la2c:PaperLA2C", "LA2C (paper)", parent="a2c"),
    Entry("paper-lppo", f"{_A}.paper_lppo:PaperLPPO", "LPPO (paper)", parent="ppo"),
    Entry("la2c-second-order", f"{_A}.second_order:LA2CSecondOrder", "LA2C, second order", parent="a2c"),
    Entry("lppo-second-order", f"{_A}.second_order:LPPOSecondOrder", "LPPO, second order", parent="ppo"),
    Entry("la2c-average-reward", f"{_A}.average_reward:LA2CAverageReward", "LA2C, average reward", parent="a2c"),
    Entry("lppo-average-reward", f"{_A}.average_reward:LPPOAverageReward", "LPPO, average reward", parent="ppo"),
    Entry("lppo-q-critic", f"{_A}.q_critic:LPPOQCritic", "LPPO, Q-critic", parent="ppo"),
    Entry("projection", f"{_A}.projection:Projection", "Projection", parent="ppo"),
    Entry("dqn", f"{_A}.dqn:DQN", "DQN"),
    Entry("a2c", f"{_A}.a2c:A2C", "A2C"),
    Entry("ppo", f"{_A}.ppo:PPO", "PPO"),
    Entry("rcpo", f"{_A}.rcpo:RCPO", "RCPO"),
    Entry("ppo-lagrangian", f"{_A}.ppo_lagrangian:PPOLagrangian", "PPO-Lagrangian"),
    Entry("var-ac", f"{_A}.var_ac:VaRAC", "VaR-AC"),
    Entry("appropo", f"{_A}.appropo:ApproPO", "ApproPO"),
    Entry("random", f"{_A}.random:Random", "Random"),
    Entry("fixed-action", f"{_A}.fixed_action:FixedAction", "Fixed action"),
)

_E, _P = "lexrl.envs", "lexrl.presets"

ENVS = table(
    Entry("cart-safe", f"{_E}.cart_safe:CartSafe", "CartSafe", presets=f"{_P}.cart_safe"),
    Entry("grid-nav", f"{_E}.grid_nav:GridNav.generate", "GridNav", presets=f"{_P}.grid_nav"),
    Entry("intersection", f"{_E}.intersection.env:Intersection", "Intersection", presets=f"{_P}.intersection"),
    Entry("mountain-car-safe", f"{_E}.mountain_car_safe:MountainCarSafe", "MountainCarSafe"),
    Entry("random-momdp", f"{_E}.random_momdp:random_env", "RandomMOMDP", presets=f"{_P}.random_momdp"),
    Entry("cart-pole", f"{_E}.cart_pole:CartPole", "CartPole"),
)

VALUES = table(
    Entry("constant", "lexrl.schedules:Constant", "Constant schedule"),
    Entry("power", "lexrl.schedules:Power", "Power schedule"),
    Entry("linear", "lexrl.schedules:Linear", "Linear schedule"),
    Entry("of-run", "lexrl.schedules:OfRun", "Fraction of the run"),
    Entry("absolute", "lexrl.tolerance:Absolute", "Absolute tolerance"),
    Entry("relative", "lexrl.tolerance:Relative", "Relative tolerance"),
    Entry("rounding", "lexrl.tolerance:Rounding", "Rounding tolerance"),
    Entry("evidence", "lexrl.tolerance:Evidence", "Evidence"),
    Entry("guard", "lexrl.guard:Guard", "Guard over returns"),
    Entry("scheduled", "lexrl.tolerance:Scheduled", "Scheduled tolerance"),
    Entry("sum", "lexrl.tolerance:Sum", "Sum of tolerances"),
    Entry("limit", "lexrl.constraints:Limit", "Limit"),
    Entry("chance-constraint", "lexrl.constraints:ChanceConstraint", "Chance constraint"),
    Entry("target-box", "lexrl.constraints:TargetBox", "Box of returns"),
    Entry("epsilon-greedy", f"{_A}.exploration:EpsilonGreedy", "Epsilon-greedy exploration"),
    Entry("softmax", f"{_A}.exploration:Softmax", "Softmax exploration"),
    Entry("prefixes", f"{_A}.exploration:Prefixes", "Exploration within every prefix"),
    Entry("convergence", "lexrl.convergence:Convergence", "Convergence"),
    Entry("dual-ascent", "lexrl.dual_ascent:DualAscent", "Dual ascent"),
    Entry("stages", "lexrl.stages:Stages", "Stages"),
    Entry("multipliers", "lexrl.multipliers:Multipliers", "Lagrange multipliers"),
    Entry("pid-lagrangian", f"{_A}.lagrangian:PIDLagrangian", "PID Lagrangian"),
    Entry("unit-free-lagrangian", f"{_A}.lagrangian:UnitFreeLagrangian", "Unit-free Lagrangian"),
    Entry("networks", "lexrl.networks:Networks", "Networks"),
    Entry("set-encoder", "lexrl.set_encoders:SetEncoder", "Set encoder"),
    Entry("single-objective", f"{_A}.single_objective:SingleObjective", "Single objective"),
    Entry("per-seed", f"{_E}.per_seed:PerSeed", "An environment for each seed"),
    Entry("cost-aware", f"{_E}.cost_aware:CostAwareObservation", "Observes accumulated costs"),
    Entry("finite", f"{_E}.finite:FiniteEnv", "Finite MOMDP"),
    Entry("spec", "lexrl.types:Spec", "Spec"),
    Entry("discrete", "lexrl.types:Discrete", "Discrete space"),
    Entry("box", "lexrl.types:Box", "Box space"),
)
"""Parts of algorithms and environments that are written to files under a short name."""

_X = "lexrl.experiments"

EXPERIMENTS = table(
    Entry("scaling", f"{_X}.scaling", "Scaling: learning time against the number of objectives"),
    Entry("safety", f"{_X}.safety", "Safety: reward and cost on CartSafe, GridNav and Intersection"),
    Entry("slack", f"{_X}.slack", "Slack: LDQN's tolerance on CartSafe"),
    Entry("pb-settings", f"{_X}.pb_settings", "Settings of PB-LRL: simultaneous or sequential, first or second order"),
    Entry("policies", f"{_X}.policies", "Policies: what was learned, in pictures"),
)

MEASURES = table(
    Entry("discounted-returns", f"{_X}.safety:discounted_returns", "Discounted returns of greedy policies"),
    Entry("distance-to-optimum", f"{_X}.scaling:distance_to_optimum", "Distance to the exact optimum"),
)
"""Functions that add numbers to the summary of a finished run, from its result."""
