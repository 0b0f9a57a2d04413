"""What the schedules of an algorithm count, and how many such counts a run has.

A field with a schedule in it declares what the schedule counts:

    learning_rate: Schedule = eqx.field(converter=as_schedule, default=Constant(1e-3), metadata=counts("updates"))

so that a schedule over a fraction of the run, as in `"1e-3 to 1e-5"`, can be turned into one with a length. A field may
also be such a length itself, `budget: float | OfRun = eqx.field(default=OfRun(), metadata=counts("updates"))`: so an
algorithm gets to know how long it will be trained, as data.
"""

import dataclasses
from functools import partial
from typing import Any, Literal, Protocol, TypeVar, runtime_checkable

import equinox as eqx
import jax

from lexrl.errors import InputError
from lexrl.schedules import Linear, OfRun, Schedule, shown

Unit = Literal["updates", "gradient steps", "environment steps", "visits", "direction updates"]
"""What the schedule of a setting counts. Only the number of the first three in a run is known beforehand."""


def counts(unit: Unit) -> dict[str, Unit]:
    """Metadata of a field with schedules in it (or tolerances times schedules): what they count."""
    return {"counts": unit}


@runtime_checkable
class TakesGradientSteps(Protocol):
    """An algorithm with schedules in gradient steps."""

    def num_gradient_steps(self, num_updates: int) -> int:
        """Gradient steps taken in so many updates."""
        ...


Settings = TypeVar("Settings")


def resolve(algorithm: Settings, total_timesteps: int) -> Settings:
    """The algorithm with every fraction of the run replaced by a number of counts, as floats: nothing recompiles.

    An algorithm without fractions is returned as it is.
    """
    if not _fractions(algorithm):
        return algorithm
    settings: Any = algorithm
    per_update = settings.num_envs * settings.num_steps
    num_updates = -(-total_timesteps // per_update)
    return _resolve(algorithm, {"updates": num_updates, "environment steps": num_updates * per_update}, "")


def _resolve(settings: Any, lengths: dict[str, int], prefix: str) -> Any:
    lengths = lengths | _gradient_steps(settings, lengths["updates"])
    changed = {}
    for field in dataclasses.fields(settings):
        value, name = getattr(settings, field.name), f"{prefix}{field.name}"
        fractions = _fractions(value)
        if not fractions:
            continue
        unit = field.metadata.get("counts")
        if unit in lengths:
            absolute = partial(_absolute, length=lengths[unit])
            changed[field.name] = jax.tree.map(absolute, value, is_leaf=_is_fraction)
        elif unit is None and isinstance(value, eqx.Module) and not isinstance(value, Schedule):
            changed[field.name] = _resolve(value, lengths, f"{name}.")
        else:
            counted = f"it counts {unit}, whose number is not known beforehand" if unit else "it does not say in what"
            raise InputError(
                f"{name} is '{fractions[0]}', a fraction of the run, but {counted}; write {_example(fractions[0])}."
            )
    return dataclasses.replace(settings, **changed)


def _gradient_steps(settings: Any, num_updates: int) -> dict[str, int]:
    if not isinstance(settings, TakesGradientSteps):
        return {}
    return {"gradient steps": settings.num_gradient_steps(num_updates)}


def _is_fraction(part: Any) -> bool:
    return isinstance(part, OfRun) or (isinstance(part, Linear) and isinstance(part.steps, OfRun))


def _fractions(settings: Any) -> list[Linear | OfRun]:
    return [part for part in jax.tree.leaves(settings, is_leaf=_is_fraction) if _is_fraction(part)]


def _absolute(part: Any, length: int) -> Any:
    if not _is_fraction(part):
        return part
    if isinstance(part, OfRun):
        return max(1.0, float(part.fraction * length))
    return Linear(part.start, part.end, _absolute(part.steps, length))


def _example(part: Linear | OfRun) -> str:
    """The same with a length, for the user to imitate."""
    if isinstance(part, OfRun):
        return "its length, as in '1e5'"
    return f"its length, as in '{shown(part.start)} to {shown(part.end)} in 1e5'"
