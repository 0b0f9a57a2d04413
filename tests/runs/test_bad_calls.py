"""Calls from Python that cannot work: one sentence each, before anything is compiled or written."""

import numpy as np
import pytest
from jaxtyping import TypeCheckError

import lexrl
from lexrl.engine.values import Range
from lexrl.errors import InputError
from lexrl.schedules import Linear

SENTENCE = r"(?s).*\.\s*$|Type-check error"
"""Test sessions also check arguments against their annotations; users have no such check."""
ORDER = "min cost > max reward"
SHORT = {"seeds": 1, "total_timesteps": 64, "num_log_points": 1}


class Nothing:
    pass


@pytest.fixture(scope="module")
def random(tmp_path_factory):
    folder = tmp_path_factory.mktemp("random")
    (folder / "file").write_text("x")
    return lexrl.train("random", "cart-safe", **SHORT, eval_episodes=2, out=folder / "run"), folder


@pytest.fixture(scope="module")
def table():
    return lexrl.train("q-learning", "grid-nav", ORDER, env_kwargs={"size": 4}, **SHORT)


def swept(**given):
    settings = {"over": {"alpha": [0.1]}, "out": "sweep", "seeds": 2, "confirm": 2, "env_kwargs": {"size": 4}}
    return lambda: lexrl.sweep("q-learning", "grid-nav", ORDER, **(settings | given))


def lppo(**given):
    return lambda: lexrl.train("lppo", "cart-safe", **given)


def trained(algorithm, env="cart-safe"):
    return lambda: lexrl.train(algorithm(), env, ORDER, **SHORT)


@pytest.mark.parametrize(
    "call",
    [
        lambda: lexrl.train(3, "cart-safe", ORDER),
        lambda: lexrl.train(Nothing(), "cart-safe", ORDER),
        lambda: lexrl.train(lexrl.LPPO, "cart-safe", ORDER),
        lambda: lexrl.train("lppo", "cart-safe", 3),
        lambda: lexrl.train("lppo", "cart-safe", ["min cost"]),
        lambda: lexrl.train("lppo", "cart-safe", lexrl.Order(())),
        lppo(seeds=None), lppo(seeds=1.5), lppo(seeds="3"), lppo(seeds=["a"]), lppo(seeds=[None]),
        lppo(seeds=[float("nan")]), lppo(seeds=10**30), lppo(seeds=[]), lppo(seeds=[-1]),
        lppo(total_timesteps="many"), lppo(total_timesteps=[1]), lppo(total_timesteps=10**400),
        lppo(num_log_points="x"), lppo(num_log_points=None), lppo(num_log_points=1.5),
        lppo(eval_episodes="x"), lppo(eval_episodes=1.5),
        lppo(env_kwargs=3), lppo(env_kwargs={1: 1}), lppo(env_kwargs=[3], seeds=1), lppo(env_kwargs={"nothing": 1}),
        lppo(out=3, **SHORT), lppo(log=["nothing"]), lppo(log=3), lppo(callback=3), lppo(preset="best"),
        lambda: lexrl.resume(3),
        lambda: lexrl.load(None),
        lambda: lexrl.Policy.load(3),
        lambda: lexrl.make_env(3),
        lambda: lexrl.make_env("cart-safe", max_episode_steps="x"),
        lambda: lexrl.solve(3, ORDER),
        lambda: lexrl.solve("grid-nav", ORDER),
        lambda: lexrl.solve(lexrl.GridNav.generate(4).momdp(0.9), 3),
        lambda: lexrl.GridNav.generate("x"),
        lambda: lexrl.GridNav.generate(4, map_seed=-1),
        lambda: lexrl.GridNav.generate(4).momdp("x"),
        lambda: lexrl.random_env(num_states="x"),
        lambda: lexrl.random_env(num_states=-1),
        lambda: lexrl.random_env(tie_fraction=2),
        lambda: lexrl.per_seed(3),
        lambda: lexrl.per_seed([3]),
        lambda: lexrl.per_seed([]),
        lambda: lexrl.GymEnv(3),
        lambda: lexrl.LPPO(num_envs="8"),
        lambda: lexrl.LPPO(num_envs=None),
        lambda: lexrl.LPPO(num_envs=1.5),
        lambda: lexrl.Networks(hidden_sizes=3),
        lambda: lexrl.Networks(hidden_sizes=("x",)),
        lambda: lexrl.Networks(hidden_sizes=(1.5,)),
        lambda: lexrl.LDQN(buffer_size="x"),
        lambda: lexrl.LDQN(hidden_sizes=3),
        lambda: lexrl.CartSafe(max_episode_steps="x"),
        lambda: lexrl.QLearning(exploration=3),
        lambda: lexrl.configure(num_devices="x"),
        lambda: lexrl.configure(num_devices=-1),
        trained(lambda: lexrl.LPPO(learning_rate=None)),
        trained(lambda: lexrl.LPPO(gamma="x")),
        trained(lambda: lexrl.LPPO(gamma=None)),
        trained(lambda: lexrl.LPPO(networks=3)),
        trained(lambda: lexrl.LPPO(clip_range="x")),
        trained(lambda: lexrl.LDQN(tolerance=object())),
        trained(lambda: lexrl.QLearning(alpha=None), "grid-nav"),
        trained(lambda: lexrl.QLearning(tolerance=None), "grid-nav"),
        lambda: lexrl.Engine(None), lambda: lexrl.Engine(3), lambda: lexrl.Engine("processes", workers="2"),
        lambda: lexrl.Engine("processes", workers=True), lambda: lexrl.Engine("processes", workers=1.5),
        lambda: lexrl.Engine("ray", address=3), lambda: lexrl.Engine("ray", address=" "),
        lambda: lexrl.Engine("here", address="auto"),
        lambda: lexrl.resume("nowhere", steps=3), lambda: lexrl.resume(b"x"), lambda: lexrl.load("a\0b"),
        lambda: lexrl.Policy.load("nowhere"), lambda: lexrl.Policy.load("."),
        lppo(total_timesteps=True), lppo(total_timesteps=1j), lppo(total_timesteps=np.array([3])), lppo(seeds={1: 2}),
        lppo(seeds=np.array([[1, 2]])), lppo(seeds=np.array([1.5])), lppo(seeds=[2**40]), lppo(verify_episodes=-1),
        lppo(verify_episodes="x"), lppo(log={"a": 1}), lppo(log=[["tensorboard"]]),
        lambda: lexrl.train([], "cart-safe", ORDER), lambda: lexrl.train(["lppo"], "cart-safe", ORDER, seeds=1),
        lambda: lexrl.train([lexrl.LPPO(), lexrl.LDQN()], "cart-safe", ORDER, seeds=2),
        lambda: lexrl.train("random", lambda: 3, ORDER), lambda: lexrl.train("random", Nothing, ORDER),
        lambda: lexrl.configure(num_devices=10**9), lambda: lexrl.LDQN(buffer_size=1e12),
        lambda: lexrl.LDQN(num_members=10**9), lambda: lexrl.PPO(num_epochs=10**9), lppo(order="min cost ±1e999"),
        swept(over=None), swept(over="alpha=1"), swept(over=["alpha"]), swept(over={"alpha": 0.1}),
        swept(over={"alpha": []}), swept(over={"alpha": {0.1}}), swept(over={"alpha": Range(1, 0)}, search="random"),
        swept(over={"alpha": Range("a", "b")}, search="random"), swept(out=3), swept(out=None), swept(search=3),
        swept(search="random", trials="x"), swept(rounds=1.5), swept(seeds=[1, 2]), swept(seeds=1),
        swept(confirm="x"), swept(engine="processes"), swept(nothing=3), swept(total_timesteps="x"),
        swept(over={3: [0.1]}), swept(over={"": [0.1]}), swept(over={"nothing": [0.1]}), swept(over={"alpha": {1: 2}}),
        swept(over={"min_alpha": [0.1], "min-alpha": [0.2]}), swept(over={"alpha": np.array(0.1)}),
        swept(over={"alpha": np.array([])}), swept(over={"alpha": Range(float("nan"), 1.0)}, search="random"),
        swept(over={"num_envs": [8]}), swept(env_kwargs=3), swept(out=b"x"), swept(out="a\0b"), swept(confirm=None),
        lambda: lexrl.sweep([lexrl.QLearning()], "grid-nav", ORDER, over={"alpha": [0.1]}, out="sweep"),
        lppo(seeds=np.array(3)), lppo(seeds=[1, [2]]), lppo(seeds=[float("inf")]), lppo(seeds=np.array(["a"])),
        lppo(order=lexrl.Order(3)), lppo(order=lexrl.Order((3,))), lppo(order=b"min cost"), lppo(preset=3),
        lppo(total_timesteps=np.float32("inf")), lppo(log="tensorbord"),
        lppo(env_kwargs={"max_episode_steps": True}), lppo(env_kwargs=[{}, 3], seeds=2),
        lambda: lexrl.GridNav.generate(4, slip_probability="x"), lambda: lexrl.GridNav.generate(4, goal_reward=None),
        lambda: lexrl.GridNav.generate(4, step_reward=float("nan")), lambda: lexrl.GridNav.generate(4).momdp([0.9]),
        lambda: lexrl.GymVectorEnv(3), lambda: lexrl.GymVectorEnv("CartPole-v1"),
        lambda: lexrl.GymEnv("CartPole-v1", signals=3), lambda: lexrl.GymEnv("CartPole-v1", max_episode_steps=-1),
        lambda: lexrl.Engine("processes", workers=10**30), lambda: lexrl.Engine(["here"]),
        lambda: lexrl.resume(["x"]), lambda: lexrl.load(3.5), lambda: lexrl.load(""),
        lambda: lexrl.RCPO(constraints=3), lambda: lexrl.VaRAC(chance_constraints="x"),
        trained(lambda: lexrl.LPPO(learning_rate=Linear(0.1, "x"))), trained(lambda: lexrl.LPPO(learning_rate=1j)),
        trained(lambda: lexrl.QLearning(alpha=Linear(0.1, lexrl.LPPO())), "grid-nav"),
        trained(lambda: lexrl.QLearning(guard="x"), "grid-nav"),
        trained(lambda: lexrl.QLearning(guard=Nothing()), "grid-nav"),
        trained(lambda: lexrl.QLearning(exploration=lexrl.EpsilonGreedy(None)), "grid-nav"),
    ],
)  # fmt: skip
def test_a_sentence(call, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises((InputError, TypeCheckError), match=SENTENCE):
        call()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "call",
    [
        lambda result, folder: result.evaluate("x"),
        lambda result, folder: result.evaluate(1.5),
        lambda result, folder: result.evaluate(2, gamma="x"),
        lambda result, folder: result.evaluate(2, gamma=(0.9, 0.9, 0.9)),
        lambda result, folder: result.evaluate(2, gamma=float("nan")),
        lambda result, folder: result.gaps(3),
        lambda result, folder: result.agent(7),
        lambda result, folder: result.policies[0].save(folder / "file" / "x"),
        lambda result, folder: lexrl.load(folder / "run", env="grid-nav"),
        lambda result, folder: lexrl.resume(folder / "run", algorithm=3),
        lambda result, folder: lexrl.resume(folder / "run", steps="x"),
        lambda result, folder: lexrl.resume(folder / "run", steps=float("nan")),
        lambda result, folder: lexrl.resume(folder / "run", steps=True),
        lambda result, folder: lexrl.resume(folder / "run", steps=10**30),
        lambda result, folder: result.evaluate(0),
        lambda result, folder: result.evaluate(10**30),
        lambda result, folder: result.policies[0].predict("x"),
        lambda result, folder: result.policies[0].predict(np.zeros(17)),
        lambda result, folder: result.policies[0].predict({"a": 1}),
        lambda result, folder: result.policies[0].prefix("x"),
        lambda result, folder: result.policies[0].save(None),
        lambda result, folder: result.plot().save(None),
        lambda result, folder: result.agent("x"),
        lambda result, folder: result.evaluate(True),
        lambda result, folder: lexrl.load(folder / "run", algorithm=lexrl.LPPO()),
        lambda result, folder: lexrl.resume(folder / "run", steps=np.array([1, 2])),
        lambda result, folder: result.plot().save(folder / "x.txt"),
        lambda result, folder: lexrl.Policy.load(folder / "run" / "run.json"),
    ],
)
def test_a_sentence_about_a_result(call, random):
    with pytest.raises((InputError, TypeCheckError), match=SENTENCE):
        call(*random)


@pytest.mark.parametrize("observation", [99, -1, 1.5, [0, 16], np.array([0.5])])
def test_an_observation_that_does_not_exist(observation, table):
    with pytest.raises(InputError, match="it must be a whole number from 0 to 15"):
        table.policies[0].predict(observation)


@pytest.mark.parametrize("observation", [10**30, None, "x", [1, [2]]])
def test_what_is_no_observation(observation, table):
    with pytest.raises(InputError, match="is not an observation"):
        table.policies[0].predict(observation)


def test_a_seed_twice_has_no_folder(tmp_path):
    with pytest.raises(InputError, match="name one twice"):
        lexrl.train("random", "cart-safe", seeds=[1, 1], total_timesteps=64, out=tmp_path / "run")
