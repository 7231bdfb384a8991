"""The mean of the weights of several models that began from the same ones, in 8 bits.

    python -m experiments.gmlm.soup OUT MODEL MODEL ...

Models that went on from one another, or from the same weights with other pairs, lie in one valley: their mean is often
better than each, and forgets less of what the first one knew (Wortsman et al. 2022). Notes are those of the first.
"""

import argparse
from pathlib import Path

import torch

from anyfill.checks import refuse
from anyfill.model import Model
from anyfill.training import load_model, save_model
from anyfill.training.checkpoint import load_notes


@torch.no_grad()
def mean_of(models: list[Model]) -> Model:
    """The first model, its weights replaced by the mean over all; ValueError if they are not alike."""
    states = [{name: value.clone() for name, value in one.state_dict().items()} for one in models]
    shapes = [{name: value.shape for name, value in state.items()} for state in states]
    if any(one != shapes[0] for one in shapes):
        raise refuse("models", expected="the same names and shapes of weights", got="different ones")
    for name, weight in models[0].named_parameters():
        weight.copy_(torch.stack([state[name] for state in states]).mean(0))
    return models[0]


def main(argv: list[str] | None = None) -> None:
    """Run it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("models", nargs="+", type=Path)
    options = parser.parse_args(argv)
    model = mean_of([load_model(folder) for folder in options.models])
    save_model(model, options.out, notes=load_notes(options.models[0]), eight_bit=True)


if __name__ == "__main__":
    main()
