"""MountainCarSafe against a second telling in double precision, its signals by hand, and what its wall does."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.sparse as sp

import lexrl
from lexrl.errors import InputError
from lexrl.types import Box

WALL = -0.75
STARTS = np.linspace(-0.6, -0.4, 21)


def retold(x, v, a):
    """One step in double precision, for arrays of states."""
    v = np.minimum(np.maximum(v + 15e-4 * a - 25e-4 * np.cos(3 * x), -0.07), 0.07)
    x = x + v
    v = np.where(x <= -1.2, np.maximum(v, 0), v)
    return np.minimum(np.maximum(x, -1.2), 0.6), v


def drive(policy, x, limit=999, v=0.0):
    """Where a policy takes the car, until it is at the goal or out of time."""
    places = []
    while len(places) < limit and (not places or x < 0.45):
        x, v = map(float, retold(x, v, policy(x, v)))
        places.append(x)
    return np.array(places)


@pytest.fixture(scope="module")
def world():
    return lexrl.MountainCarSafe()


@pytest.fixture(scope="module")
def steps(world):
    return jax.jit(jax.vmap(lambda state, action: world.step(state, action, jax.random.key(0))))


def one(steps, x, v, a):
    answer = steps(jnp.array([[x, v]], jnp.float32), jnp.array([[a]], jnp.float32))
    return jax.tree.map(lambda leaf: np.asarray(leaf[0], float), answer)


class TestPhysics:
    def test_every_step(self, steps):
        rng = np.random.default_rng(0)
        cars = np.stack([rng.uniform(-1.2, 0.6, 5000), rng.uniform(-0.07, 0.07, 5000)], axis=1).astype(np.float32)
        pushes = rng.uniform(-1, 1, (5000, 1)).astype(np.float32)
        answer = steps(cars, pushes)
        x, v = retold(*cars.T.astype(float), pushes[:, 0].astype(float))
        at_the_end = np.abs(x + 1.2) < 1e-6
        assert 20 < at_the_end.sum() < 500
        np.testing.assert_allclose(answer.state[:, 0], x, rtol=0, atol=3e-7)
        np.testing.assert_allclose(answer.state[:, 1], v, rtol=0, atol=3e-8)
        np.testing.assert_array_equal(answer.obs, answer.state)
        # Signals and the end, away from the lines where rounding decides.
        clear = (np.abs(x - 0.45) > 1e-6) & (np.abs(x - WALL) > 1e-6)
        np.testing.assert_array_equal(answer.discount[clear], np.where(x >= 0.45, 0.0, 1.0)[clear])
        np.testing.assert_array_equal(answer.signals[clear, 1], np.where(x < WALL, 1.0, 0.0)[clear])
        reward = np.where(x >= 0.45, 100.0, 0.0) - 0.1 * pushes[:, 0].astype(float) ** 2
        np.testing.assert_allclose(answer.signals[clear, 0], reward[clear], rtol=1e-6)

    def test_a_whole_episode(self, world, steps):
        state, _ = world.reset(jax.random.key(3))
        x, v = np.asarray(state, float)
        for time in range(300):
            a = math.sin(time / 9)
            state = steps(state[None], jnp.full((1, 1), a)).state[0]
            x, v = retold(x, v, a)
            np.testing.assert_allclose(state, [x, v], rtol=0, atol=2e-4)

    def test_the_left_end_takes_all_speed(self, steps):
        np.testing.assert_allclose(one(steps, -1.19, -0.06, 0.0).state, [-1.2, 0.0], atol=1e-6)

    def test_it_can_leave_the_left_end(self, steps):
        place, speed = one(steps, -1.2, 0.0, 0.0).state
        assert speed == pytest.approx(-0.0025 * math.cos(3.6), rel=1e-5)
        assert place == pytest.approx(-1.2 + speed, rel=1e-5)

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_speed_is_limited(self, steps, sign):
        # cos(3 x) = 1 at 0 and -1 at -pi/3: the slope speeds the car up in both cases.
        assert one(steps, 0.0 if sign < 0 else -math.pi / 3, sign * 0.07, sign).state[1] == pytest.approx(sign * 0.07)

    @pytest.mark.parametrize("sign", [-1, 1])
    def test_pushes_are_limited(self, steps, sign):
        jax.tree.map(np.testing.assert_array_equal, one(steps, -0.5, 0.0, sign * 7), one(steps, -0.5, 0.0, sign))

    def test_it_starts_at_rest_near_the_bottom(self, world):
        states, seen = jax.vmap(world.reset)(jax.random.split(jax.random.key(0), 1000))
        np.testing.assert_array_equal(states, seen)
        assert (states[:, 1] == 0).all()
        assert states[:, 0].min() >= -0.6
        assert states[:, 0].max() <= -0.4
        assert abs(states[:, 0].mean() + 0.5) < 5 * 0.2 / math.sqrt(12 * 1000)
        assert abs(states[:, 0].std() - 0.2 / math.sqrt(12)) < 0.005


class TestSignals:
    # At the bottom and at rest nothing moves but by the push.
    @pytest.mark.parametrize(
        ("x", "v", "a", "signals", "discount"),
        [
            (-0.5, 0.0, 0.5, [-0.025, 0, 1], 1),
            (-0.5, 0.0, 0.0, [0, 0, 1], 1),
            (-0.5, 0.0, 3.0, [-0.1, 0, 1], 1),
            (-0.74, -0.01, 0.0, [0, 0, 1], 1),  # the slope brakes: not beyond the wall yet
            (-0.74, -0.02, 0.0, [0, 1, 1], 1),
            (-0.76, 0.02, 1.0, [-0.1, 0, 1], 1),  # back again
            (-1.2, 0.0, -1.0, [-0.1, 1, 1], 1),
            (0.43, 0.03, 1.0, [99.9, 0, 1], 0),
            (0.43, 0.03, 0.0, [100, 0, 1], 0),
            (0.43, 0.01, 0.0, [0, 0, 1], 1),
        ],
    )
    def test_by_hand(self, steps, x, v, a, signals, discount):
        answer = one(steps, x, v, a)
        np.testing.assert_allclose(answer.signals, signals, rtol=1e-6)
        assert answer.discount == discount

    def test_the_wall_can_be_set(self):
        car, push = jnp.array([-0.9, 0.0]), jnp.zeros(1)
        costs = [
            float(lexrl.MountainCarSafe(cost_boundary=wall).step(car, push, jax.random.key(0)).signals[1])
            for wall in (-1.2, -1.0, -0.8, -0.6)
        ]
        assert costs == [0, 0, 1, 1]

    def test_the_spec(self, world):
        assert world.spec.signals == ("reward", "cost", "time")
        assert world.spec.action_space == Box((1,), -1.0, 1.0)
        assert world.spec.observation_space == Box((2,), -1.2, 0.6)
        assert world.spec.max_episode_steps == 999


class TestTheWall:
    """Hurry and safety disagree from every start; what the docstring of the world says."""

    @staticmethod
    def quickest(wall):
        """The quickest policy that stays right of a wall: value iteration for the time to the goal, on a grid."""
        n_x, n_v, never = 361, 141, 400.0
        x, v = (side.ravel() for side in np.meshgrid(np.linspace(-1.2, 0.6, n_x), np.linspace(-0.07, 0.07, n_v)))

        def between(x, v):
            """Weights of the grid's points for states between them, `[n, points]`."""
            i, j = (x + 1.2) / 1.8 * (n_x - 1), (v + 0.07) / 0.14 * (n_v - 1)
            low_i, low_j = np.clip(i.astype(int), 0, n_x - 2), np.clip(j.astype(int), 0, n_v - 2)
            p, q = i - low_i, j - low_j
            corner = low_j * n_x + low_i
            points = np.stack([corner, corner + 1, corner + n_x, corner + n_x + 1], axis=1)
            weights = np.stack([(1 - p) * (1 - q), p * (1 - q), (1 - p) * q, p * q], axis=1)
            rows = np.repeat(np.arange(len(x)), 4)
            return sp.csr_array((weights.ravel(), (rows, points.ravel())), shape=(len(x), n_x * n_v))

        pushes = np.array([-1.0, 0.0, 1.0])
        reached = [retold(x, v, push) for push in pushes]
        matrices = [between(*new) for new in reached]

        def to_go(matrix, new, values):
            return np.where(new[0] < wall, never, np.where(new[0] >= 0.45, 0.0, matrix @ values))

        values = np.zeros(n_x * n_v)
        for _ in range(int(never)):
            both = zip(matrices, reached, strict=True)
            new = np.minimum(1 + np.min([to_go(matrix, at, values) for matrix, at in both], axis=0), never)
            change, values = np.abs(new - values).max(), new
            if change < 1e-3:
                break

        def policy(x, v):
            new = retold(np.full(3, x), np.full(3, v), pushes)
            return pushes[np.argmin(to_go(between(*new), new, values))]

        return policy

    @staticmethod
    def with_the_speed(first):
        return lambda x, v: np.sign(v) or first

    @staticmethod
    def with_brakes(x, v):
        """Push with the speed, if after that the goal can be reached at once, or brakes can keep the car safe."""

        def fine(x, v):
            if v > 0 and drive(lambda x, v: 1.0, x, 60, v)[-1] >= 0.45:
                return True
            braked = drive(lambda x, v: -1.0 if v > 0 else 1.0, x, 60, v)
            return min(x, braked.min()) >= WALL

        way = np.sign(v) or 1.0
        return next((push for push in (way, 0.0) if fine(*map(float, retold(x, v, push)))), -way)

    def test_the_quickest_way_is_not_safe_and_a_safe_one_is_there(self):
        free, safe = self.quickest(-math.inf), self.quickest(WALL)
        for start in STARTS:
            hurried, careful = drive(free, start, 200), drive(safe, start, 200)
            assert hurried[-1] >= 0.45
            assert careful[-1] >= 0.45
            assert 9 <= (hurried < WALL).sum() <= 18
            assert (careful < WALL).sum() == 0
            assert 65 <= len(hurried) <= 67
            assert 68 <= len(careful) <= 71

    def test_beyond_minus_0_9_the_quickest_way_is_safe(self):
        free = self.quickest(-math.inf)
        assert min(drive(free, start, 200).min() for start in STARTS) > -0.9

    def test_no_way_is_left_with_the_wall_at_minus_0_65(self):
        """A run up the hill begins where the car turned, and all its power is not enough from any turn.

        Up to `steep` the slope is stronger than the car: whoever does not get there rolls back.
        """
        steep = math.acos(0.0015 / 0.0025) / 3
        turns = np.linspace(-0.65, 0.3, 96)
        assert max(drive(lambda x, v: 1.0, turn, 100).max() for turn in turns) < steep
        assert drive(lambda x, v: 1.0, -0.7, 100)[-1] >= 0.45

    @pytest.mark.parametrize("first", [-1.0, 1.0])
    def test_pushing_with_the_speed_arrives_and_costs(self, first):
        paths = [drive(self.with_the_speed(first), start) for start in STARTS]
        assert all(path[-1] >= 0.45 for path in paths)
        costs = [int((path < WALL).sum()) for path in paths]
        lengths = [len(path) for path in paths]
        if first > 0:
            assert (min(costs), max(costs)) == (22, 26)
            assert (min(lengths), max(lengths)) == (105, 111)
        assert min(costs) >= 22

    def test_brakes_make_it_safe(self):
        paths = [drive(self.with_brakes, start) for start in STARTS[::4]]
        assert all(path[-1] >= 0.45 for path in paths)
        assert min(path.min() for path in paths) >= WALL
        assert all(115 <= len(path) <= 130 for path in paths)

    def test_the_same_in_the_world(self, steps):
        """All starts side by side, pushed with the speed: what the world charges and pays."""
        states = jnp.stack([jnp.array(STARTS, jnp.float32), jnp.zeros(len(STARTS))], axis=1)
        alive, returns = np.ones(len(STARTS)), np.zeros((len(STARTS), 3))
        while alive.any():
            answer = steps(states, jnp.where(states[:, 1:] < 0, -1.0, 1.0))
            returns += alive[:, None] * np.asarray(answer.signals, float)
            alive *= np.asarray(answer.discount)
            states = answer.state
        np.testing.assert_allclose(returns[:, 0], 100 - 0.1 * returns[:, 2], rtol=1e-5)
        assert (returns[:, 1].min(), returns[:, 1].max()) == (22, 26)


class TestComplaints:
    @pytest.mark.parametrize("wall", [-1.3, -0.5, 0.0, math.nan])
    def test_the_wall_has_its_place(self, wall):
        with pytest.raises(InputError, match=f"cost_boundary is {wall:g}.*end of the track, -1.2, .* position, -0.6"):
            lexrl.MountainCarSafe(cost_boundary=wall)

    def test_an_episode_needs_a_step(self):
        with pytest.raises(InputError, match="max_episode_steps is 0; it must be 1 or more"):
            lexrl.MountainCarSafe(max_episode_steps=0)
