"""gloo's all-reduce over float64 zeros: `gloo.py RANK RANKS STORE`, run by an interpreter that has torch.

For each line `BYTES ROUNDS` on its standard input, prints nanoseconds of ROUNDS, after as many that are not
counted, eight at most.
"""

import sys
import time

import torch
import torch.distributed


def main() -> None:
    rank, ranks, store = sys.argv[1:]
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=int(rank), world_size=int(ranks)
    )
    for line in sys.stdin:
        size, rounds = map(int, line.split())
        vector = torch.zeros(size // 8, dtype=torch.float64)
        for _ in range(min(rounds, 8)):
            torch.distributed.all_reduce(vector)
        begun = time.perf_counter_ns()
        for _ in range(rounds):
            torch.distributed.all_reduce(vector)
        print(time.perf_counter_ns() - begun, flush=True)
    torch.distributed.destroy_process_group()


main()
