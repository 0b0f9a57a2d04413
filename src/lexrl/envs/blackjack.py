"""Gymnasium's Blackjack as a finite MOMDP: cards are drawn with replacement, so only what a hand is worth counts.

The environment hides the dealer's second card, and does not tell a natural (an ace and a ten at once) from another 21.
The first is averaged out; the second is a state of its own.
"""

from fractions import Fraction
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from lexrl.envs.exploration import Model

CARDS = {card: Fraction(4 if card == 10 else 1, 13) for card in range(1, 11)}
STICK, HIT = 0, 1


class Hand(NamedTuple):
    """A hand by its total; an ace that counts 11 is usable."""

    total: int
    usable: bool = False
    natural: bool = False

    def draw(self, card: int) -> "Hand":
        """With one more card."""
        total, usable = self.total + card, self.usable
        if card == 1 and total + 10 <= 21:
            total, usable = total + 10, True
        elif total > 21 and usable:
            total, usable = total - 10, False
        return Hand(total, usable)


def blackjack(sab: bool, natural: bool) -> Model:
    """The model under the rules of Sutton and Barto (`sab`), or with a bonus for naturals, or neither."""
    first = _first_hands()
    hands = [*(Hand(total) for total in range(4, 22)), *(Hand(total, usable=True) for total in range(12, 22))]
    hands.append(Hand(21, usable=True, natural=True))
    states = [(hand, shown) for hand in hands for shown in CARDS]
    place = {state: k for k, state in enumerate(states)}
    end = len(states)
    entries: list[tuple[int, int, Fraction, Fraction]] = []
    for (hand, shown), k in place.items():
        entries.append((2 * k + STICK, end, Fraction(1), _worth(hand, shown, sab=sab, natural=natural)))
        bust = Fraction(0)
        for card, probability in CARDS.items():
            after = hand.draw(card)
            if after.total > 21:
                bust += probability
            else:
                entries.append((2 * k + HIT, place[after, shown], probability, Fraction(0)))
        if bust:
            entries.append((2 * k + HIT, end, bust, Fraction(-1)))
    initial = np.zeros(end + 1)
    for (hand, weight), (shown, likely) in ((a, b) for a in first.items() for b in CARDS.items()):
        initial[place[hand, shown]] += float(weight * likely)
    observations = tuple((hand.total, shown, int(hand.usable)) for hand, shown in states)
    return _model(entries, initial / initial.sum(), observations)


def _model(entries: Any, initial: np.ndarray, observations: Any) -> Model:
    n = len(initial)
    entries = sorted(_merged(entries))
    rows, columns = [one[0] for one in entries], [one[1] for one in entries]
    indptr = np.concatenate([[0], np.cumsum(np.bincount(rows, minlength=2 * n))])
    matrix = sp.csr_array((np.array([float(one[2]) for one in entries]), np.array(columns), indptr), shape=(2 * n, n))
    return Model(matrix, np.array([[float(one[3])] for one in entries]), initial, 2, observations)


def _merged(entries: Any) -> list[tuple[int, int, Fraction, Fraction]]:
    """Cards that lead to the same hand as one."""
    whole: dict[tuple[int, int], tuple[Fraction, Fraction]] = {}
    for row, column, probability, reward in entries:
        weight, paid = whole.get((row, column), (Fraction(0), Fraction(0)))
        whole[row, column] = weight + probability, paid + probability * reward
    return [(row, column, weight, paid / weight) for (row, column), (weight, paid) in whole.items()]


def _first_hands() -> dict[Hand, Fraction]:
    found: dict[Hand, Fraction] = {}
    for (one, p), (other, q) in ((a, b) for a in CARDS.items() for b in CARDS.items()):
        hand = Hand(0).draw(one).draw(other)
        hand = hand._replace(natural={one, other} == {1, 10})
        found[hand] = found.get(hand, Fraction(0)) + p * q
    return found


@cache
def _dealer(hand: Hand) -> dict[int, Fraction]:
    """How the dealer ends, who draws up to 16: totals with their probabilities, 0 for a bust."""
    if hand.total > 21:
        return {0: Fraction(1)}
    if hand.total >= 17:
        return {hand.total: Fraction(1)}
    found: dict[int, Fraction] = {}
    for card, probability in CARDS.items():
        for total, weight in _dealer(hand.draw(card)).items():
            found[total] = found.get(total, Fraction(0)) + probability * weight
    return found


def _worth(hand: Hand, shown: int, *, sab: bool, natural: bool) -> Fraction:
    """The expected reward of sticking."""
    worth = Fraction(0)
    for hidden, probability in CARDS.items():
        dealer_natural = {shown, hidden} == {1, 10}
        for total, weight in _dealer(Hand(0).draw(shown).draw(hidden)).items():
            reward = Fraction((hand.total > total) - (hand.total < total))
            if sab and hand.natural and not dealer_natural:
                reward = Fraction(1)
            elif natural and not sab and hand.natural and reward == 1:
                reward = Fraction(3, 2)
            worth += probability * weight * reward
    return worth
