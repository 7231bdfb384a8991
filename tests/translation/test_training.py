"""From files to a folder: train, resume, distil; the same folder gives the same translations."""

import string

import pytest
import torch

from anyfill.networks.encoder_decoder import START
from anyfill.training import load_notes
from anyfill.translation import distill, load, train
from anyfill.translation.cleaning import Counts, Rules
from anyfill.translation.hypotheses import Decoding
from anyfill.translation.model import NOTES
from anyfill.translation.placeholders import restored
from anyfill.translation.reading import sources_of
from anyfill.translation.recipes import RECIPES, SIZES, Options, layout_of, make_model, make_objective
from anyfill.translation.settings import Settings
from anyfill.translation.training import clean_pairs, take_weights
from anyfill.translation.vocabulary import learn

UNIT = b"<tu><tuv xml:lang='de'><seg>Guten Morgen</seg></tuv><tuv xml:lang='en'><seg>Good morning</seg></tuv></tu>"
QUICK = {"size": "toy", "vocabulary_size": 340, "length": 24, "batch": 4, "valid_share": 0.0}


@pytest.mark.parametrize("recipe", ["padir", "autoregressive", "one_pass"])
def test_a_model_is_trained_saved_and_loaded(pairs_tsv, tmp_path, recipe):
    said = []
    model = train(
        pairs_tsv,
        tmp_path / "m",
        source="de",
        target="en",
        recipe=recipe,
        steps=2,
        device="cpu",
        say=said.append,
        **QUICK,
    )
    again = load(tmp_path / "m", to="en")
    assert again.recipe == recipe
    assert again.languages == ("de", "en")
    assert load_notes(tmp_path / "m")[NOTES]["closed"] == 5 / 8  # of nine sources one is longer than the rows
    assert not again.closes
    text = "Datei %s nicht gefunden"
    assert again.translate(text).text == model.translate(text).text
    assert any("9 pairs read, 9 kept" in line for line in said)
    assert not (tmp_path / "m" / "corpus").exists()
    with pytest.raises(ValueError, match="expected en"):
        load(tmp_path / "m", to="fr")
    with pytest.raises(ValueError, match="a new or empty folder"):
        train(pairs_tsv, tmp_path / "m", source="de", target="en", **QUICK)


def test_a_run_that_was_cut_off_goes_on_where_it_was(pairs_tsv, tmp_path, monkeypatch):
    from anyfill.translation import training

    begun = {"recipe": "cmlm", "steps": 4, **QUICK}
    whole = train(pairs_tsv, tmp_path / "a", source="de", target="en", device="cpu", **begun)
    steps = training.fit_steps

    def cut(*args, **options):
        for number, report in enumerate(steps(*args, **options)):
            yield report
            if number == 1:
                raise KeyboardInterrupt

    monkeypatch.setattr(training, "fit_steps", cut)
    with pytest.raises(KeyboardInterrupt):
        train(pairs_tsv, tmp_path / "b", source="de", target="en", device="cpu", **begun)
    monkeypatch.setattr(training, "fit_steps", steps)
    others = [{"recipe": "padir"}, {"seed": 1}, {"steps": 5}, {"vocabulary": tmp_path / "other"}, {"target": "it"}]
    train(pairs_tsv, tmp_path / "other", source="de", target="en", steps=1, device="cpu", **QUICK | {"pieces": "bpe"})
    for other in others:
        name = "to" if "target" in other else next(iter(other))
        with pytest.raises(ValueError, match=f"--{name}: expected .* the run"):
            train(pairs_tsv, tmp_path / "b", resume=True, **{"source": "de", "target": "en", **other})
    resumed = train(pairs_tsv, tmp_path / "b", source="de", target="en", resume=True, device="cpu")
    ours, theirs = whole.decoder.model.state_dict(), resumed.decoder.model.state_dict()
    assert all((ours[name] == theirs[name]).all() for name in ours)


def test_a_teachers_translations_become_pairs(pairs_tsv, tmp_path):
    teacher = train(
        pairs_tsv, tmp_path / "t", source="de", target="en", recipe="autoregressive", steps=2, device="cpu", **QUICK
    )
    count = distill(teacher, pairs_tsv, tmp_path / "d.tsv", beam=2)
    lines = [line.split("\t") for line in (tmp_path / "d.tsv").read_text("utf-8").splitlines()]
    assert count == len(lines) <= 9
    texts = [line.split("\t")[0] for line in pairs_tsv.read_text("utf-8").splitlines()]
    hidden = {text: text.replace("%s", "⟦0⟧") for text in sorted(texts, key=len)}
    codes = {text: teacher.vocabulary.encode(own) for text, own in hidden.items()}
    codes = {text: own for text, own in codes.items() if len(own) <= teacher.decoder.length}
    best = teacher.decoder.decode(list(codes.values()), Decoding(beam=2))
    written = {text: teacher.vocabulary.decode(one[0].codes).replace("⟦0⟧", "%s") for text, one in zip(codes, best)}
    assert dict(lines) == {text: restored(said, ()) for text, said in written.items() if restored(said, ())}
    with pytest.raises(ValueError, match="--force"):
        distill(teacher, pairs_tsv, tmp_path / "d.tsv")


def test_placeholders_of_a_file_that_a_teacher_wrote_are_symbols_when_it_is_read_again(pairs_tsv, tmp_path):
    """Symbols in a file would be brackets, and a student would learn to write brackets."""

    class Copying:
        languages, recipe = ("de", "en"), "autoregressive"

        def __init__(self, vocabulary):
            self.vocabulary, self.decoder = vocabulary, self
            self.rows_at_once, self.length = 4, 200

        def best_codes(self, sources, how):
            return [(*source, *self.vocabulary.encode("and so")) for source in sources]

    vocabulary = learn(["Datei ⟦0⟧ nicht gefunden and so", *string.ascii_letters], 340)
    distill(Copying(vocabulary), pairs_tsv, tmp_path / "d.tsv")
    assert "Datei %s nicht gefunden\tDatei %s nicht gefunden and so\n" in (tmp_path / "d.tsv").read_text("utf-8")
    again = list(clean_pairs(sources_of([tmp_path / "d.tsv"], "de", "en"), "de", Rules(), Counts()))
    assert ("Datei ⟦0⟧ nicht gefunden", "Datei ⟦0⟧ nicht gefunden and so") in again


@pytest.mark.parametrize("recipe", RECIPES)
def test_every_recipe_has_a_model_and_an_objective_that_fit(recipe):
    model = make_model(recipe, 400, 16, "toy")
    objective = make_objective(recipe, 16)
    assert objective.sample_rank(2, generator=__import__("torch").Generator()).shape[1] == model.variables
    assert layout_of(recipe) in ("length", "end", "joined")


def test_a_parallel_model_that_begins_from_a_headed_teacher_reads_and_answers_as_it_does():
    teacher = make_model("autoregressive", 400, 16, "toy", dropout=0.0, options=Options(headed=True)).eval()
    sources = torch.tensor([[7, 8, 9, 10, 0], [11, 12, 0, 0, 0]])
    word = torch.full((2, 1), START)
    expected, memory = teacher.network.chain(word, torch.zeros_like(word), sources), teacher.read(sources)
    for recipe in ("padir", "cmlm", "sundae"):
        student = make_model(recipe, 400, 16, "toy", dropout=0.0, seed=1).eval()
        assert take_weights(student, teacher) == len(list(teacher.parameters()))
        read = student.read(sources)
        for ours, theirs in zip((*read.keys, *read.values), (*memory.keys, *memory.values)):
            assert torch.equal(ours, theirs)
        # A target of one word: there is nobody else to attend to, so the causal mask says nothing.
        row = torch.cat([torch.ones_like(word), word], 1)
        answer = student.network(row, torch.ones_like(row, dtype=torch.bool), sources)[:, 1:]
        assert torch.allclose(answer, expected, atol=1e-5)


def test_only_branches_that_the_other_model_lacks_begin_as_zero():
    plain = make_model("cmlm", 400, 16, "toy", dropout=0.0).eval()
    begun = make_model("padir", 400, 16, "toy", dropout=0.0, seed=1).eval()
    take_weights(begun, plain)
    layer = begun.network.decoder[0]
    assert not bool(layer.positional.out.weight.any())
    assert bool(layer.positional.value.weight.any())
    assert bool(layer.cross.out.weight.any())
    sources, x = torch.tensor([[7, 8, 9]]), torch.tensor([[4, 5, 6, 7, 8]])
    known = torch.ones_like(x, dtype=torch.bool)
    assert torch.equal(begun.network(x, known, sources), plain.network(x, known, sources))
    torch.manual_seed(0)
    begun.network(x, known, sources)[:, 1:].square().mean().backward()
    assert bool(layer.positional.out.weight.grad.any())  # it learns from the first step on
    # Whoever takes nothing over begins as ever.
    alone = make_model("padir", 400, 16, "toy", dropout=0.0, seed=1)
    assert take_weights(alone, make_model("padir", 300, 12, "tiny")) == 0
    assert bool(alone.network.decoder[0].positional.out.weight.any())


def test_sizes_go_from_a_few_million_to_the_papers():
    def count(size, codes):
        return sum(one.numel() for one in make_model("padir", codes, 128, size).parameters())

    assert count("base", 32_128) == 66_997_248
    assert 2e6 < count("tiny", 8000) < 4e6
    assert list(SIZES) == ["toy", "tiny", "small", "compact", "medium", "base"]


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"recipe": "magic"}, "--recipe"),
        ({"length": 2}, "--length"),
        ({"steps": 0}, "--steps"),
        ({"valid_share": 2.0}, "--valid-share"),
    ],
)
def test_bad_settings_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        Settings(**settings)


def test_nothing_is_left_behind_when_training_cannot_begin(tmp_path):
    path = tmp_path / "x.tsv"
    path.write_text("gleich\tgleich\n", "utf-8")
    with pytest.raises(
        ValueError, match=r"x\.tsv: expected at least one pair to train on, got 1 pair read, 0 kept \(1 "
    ):
        train(path, tmp_path / "m", source="de", target="en")
    with pytest.raises(ValueError, match="another language"):
        train(path, tmp_path / "m", source="de", target="de")
    assert not (tmp_path / "m").exists()


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"x.de": b"eins\nzwei\n", "x.en": b"one\n"}, "x.en: expected as many lines"),
        ({"x.tsv": b"Guten Morgen\tGood morning\n" * 3 + b"gut\xff\tgood\n"}, "line 4: expected text in UTF-8"),
        ({"x.tsv": b"Guten Morgen\tGood morning\n" * 3 + b"gut\n"}, "line 4: expected two columns"),
        ({"x.tmx": b"<tmx><body>" + UNIT * 3 + b"<tu><tuv"}, "x.tmx"),
    ],
)
def test_what_is_wrong_with_a_file_is_said_also_where_the_vocabulary_meets_it_first(tmp_path, files, message):
    """Not that there is too little text, which the trainer of pieces makes of every error."""
    for name, content in files.items():
        (tmp_path / name).write_bytes(content)
    paths = [tmp_path / name for name in files]
    with pytest.raises(ValueError, match=message) as error:
        train(paths, tmp_path / "m", source="de", target="en", vocabulary_size=600, size="toy", steps=1)
    assert "INTERNAL" not in str(error.value)
    assert "pieces" not in str(error.value)
