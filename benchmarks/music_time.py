"""Is harmonising as quick as in another tree? Each with the model that it ships, by turns, in one run.

    python -m benchmarks.music_time OTHER/src [--turns 5]

    harmonise   a tune of eight bars of quarters, in four ways, as the command draws by default

CPU seconds of its own process, one thread, after a first call that is not timed. Printed: the median of each tree and
their ratio: above 1 this tree is the faster one. Writes results/music_time.json.
"""

import argparse
from pathlib import Path

from benchmarks.before_after import compared
from benchmarks.common import write_result

WORK = """
import json, time
from fractions import Fraction
import torch
torch.set_num_threads(1)
from anyfill import music
pitches = [71, 71, 72, 74, 74, 72, 71, 69, 67, 67, 69, 71, 71, 69, 69, 69,
           71, 71, 72, 74, 74, 72, 71, 69, 67, 67, 69, 71, 69, 67, 67, 67]
tune = music.Score((tuple(music.Note(Fraction(at), Fraction(1), pitch) for at, pitch in enumerate(pitches)),))
model = music.load()
model.harmonise(tune, n=1, seed=0)
start = time.process_time()
for seed in (1, 2):
    model.harmonise(tune, n=4, seed=seed)
print(json.dumps({"harmonise": (time.process_time() - start) / 2}))
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="src of the other tree")
    parser.add_argument("--turns", type=int, default=5)
    arguments = parser.parse_args()
    found = compared(arguments.other, WORK, turns=arguments.turns)
    print(f"wrote {write_result('music_time', {'turns': arguments.turns, 'work': found})}")


if __name__ == "__main__":
    main()
