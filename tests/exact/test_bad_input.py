"""What the exact solvers cannot take is answered by a sentence that says what it was."""

import numpy as np
import pytest
import scipy.sparse as sp

import lexrl
from lexrl.errors import InputError
from lexrl.exact import (
    certify,
    critical_slack,
    evaluate,
    solve,
    solve_average,
    solve_horizon,
    solve_slack,
    tolerance_table,
)
from lexrl.exact.evaluation import require_momdp
from lexrl.momdp import MOMDP

MOVES, PAID = np.full((2, 2, 2), 0.5), np.ones((2, 2, 2))
WORLD = MOMDP.from_arrays(MOVES, PAID, 0.9, signals=("cost", "reward"))
ORDER = "min cost > max reward"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"rewards": [[1, 2], [3]]}, "The rewards cannot be read as an array of numbers"),
        ({"rewards": "none"}, "The rewards cannot be read as an array of numbers"),
        ({"transitions": [[1], [1, 2]]}, "The transitions cannot be read as an array of numbers"),
        ({"initial": ["first"]}, "The initial probabilities cannot be read as an array of numbers"),
        ({"action_mask": np.ones((2, 3))}, r"mask has shape \(2, 3\); it needs \(2, 2\)"),
        ({"action_mask": np.full((2, 2), np.nan)}, "The action mask contains nan"),
        ({"action_mask": np.zeros((2, 2))}, "leaves no action in state 0"),
        ({"transitions": MOVES * 0.9}, "state 0, action 0 sum to 0.9"),
        ({"transitions": np.where(MOVES[..., :1] > 0, [np.inf, -np.inf], 0.0)}, "state 0, action 0 contain -inf"),
        ({"transitions": sp.csr_array((3, 0))}, r"sparse transitions have shape \(3, 0\)"),
        ({"rewards": PAID * 1j}, "The rewards cannot be read as an array of numbers"),
        ({"signals": ("a b", "c")}, "A signal is named 'a b', which an order cannot name"),
        ({"action_mask": [[1], [1, 1]]}, "entries of the action mask cannot be read"),
    ],
)
def test_arrays(given, said):
    with pytest.raises(InputError, match=said):
        MOMDP.from_arrays(**({"transitions": MOVES, "rewards": PAID, "gamma": 0.9} | given))


def test_what_is_not_a_momdp():
    with pytest.raises(InputError, match="A ndarray is not a MOMDP"):
        require_momdp(MOVES)
    assert require_momdp(WORLD) is WORLD


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: solve(WORLD, ORDER, time_limit=0.0), "The time limit is 0.0; it must be a number of seconds above 0"),
        (lambda: solve_horizon(WORLD, ORDER, 0), "The horizon is 0; it needs at least 1 step, and a whole"),
        (lambda: critical_slack(WORLD, ORDER, [np.inf]), r"The slacks \[inf\] should be a list of numbers from 0"),
        (lambda: critical_slack(WORLD, ORDER, 1.0), "The slacks 1.0 should be a list of numbers from 0 on"),
        (lambda: critical_slack(WORLD, ORDER, []), r"The slacks \[\] should be a list of numbers from 0 on"),
        (lambda: critical_slack(WORLD, ORDER, ["a"]), "The slacks cannot be read as an array of numbers"),
        (lambda: tolerance_table(WORLD, ORDER, 0.1), "The tolerances are 0.1; the table needs a list of them"),
        (lambda: solve(WORLD, ORDER, tolerance=None), "The tolerance is None; write a number"),
        (lambda: lexrl.momdp_from_env("FrozenLake-v1", foo=3), "FrozenLake-v1 cannot be made with these settings"),
        (lambda: evaluate(WORLD, "uniform"), "The policy's entries cannot be read as an array of numbers"),
        (lambda: certify(WORLD, ORDER, np.full((2, 2), 0.5), "best"), "The values cannot be read"),
        (lambda: solve_slack(WORLD, "cost <= 10 > cost >= 20"), "No return satisfies both"),
        (lambda: solve_slack(WORLD, "cost <= nan > max reward"), "'cost <= nan' in the order"),
        (lambda: solve_slack(WORLD, ORDER, slack=np.nan), "The absolute tolerance is nan"),
        (lambda: solve(WORLD, ORDER, tolerance=np.inf), "The tolerance of cost is inf"),
        (lambda: solve_slack(WORLD, ORDER, slack=np.inf), "The tolerance of cost is inf"),
        (lambda: solve_average(WORLD, ORDER, slack=np.inf), "The tolerance of cost is inf"),
        (lambda: solve_horizon(WORLD, ORDER, 2, tolerance=np.inf), "The tolerance of cost is inf"),
    ],
)
def test_calls(call, said):
    with pytest.raises(InputError, match=said):
        call()


def test_what_happens_in_a_terminal_state_is_ignored():
    moves = np.array([[[0.0, 1.0], [1.0, 0.0]], [[np.nan, np.inf], [-np.inf, 3.0]]])
    world = MOMDP.from_arrays(moves, PAID, 0.5, terminal=[1])
    assert solve(world, "max signal_1 > max signal_2").returns.tolist() == [2.0, 2.0]
    assert evaluate(world, np.full((2, 2), 0.5)).returns == pytest.approx([4 / 3, 4 / 3])
    assert solve_slack(world, "max signal_1 ±1 > min signal_2").returns == pytest.approx([1.0, -1.0])
