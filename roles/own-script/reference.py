"""The same fit as `fit.py`, written again in plain Python: what its results are held against.

Shares nothing with it, NumPy least of all: rows, generator, updates and the file are made here. Sums go from
left to right, which is not NumPy's order, so the last bits may differ.

    python3 reference.py DATA UPDATES OUT
"""

import json
import struct
import sys

MASK = 2**128 - 1
MULTIPLIER = 2549297995355413924 << 64 | 4865540595714422341


class Generator:
    """PCG64: a congruential generator of 128 bits, of which each word is 64, rotated."""

    def __init__(self, state, step):
        self.state, self.step = state, step

    def word(self):
        """Give the next 64-bit word."""
        self.state = (self.state * MULTIPLIER + self.step) & MASK
        mixed = (self.state >> 64) ^ (self.state & (2**64 - 1))
        turn = self.state >> 122
        return (mixed >> turn | mixed << (64 - turn)) & (2**64 - 1)

    def order(self, count):
        """Give the numbers below `count` in a random order."""
        order = list(range(count))
        for last in range(count - 1, 0, -1):
            other = self.word() % (last + 1)
            order[last], order[other] = order[other], order[last]
        return order


def fit(rows, updates):
    """Give weights and momentum after so many updates."""
    generator = Generator(20261129, 0xDA3E39CB94B95BDB)
    width = len(rows[0]) - 1
    weights, momentum, waiting = [0.0] * width, [0.0] * width, []
    for _ in range(updates):
        waiting = waiting or generator.order(len(rows))
        batch, waiting = [rows[number] for number in waiting[:32]], waiting[32:]
        errors = [sum(a * b for a, b in zip(weights, row, strict=False)) - row[width] for row in batch]
        for i in range(width):
            gradient = sum(row[i] * error for row, error in zip(batch, errors, strict=True)) / len(batch)
            momentum[i] = 0.9 * momentum[i] + gradient
        weights = [weight - 0.05 * change for weight, change in zip(weights, momentum, strict=True)]
    return weights, momentum


def write(path, tensors):
    """Write vectors of binary64 words as safetensors."""
    header, body = {}, b""
    for name, words in tensors.items():
        span = [len(body), len(body) + 8 * len(words)]
        header[name] = {"dtype": "F64", "shape": [len(words)], "data_offsets": span}
        body += struct.pack(f"<{len(words)}d", *words)
    text = json.dumps(header).encode()
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + body)


def main():
    """Fit and write."""
    data, updates, out = sys.argv[1:]
    with open(data, encoding="utf-8") as file:
        rows = [[float(cell) for cell in line.split(",")] for line in file.readlines()[1:]]
    weights, momentum = fit(rows, int(updates))
    write(out, {"w": weights, "v": momentum})


if __name__ == "__main__":
    main()
