"""Fits a line to a table with momentum, in mini-batches that a seeded generator draws.

An example of a program that `orch` qualifies: it publishes a checkpoint as a whole or not at all, goes on
from one as if it had never stopped, and refuses one that is damaged. Needs NumPy and safetensors.

    python3 fit.py --data diabetes.csv --updates 60 --out state [--in OTHER] [--progress FILE]
"""

import argparse
import hashlib
import os
import sys

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

SEED, STEP = 20261129, 0xDA3E39CB94B95BDB  # where the generator begins, and its increment (odd)
BATCH, KEEP = 32, 0.9
HELD = {"w", "v", "order", "position", "generator", "update", "rate"}
REFUSED = 3


def refuse(what):
    """Say why not, and end."""
    print(f"refused: {what}", file=sys.stderr)
    sys.exit(REFUSED)


def read_rows(path, declared):
    """Read the table, if it is the one that was declared."""
    with open(path, "rb") as file:
        data = file.read()
    if declared and hashlib.sha256(data).hexdigest() != declared:
        refuse("the data are not those that were declared")
    return np.loadtxt(data.decode().splitlines()[1:], delimiter=",")


def fresh(rows, rate):
    """Begin: no weight, no momentum, no row seen."""
    generator = np.random.PCG64()
    generator.state = generator_state(SEED, STEP)
    width = rows.shape[1] - 1
    state = {
        "w": np.zeros(width),
        "v": np.zeros(width),
        "order": shuffled(generator, len(rows)),
        "position": np.zeros(1, np.int64),
        "update": np.zeros(1, np.int64),
        "rate": np.array([rate]),
    }
    return state, generator


def generator_state(state, step):
    """Give the form in which NumPy takes a generator's state."""
    words = {"state": state, "inc": step}
    return {"bit_generator": "PCG64", "state": words, "has_uint32": 0, "uinteger": 0}


def shuffled(generator, count):
    """Give an order of rows: Fisher and Yates, by the generator's own 64-bit words."""
    order = np.arange(count)
    for last in range(count - 1, 0, -1):
        other = int(generator.random_raw()) % (last + 1)
        order[last], order[other] = order[other], order[last]
    return order


def update(rows, state, generator):
    """Make one update in place; give the loss that it read."""
    start = int(state["position"][0])
    batch = rows[state["order"][start : start + BATCH]]
    x, y = batch[:, :-1], batch[:, -1]
    error = x @ state["w"] - y
    state["v"] = KEEP * state["v"] + x.T @ error / len(batch)
    state["w"] = state["w"] - state["rate"] * state["v"]
    state["position"] += len(batch)
    state["update"] += 1
    if state["position"][0] == len(rows):
        state["order"] = shuffled(generator, len(rows))
        state["position"][0] = 0
    return 0.5 * float(np.mean(error**2))


def digest(state):
    """Give one digest of all that a checkpoint holds."""
    found = hashlib.sha256()
    for name in sorted(state):
        found.update(f"{name} {state[name].dtype} {state[name].shape}\n".encode())
        found.update(state[name].tobytes())
    return found.hexdigest()


def publish(path, state, generator):
    """Write a checkpoint under another name, and give it its own when it is whole."""
    now = generator.state["state"]
    words = [word for value in (now["state"], now["inc"]) for word in (value >> 64, value & (2**64 - 1))]
    held = {**state, "generator": np.array(words, np.uint64)}
    data = save(held, metadata={"sha256": digest(held)})
    with open(f"{path}.part", "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    os.replace(f"{path}.part", path)


def restore(path, rate):
    """Read a checkpoint that was published, to the last bit, or refuse it."""
    if not os.path.exists(path):
        refuse(f"checkpoint {path} is not there")
    try:
        with safe_open(path, framework="np") as file:
            state = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118  # it is no mapping
            declared = (file.metadata() or {}).get("sha256")
    except SafetensorError as error:
        refuse(f"checkpoint {path} is damaged: {error}")
    if set(state) != HELD or digest(state) != declared:
        refuse(f"checkpoint {path} is damaged: it is not what was published")
    if state["rate"][0] != rate:
        refuse(f"checkpoint {path} is of another fit, with rate {state['rate'][0]}")
    high, low, step_high, step_low = (int(word) for word in state.pop("generator"))
    generator = np.random.PCG64()
    generator.state = generator_state(high << 64 | low, step_high << 64 | step_low)
    return state, generator


def main():
    """Make the updates that are missing, and publish."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", required=True)
    parser.add_argument("--sha256", default="")
    parser.add_argument("--rate", type=float, default=0.05)
    parser.add_argument("--updates", type=int, required=True)
    parser.add_argument("--in", dest="resume", default="")
    parser.add_argument("--out", required=True)
    parser.add_argument("--progress", default=os.devnull)
    args = parser.parse_args()
    rows = read_rows(args.data, args.sha256)
    state, generator = restore(args.resume, args.rate) if args.resume else fresh(rows, args.rate)
    with open(args.progress, "a", buffering=1) as progress:
        while state["update"][0] < args.updates:
            loss = update(rows, state, generator)
            progress.write(f"{state['update'][0]} {loss!r}\n")
    publish(args.out, state, generator)


if __name__ == "__main__":
    main()
