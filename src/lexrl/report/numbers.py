"""Numbers on axes."""

import math


def format_tick(value: float, digits: int = 4) -> str:
    """A number on an axis: 250k, 1M, 0.05."""
    size = abs(value)
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= factor * 0.9995:
            return f"{value / factor:.{digits}g}{letter}".replace("-", "−")
    text = f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if 0 < size < 1e-4 else f"{value:.{digits}g}"
    return text.replace("-", "−")


def log_ticks(low: float, high: float) -> tuple[float, ...]:
    """Round numbers between two positive ones for a logarithmic axis: three to seven where possible."""
    decades = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 1)
    ticks: list[float] = []
    for steps in ((1,), (1, 3), (1, 2, 5), (1, 1.5, 2, 3, 5, 7)):
        ticks = [each * 10.0**power for power in decades for each in steps if low <= each * 10.0**power <= high]
        if len(ticks) >= 3:
            break
    return tuple(ticks[:: math.ceil(len(ticks) / 7) or 1])
