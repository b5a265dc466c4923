"""Attention by hand: plain Python numbers, loops and math.exp, to compare with heed.nn."""

import math
from collections.abc import Sequence

Matrix = list[list[float]]

# Three words of width 4, one head of width 3: integers, so that everything before the softmax can be done in the head.
WORDS = ("I", "go", "home")
X = [[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]
W_Q = [[1.0, 0.0, 2.0], [0.0, 2.0, 0.0], [1.0, 1.0, 0.0], [0.0, 0.0, 1.0]]
W_K = [[0.0, 2.0, 1.0], [1.0, 0.0, 1.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
W_V = [[1.0, 0.0, 2.0], [0.0, 2.0, 1.0], [1.0, 1.0, 0.0], [2.0, 0.0, 0.0]]
W_O = [[1.0, 0.0, 0.0, 1.0], [0.0, 1.0, 0.0, -1.0], [0.0, 0.0, 1.0, 0.0]]


def dot(u: Sequence[float], v: Sequence[float]) -> float:
    """x1 x2 + y1 y2 + …"""
    return sum(x * y for x, y in zip(u, v, strict=True))


def length(u: Sequence[float]) -> float:
    """|u|"""
    return math.sqrt(dot(u, u))


def distance(u: Sequence[float], v: Sequence[float]) -> float:
    """|u − v|, Euclid's."""
    return length([x - y for x, y in zip(u, v, strict=True)])


def transpose(a: Matrix) -> Matrix:
    return [list(column) for column in zip(*a, strict=True)]


def product(a: Matrix, b: Matrix) -> Matrix:
    """A b: the dot product of each row of a with each column of b."""
    return [[dot(row, column) for column in transpose(b)] for row in a]


def scores(q: Matrix, k: Matrix) -> Matrix:
    """Q kᵀ: rows are words in both, so the second is transposed, and each row of one meets each row of the other."""
    return product(q, transpose(k))


def softmax(row: Sequence[float]) -> list[float]:
    """exp, divided by the sum; the maximum is subtracted first, which only limits the range of exp."""
    powers = [math.exp(value - max(row)) for value in row]
    return [power / sum(powers) for power in powers]


def attend(q: Matrix, k: Matrix, v: Matrix) -> tuple[Matrix, Matrix, Matrix]:
    """Equations (1) and (2): the scores divided by √d, the weights, and the values averaged by them."""
    scaled = [[score / math.sqrt(len(q[0])) for score in row] for row in scores(q, k)]
    weights = [softmax(row) for row in scaled]
    return scaled, weights, product(weights, v)


def heads(x: Matrix, projections: Sequence[tuple[Matrix, Matrix, Matrix]], w_o: Matrix) -> tuple[list[Matrix], Matrix]:
    """Equation (6): each head by itself, side by side in one row for each word, times W_O; and the weights of each head."""
    done = [attend(product(x, w_q), product(x, w_k), product(x, w_v)) for w_q, w_k, w_v in projections]
    rows = [[value for _, _, own in done for value in own[word]] for word in range(len(x))]
    return [weights for _, weights, _ in done], product(rows, w_o)


def mask_after(weights: Matrix) -> tuple[Matrix, Matrix]:
    """The masking of the lecture notes: weights of later words become 0, then each row is divided by its sum."""
    zeroed = [[value if j <= i else 0.0 for j, value in enumerate(row)] for i, row in enumerate(weights)]
    return zeroed, [[value / sum(row) for value in row] for row in zeroed]
