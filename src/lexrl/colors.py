"""The colors of all pictures: Okabe and Ito's, which are distinct for every kind of color vision."""

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW = (
    "#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442",
)  # fmt: skip
INK, FAINT, WHITE = "#222222", "#BBBBBB", "#FFFFFF"


def mix(color: str, share: float, ground: str = WHITE) -> str:
    """A color mixed with its ground: the smaller its `share`, the paler."""
    pairs = zip(bytes.fromhex(color[1:]), bytes.fromhex(ground[1:]), strict=True)
    return "#" + bytes(round(share * one + (1 - share) * other) for one, other in pairs).hex()
