"""Numbers on axes."""


def format_tick(value: float, digits: int = 4) -> str:
    """A number on an axis: 250k, 1M, 0.05."""
    size = abs(value)
    for factor, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if size >= factor * 0.9995:
            return f"{value / factor:.{digits}g}{letter}".replace("-", "−")
    text = f"{value:.0e}".replace("e-0", "e-").replace("e+0", "e") if 0 < size < 1e-4 else f"{value:.{digits}g}"
    return text.replace("-", "−")
