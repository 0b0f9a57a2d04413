"""Made-up experiments: a file with a section of every kind."""

import json

import numpy as np
import PIL.Image

from lexrl.report import markup

NINE = ("LPPO", "LA2C", "LDQN", "PPO", "A2C", "DQN", "RCPO", "AproPO", "VaR_AC")
HOSTILE = "<script>alert('x')</script>\"&"


def experiment(labels=NINE, points=50, name="safety", title="Safety: CartSafe and GridNav", seed=0):
    """An experiment with a section of every kind."""
    rng = np.random.default_rng(seed)
    question = "Do the lexicographic algorithms reach the lowest cost, and how much reward do they keep?"
    sections = [
        claims(), text(), curves(rng, labels=labels, points=points), table(labels), ranking(rng, labels), scaling(rng),
        front(rng, labels), images(), plane(rng, labels),
    ]  # fmt: skip
    return {
        "format": 2, "experiment": name, "size": "laptop", "title": title, "question": question,
        "command": f"lexrl experiment {name} --size laptop", "begun": "2026-11-16T09:12:44", "seconds": 1234.5,
        "versions": {"lexrl": "0.1.0", "jax": "0.10.0"}, "machine": {"processor": "x86_64", "cores": 2},
        "commit": "abc1234", "runs": [run(label) for label in labels], "sections": sections,
    }  # fmt: skip


def write(folder, content, pictures=True):
    """An experiment's folder."""
    (folder / "figures").mkdir(parents=True, exist_ok=True)
    if pictures:
        for i, name in enumerate(("a.png", "b.png")):
            PIL.Image.new("RGB", (64, 48), (40 + 150 * i, 110, 180 - 90 * i)).save(folder / "figures" / name)
    (folder / "experiment.json").write_text(json.dumps(content))
    return folder


def run(label):
    name = markup.file_name(label)
    return {
        "folder": f"cart-safe/tuned/{name}", "label": label, "seeds": 10, "total_timesteps": 2_000_000, "seconds": 80.1,
        "command": f"lexrl train {name} cart-safe --seeds 10 --steps 2e6", "state": "finished", "why": "",
    }  # fmt: skip


def claims():
    given = (
        ("LPPO and LA2C reach a lower cost than every baseline.", "yes", "LPPO 2.0 [1.2, 3.0], PPO 5.0 [4.2, 6.0]"),
        ("LDQN learns more slowly than DQN.", "no", "412k [390k, 430k] steps against 405k [380k, 425k]"),
        ("VaR_AC does not satisfy its constraint.", "not decidable", "cost 10.0 [9.2, 11.0]"),
    )
    rows = [{"claim": claim, "seen": seen, "numbers": numbers} for claim, seen, numbers in given]
    return {"kind": "claims", "title": "What the paper says, and what is seen here", "rows": rows}


def text():
    words = "Cost comes first: an algorithm with less of it is better, whatever its reward.\n\nReward counts `after`."
    return {"kind": "text", "title": "How to read it", "text": words}


def curves(rng, name="cart-safe-tuned", labels=NINE, points=50):
    """Curves that fall to a level, with intervals that get narrower."""
    x = np.linspace(0, 2e6, points)
    panels = []
    for title, first, gap in (("1. min cost", 2, 4), ("2. max reward", 30, 20)):
        series = []
        for i, label in enumerate(labels):
            middle = first + gap * i + 40 * np.exp(-x / 4e5) + rng.normal(0, 0.8, points)
            wide = 2 + 6 * np.exp(-x / 6e5)
            values = {"x": x, "middle": middle, "low": middle - wide, "high": middle + wide}
            series.append({"label": label} | {key: each.tolist() for key, each in values.items()})
        panels.append({"title": title, "y": f"{title.split()[-1]} per episode", "log": False, "series": series})
    return {
        "kind": "curves", "name": name, "title": f"Learning: {name}", "x": "environment steps", "panels": panels,
        "caption": "Interquartile mean of 10 seeds, with its 95 % interval. Greedy episodes every 40k steps.",
    }  # fmt: skip


def table(labels=NINE):
    rows = [
        [label, {"value": 2.0 + i, "text": f"{2 + i:.2f} [{1.2 + i:.2f}, {3 + i:.2f}]"},
         {"value": 400 - 31.5 * i, "text": f"{400 - 31.5 * i:.1f} [{380 - 31.5 * i:.1f}, {420 - 31.5 * i:.1f}]"},
         10, None if i == 3 else 80.5 + 7 * i]
        for i, label in enumerate(labels)
    ]  # fmt: skip
    return {
        "kind": "table", "name": "final", "title": "Final values", "caption": "Mean of the seeds [95 % interval].",
        "heads": ["algorithm", "cost", "reward", "seeds", "seconds"], "rows": rows,
    }  # fmt: skip


def ranking(rng, labels=NINE):
    strength = np.sort(rng.normal(0, 1.4, len(labels)))[::-1]
    matrix = (1 / (1 + np.exp(1.6 * (strength[None, :] - strength[:, None])))).tolist()
    for i, row in enumerate(matrix):
        row[i] = None
    classes = [list(labels[:2]), list(labels[2:3]), list(labels[3:6]), list(labels[6:])]
    return {
        "kind": "ranking", "name": "ranking", "title": "Ranking on CartSafe", "labels": list(labels), "matrix": matrix,
        "caption": "Lexicographic comparison of the final values.", "classes": [each for each in classes if each],
    }  # fmt: skip


def scaling(rng):
    panels = [
        {"title": f"{states} states",
         "series": [power(rng, "Q-learning", 0.31), power(rng, "Expected Sarsa", 0.72), power(rng, "Sarsa", 1.1)]}
        for states in (256, 512)
    ]  # fmt: skip
    return {
        "kind": "scaling", "name": "scaling", "title": "Scaling with the number of objectives", "x": "objectives M",
        "y": "steps to convergence", "caption": "30 random MOMDPs each; lines are fitted power laws.", "panels": panels,
    }  # fmt: skip


def power(rng, label, exponent):
    x = [1, 2, 4, 8, 16]
    middle = [900 * m**exponent * float(np.exp(rng.normal(0, 0.08))) for m in x]
    return {
        "label": label, "x": x, "middle": middle, "low": [m * 0.8 for m in middle], "high": [m * 1.25 for m in middle],
        "exponent": {"value": exponent, "low": exponent - 0.1, "high": exponent + 0.1},
        "fit": {"x": [1, 16], "y": [900, 900 * 16**exponent]},
    }  # fmt: skip


def front(rng, labels=NINE):
    slack = np.linspace(0, 6, 14)
    points = []
    for i, label in enumerate(labels):
        x, y = 0.5 * i + rng.normal(0.6, 0.15, 10), 0.9 - np.exp(-0.5 * i) + rng.normal(0, 0.03, 10)
        points.append({"label": label, "x": x.tolist(), "y": y.tolist()})
    return {
        "kind": "front", "name": "front", "title": "Critical slack on GridNav", "x": "discounted cost",
        "y": "discounted reward", "caption": "Small: seeds; large: their median.",
        "curve": {"label": "exact critical slack", "x": slack.tolist(), "y": (1 - np.exp(-slack)).tolist()},
        "points": points,
    }  # fmt: skip


def plane(rng, labels=NINE):
    points = [
        {"label": label, "x": rng.normal(i, 0.2, 5).tolist(), "y": rng.normal(10 - i, 0.5, 5).tolist(),
         "seeds": [10, 11, 12, 13, 14]}
        for i, label in enumerate(labels)
    ]  # fmt: skip
    return {
        "kind": "plane", "name": "plane", "title": "Final returns", "x": "cost per episode", "y": "reward per episode",
        "caption": "Small: seeds; large: their mean with its 95 % intervals.", "points": points,
    }  # fmt: skip


def images():
    shown = [
        {"file": f"figures/{name}.png", "alt": f"the policy of {label} as arrows", "label": label}
        for name, label in (("a", "LPPO"), ("b", "LDQN"))
    ]
    return {"kind": "images", "title": "Learned policies", "caption": "One seed each.", "images": shown}
