"""Cancel ends work in every phase: between two looks of a job, where it would end, little is done."""

import numpy as np
import pandas as pd
import pytest

from anyfill.interface.progress import check_cancelled, metered, reported_to
from anyfill.studio.jobs import CancelledError, Job
from anyfill.studio.table_store import OpenTable
from anyfill.studio.table_work import fill
from anyfill.tables import boosting, gaussian_em, gaussian_mixture


class Watched:
    """A job that is cancelled when it has looked so many times; counts how much is done after that."""

    def __init__(self, cancel_at):
        self.job, self.looks, self.cancel_at, self.after = Job(lambda job: {}), 0, cancel_at, []

    def look(self):
        self.looks += 1
        if self.looks == self.cancel_at:
            self.job.cancel()
        self.job.check()

    def tell(self, what, share, words):
        self.look()

    def work(self, name, do):
        """``do``, written down if it is begun after the cancel."""

        def done(*arguments, **options):
            if self.job.state == "cancelled":
                self.after.append(name)
            return do(*arguments, **options)

        return done


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    draw = np.random.default_rng(0)
    z = draw.normal(size=(120, 2))
    frame = pd.DataFrame(
        {
            "a": z[:, 0].round(3),
            "b": (z[:, 0] + 0.3 * draw.normal(size=120)).round(3),
            "c": (z @ [1.0, -1.0]).round(3),
            "d": np.where(z[:, 1] > 0, "up", "down"),
        }
    )
    path = tmp_path_factory.mktemp("cancel") / "some.csv"
    frame.mask(draw.random(frame.shape) < 0.1).to_csv(path, index=False)
    return OpenTable(path, "some.csv")


def looks_of(table, recipe):
    """How often a job looks in all of a fill."""
    watched = Watched(cancel_at=0)
    with reported_to(watched.tell, check=watched.look):
        fill(watched.job, table, {"recipe": recipe, "seed": 0}, 0.9)
    table.model = table.filled = None
    return watched.looks


@pytest.mark.parametrize("recipe", ["gaussian", pytest.param("auto", marks=pytest.mark.slow)])
def test_a_fill_that_is_cancelled_anywhere_does_not_begin_another_step_of_em_or_tree(table, recipe, monkeypatch):
    looks = looks_of(table, recipe)
    assert looks > (20 if recipe == "gaussian" else 2000)
    for share in np.random.default_rng(1).random(4):
        watched = Watched(cancel_at=1 + int(share * (looks - 1)))
        with monkeypatch.context() as patched:
            patched.setattr(gaussian_mixture, "answered", watched.work("EM", gaussian_mixture.answered))
            patched.setattr(gaussian_em.Moments, "answer", watched.work("EM", gaussian_em.Moments.answer))
            patched.setattr(boosting.lightgbm, "train", watched.work("trees", boosting.lightgbm.train))
            with reported_to(watched.tell, check=watched.look), pytest.raises(CancelledError):
                fill(watched.job, table, {"recipe": recipe, "seed": 0}, 0.9)
        assert watched.looks == watched.cancel_at
        assert watched.after == []
        assert table.filled is None


def test_trees_look_after_every_round():
    draw = np.random.default_rng(0)
    inputs = draw.normal(size=(200, 3))
    sample = boosting.Sample(inputs, inputs[:, 0] + inputs[:, 1])
    growth = boosting.growth_for(200, 30, seed=0)
    looks = []
    with reported_to(lambda *_: None, check=lambda: looks.append(1)):
        grown = boosting.grow(sample, sample, growth)
    assert len(looks) >= boosting.trees_of(grown.text) > 10


def test_em_looks_in_every_step_and_changes_nothing_by_it():
    import torch

    generator = torch.Generator().manual_seed(0)
    x = torch.randn(400, 5, generator=generator).double()
    known = torch.rand(400, 5, generator=generator) > 0.2
    looks = []
    with reported_to(lambda *_: None, check=lambda: looks.append(1)):
        watched = gaussian_mixture.fit_joint(x, known, 2, steps=7, generator=torch.Generator().manual_seed(1))
    alone = gaussian_mixture.fit_joint(x, known, 2, steps=7, generator=torch.Generator().manual_seed(1))
    assert len(looks) >= 2 * 7
    assert all(torch.equal(one, other) for one, other in zip(watched, alone))


@pytest.mark.parametrize(("room", "path"), [("text", "text"), ("music", "chorale")])
def test_each_pass_of_a_network_is_a_place_to_end(studio, room, path):
    from anyfill.studio.how import spending

    model = studio.models.get(room)
    looks = []
    with reported_to(lambda *_: None, check=lambda: looks.append(1)), spending() as spent:
        if room == "text":
            model.score("the king of france")
        else:
            model.score(model.generate(bars=1, n=1, seed=0)[0])
        how = spent.how(given="", asked="", kind="exact", why="", python="", cli="")
    assert len(looks) >= how["passes"] >= 1


def test_outside_a_job_nothing_is_looked_at():
    check_cancelled()
    with reported_to(lambda *_: None):
        check_cancelled()
        assert [*metered(((n, 1.0) for n in range(2)), "counting")] == [0, 1]
