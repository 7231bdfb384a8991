"""What a model's law gains by being averaged over keys: how much of its nats is learnt by heart, not music.

A law of music does not depend on the key. A model trained in all twelve is asked about a piece in K keys, and of every
cell the probabilities are averaged (told the metre, the end and the key, as in ``bach_onsets``; one pass for each key):

    p_K(x_j | before) = 1/K sum_k p(x_j + s_k | before, all moved by s_k)

Where the nats of p_K are far below those of p, the keys disagree by chance, as networks of other seeds would: an
estimate of what an ensemble has to give, and of what one network can be taught by it (``bach_distil``). The pieces are
those of JSB valid in music21's corpus, as many as fit the range of codes in all the keys.

    python -m experiments.sunmask.bach_keys          # results/sunmask/bach_keys.json, of the model that ships
"""

import argparse
import json
import time
from pathlib import Path

import torch

from anyfill.music.crops import TOLD, FormCrops
from anyfill.music.model import load_network
from anyfill.music.windows import LONG_WINDOW
from anyfill.rank import NEVER
from benchmarks.common import write_result
from experiments.sunmask.bach_corpus import corpus_parts, pieces_in
from experiments.where import data_folder

KEYS = (0, -3, 2, -5)


@torch.no_grad()
def main() -> None:
    """Ask in every key, average, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=data_folder() / "jsb_chorales")
    parser.add_argument("--corpus", type=Path, help="the folder that bach_corpus made; else music21's own is read")
    parser.add_argument("--model", type=Path, help="another model with onsets")
    parser.add_argument("--pieces", type=int, help="the first few only")
    options = parser.parse_args()
    torch.set_num_threads(1)
    begun = time.process_time()
    model = load_network(options.model).eval()
    found = (
        pieces_in(options.corpus / "valid") if options.corpus
        else corpus_parts(options.data / "jsb16_train_valid.json")["valid"]
    )  # fmt: skip
    each: list[list[torch.Tensor]] = [[] for _ in KEYS]
    used = 0
    for piece in [*found.values()][: options.pieces]:
        try:
            rows = [FormCrops([piece], LONG_WINDOW, transpositions=(key,), told=TOLD[1:2], every_bar=False).rows()
                    for key in KEYS]  # fmt: skip
        except ValueError:
            continue  # it leaves the range in one of them
        used += 1
        for terms, row in zip(each, rows):
            rank = torch.where(row.present, torch.arange(row.x.shape[1]), NEVER)
            terms.append(model.chain(row.x, rank, row.context, strict=True).log_prob(row.x)[row.present])
    terms = torch.stack([torch.cat(one) for one in each]).double()
    nats = {f"{count} keys": -float((terms[:count].exp().mean(0)).log().mean()) for count in range(1, len(KEYS) + 1)}
    payload = {"keys": KEYS, "pieces": used, "cells": terms.shape[1], "each": (-terms.mean(1)).tolist(), "mean": nats,
               "cpu_seconds": time.process_time() - begun}  # fmt: skip
    print(f"wrote {write_result('sunmask/bach_keys', payload)}")
    print(json.dumps(payload, indent=1))


if __name__ == "__main__":
    main()
