"""``anyfill lab ising`` from the command line inwards: tables, one JSON document, pictures, and one sentence if not.

The model that options of the lab describe."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from anyfill.cli import main as cli
from anyfill.ising.cli import CliqueOptions, ModelOptions
from anyfill.ising.cliques import Clique
from anyfill.ising.model import Ising

DOCS = Path(__file__).parents[2] / "docs" / "ising.md"
QUICK = {
    "fit": ("--rows", "300", "--repetitions", "2"),
    "variance": ("--variables", "3"),
    "mixing": ("--variables", "3"),
    "hitting": ("--variables", "6", "--chains", "20", "--budget", "50"),
}


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path):
    """Run ``anyfill lab ising`` in an empty folder; exit code, stdout, stderr."""
    monkeypatch.delenv(cli.DEBUG, raising=False)
    monkeypatch.chdir(tmp_path)

    def call(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.run(["lab", "ising", *arguments])
        shown = capsys.readouterr()
        return code, shown.out, shown.err

    return call


def refused(error: str) -> bool:
    """One sentence."""
    return error.startswith("anyfill: ") and error.count("\n") == 1 and "mistake in anyfill" not in error


def test_help_does_not_wait_for_torch() -> None:
    code = (
        "import sys; from anyfill.cli import main as cli\n"
        "for command in ('fit', 'variance', 'mixing', 'hitting'): cli.run(['lab', 'ising', command, '--help'])\n"
        "cli.run(['lab', 'ising', '--help']); sys.exit('torch' in sys.modules or 'matplotlib' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0
    assert done.stdout.count("--coupling") >= 4


@pytest.mark.parametrize("command", list(QUICK))
def test_a_table_in_the_terminal_and_the_same_as_one_json_document(run, command: str) -> None:
    code, out, _ = run(command, *QUICK[command])
    assert code == 0
    assert "k" in out
    code, document, _ = run(command, *QUICK[command], "--json")
    assert code == 0
    told = json.loads(document)
    assert told["command"] == command
    assert len(told["results"]) >= 3


@pytest.mark.parametrize("command", list(QUICK))
def test_a_picture(run, command: str, tmp_path: Path) -> None:
    code, out, _ = run(command, *QUICK[command], "--plot", "one.png")
    assert code == 0
    assert "picture: one.png" in out
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run(command, *QUICK[command], "--json", "--plot", "two.png")
    json.loads(out)
    assert code == 0
    assert (tmp_path / "two.png").exists()
    assert run(command, *QUICK[command], "--plot", "two.png", "--force")[0] == 0
    code, out, error = run(command, *QUICK[command], "--plot", "two.png")
    assert (code, out) == (2, "")
    assert "--force replaces it" in error


@pytest.mark.parametrize("command", ["fit", "hitting"])
def test_the_seed_decides_everything_random(run, command: str) -> None:
    first, again, other = (run(command, *QUICK[command], "--json", "--seed", seed)[1] for seed in ("1", "1", "2"))
    assert first == again
    assert first != other


MODELS = {
    "asymmetric.json": '{"couplings": [[0, 1], [0.5, 0]], "fields": [0, 0]}',
    "nan.json": '{"couplings": [[0, NaN], [NaN, 0]]}',
    "huge.json": '{"couplings": [[0, 1' + "0" * 400 + "], [0, 0]]}",
    "text.json": '{"couplings": [["a", 1], [1, 0]]}',
    "ragged.json": '{"couplings": [[0, 1], [1]]}',
    "diagonal.json": '{"couplings": [[1, 1], [1, 0]]}',
    "short.json": '{"couplings": [[0, 1], [1, 0]], "fields": [1]}',
    "other.json": '{"J": [[0, 1], [1, 0]]}',
    "list.json": "[1, 2]",
    "broken.json": "{",
    "path.json": '{"couplings": [[0, 0.5, 0], [0.5, 0, 0.5], [0, 0.5, 0]]}',
}
DATA = {
    "bad.csv": "a,b\n1,-1\n1,2\n",
    "word.csv": "a,b\n1,-1\n1,up\n",
    "empty_cell.csv": "a,b\n1,-1\n,1\n",
    "mixed.csv": "1,-1\n0,1\n",
    "ragged.csv": "1,-1\n1\n",
    "nothing.csv": "",
    "names.csv": "a,b\n",
    "wide.csv": ",".join(["1"] * 21) + "\n" + ",".join(["-1"] * 21) + "\n",
    "ok.csv": "a,b\n1,-1\n-1,1\n1,1\n-1,-1\n",
}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ("variance --k 5", "k of 4 spins: expected a whole number from 1 to 4, got 5"),
        ("fit --k 0", "k of 4 spins"),
        ("mixing --k 1,x", "--k"),
        ("mixing --k 3-1", "--k"),
        ("hitting --k 11", "k of 10 spins"),
        ("fit --graph ring", "ring"),
        ("fit --coupling nan", "--coupling: expected a finite number"),
        ("mixing --field inf", "--field"),
        ("hitting --coupling=-inf", "--coupling"),
        ("hitting --isolated-field nan", "finite"),
        ("hitting --graph complete --isolated-field 2", "--isolated-field: expected spins outside the clique"),
        ("hitting --delta 1", "delta"),
        ("hitting --graph lattice", "clique"),
        ("hitting --model path.json", "one clique, coupled alike"),
        ("variance --clique 3 --graph complete", "--clique"),
        ("variance --graph clique --variables 3 --clique 4", "clique"),
        ("variance --periodic --height 2", "periodic"),
        ("variance --graph lattice --variables 4", "--height"),
        ("variance --masks none", "--masks"),
        ("variance --variables 0", "--variables"),
        ("variance --variables 21", "2^21 states would need"),
        ("variance --variables 21", "--sampled"),
        ("mixing --variables 2000", "--sampled"),
        ("variance --variables 40 --sampled", "parameters of a sampled variance"),
        ("variance --sampled --k 3 --rows 10", "--rows"),
        ("mixing --sampled --tensorization", "--tensorization"),
        ("variance --plot picture.txt", "--plot"),
        ("variance --plot nowhere/picture.png", "--plot"),
        ("variance --model missing.json", "missing.json: No such file"),
        ("variance --model path.json --coupling 1", "--coupling"),
        ("variance --model asymmetric.json", "1 at (0, 1) and 0.5 at (1, 0)"),
        ("variance --model nan.json", "couplings: expected finite numbers, got nan"),
        ("variance --model huge.json", "too large"),
        ("variance --model text.json", "row 0 of couplings in text.json"),
        ("variance --model ragged.json", "row 1 of couplings"),
        ("variance --model diagonal.json", "diagonal"),
        (
            "variance --model short.json",
            "fields in short.json: expected 2 numbers, one for each row of couplings, got 1",
        ),
        ("variance --rows 10", "--rows: expected none without --sampled, got 10"),
        ("variance --sweeps 10", "--sweeps: expected none without --sampled, got 10"),
        ("mixing --chains 10", "--chains: expected none without --sampled, got 10"),
        ("mixing --steps 4000", "--steps: expected none without --sampled, got 4000"),
        ("mixing --sweeps 10", "--sweeps: expected none without --sampled, got 10"),
        ("hitting --clique 140 --variables 200 --budget 1000000", "--budget: expected at most 951,898"),
        ("fit --variables 25 --k 25", "--k of a fit: expected at most 20, got 25: use a smaller --k"),
        ("fit --data wide.csv --k 21", "use a smaller --k"),
        ("variance --coupling 30", "a combination of h of spin 0, h of spin 1"),
        ("variance --coupling 30", "double precision"),
        ("variance --variables 20 --k 10", "--k of 20 spins: expected a size with at most 1e+12 multiplications, got"),
        ("variance --variables 20 --k 10", "--sampled"),
        ("variance --model other.json", "couplings"),
        ("variance --model list.json", "couplings"),
        ("variance --model broken.json", "a JSON file"),
        ("fit --data missing.csv", "missing.csv: No such file"),
        ("fit --data bad.csv", "row 2, column b of bad.csv: expected -1 or 1 (or 0 or 1), got '2'"),
        ("fit --data word.csv", "row 2, column b of word.csv"),
        ("fit --data empty_cell.csv", "row 2, column a"),
        ("fit --data mixed.csv", "row 2, column 1 of mixed.csv: expected -1 or 1, as before, got '0'"),
        ("fit --data ragged.csv", "row 2 of ragged.csv: expected 2 cells, got 1"),
        ("fit --data nothing.csv", "rows of spins"),
        ("fit --data names.csv", "rows of spins"),
        ("fit --data ok.csv --rows 5", "--rows"),
        ("fit --data ok.csv --coupling 1", "--coupling"),
        ("fit --data ok.csv --variables 3", "columns of the data"),
        ("fit --ridge nan", "ridge"),
        ("variance --clique 1 --fixed-fields", "parameters to estimate"),
        ("variance --clique 1 --fixed-fields --sampled", "parameters to estimate"),
        ("fit --clique 1 --fixed-fields", "parameters to fit"),
        ("mixing --coupling 1e308", "at most 1e+09"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(run, arguments: str, words: str, tmp_path: Path) -> None:
    for name, text in (MODELS | DATA).items():
        (tmp_path / name).write_text(text)
    code, out, error = run(*arguments.split())
    assert (code, out) == (2, "")
    assert refused(error)
    assert words in error


def test_a_file_that_is_no_text_is_refused(run, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    for arguments in (("fit", "--data", "binary"), ("variance", "--model", "binary"), ("fit", "--data", ".")):
        code, _, error = run(*arguments)
        assert code == 2
        assert refused(error)


@pytest.mark.skipif(not DOCS.exists(), reason="the documentation is not part of an installed package")
@pytest.mark.parametrize("command", ["variance", "mixing"])
def test_the_guide_shows_what_the_command_prints(run, command: str) -> None:
    """Exact commands only: what they print does not hang on random bits."""
    blocks = re.findall(r"\$ anyfill lab ising ([^\n]+)\n(.*?)```", DOCS.read_text(encoding="utf-8"), re.DOTALL)
    shown = [(line.split(), text) for line, text in blocks if line.split()[0] == command and "--sampled" not in line]
    assert shown
    for arguments, text in shown:
        _, out, _ = run(*arguments)
        assert [line.rstrip() for line in out.splitlines() if line.strip()] == [
            line.rstrip() for line in text.splitlines() if line.strip()
        ]


def same(one: Ising, other: Ising) -> bool:
    return one.edges == other.edges and torch.equal(one.theta, other.theta) and one.count == other.count


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, Ising.complete(4, 0.3)),
        ({"variables": 5, "coupling": -1.0, "field": 2.0}, Ising.complete(5, -1.0, 2.0)),
        ({"pairs": "twice"}, Ising.complete(4, 0.3, pairs="twice")),
        ({"graph": "clique"}, Ising.clique(10, 4, 0.3)),
        ({"clique": 3, "variables": 5}, Ising.clique(5, 3, 0.3)),
        ({"graph": "clique", "variables": 3}, Ising.clique(3, 3, 0.3)),
        ({"graph": "lattice"}, Ising.lattice(3, 3, 0.3)),
        ({"height": 2}, Ising.lattice(2, 2, 0.3)),
        ({"height": 3, "width": 4, "periodic": True}, Ising.lattice(3, 4, 0.3, periodic=True)),
        (
            {"graph": "random", "variables": 4, "field": 1.0},
            Ising.random(4, generator=torch.Generator().manual_seed(7), coupling_scale=0.3, field_scale=1.0),
        ),
    ],
)
def test_options_name_the_model(given: dict, expected: Ising) -> None:
    assert same(ModelOptions(**given).build(seed=7), expected)


def test_a_clique_is_that_of_the_papers_figure_unless_options_say_otherwise() -> None:
    assert CliqueOptions().build() == Clique.alike(10, 4, 3.0, 5.0)
    assert CliqueOptions().build().words == "clique of 4 among N = 10 spins, J = 3, h = 5 (h = 0 outside)"
    other = CliqueOptions(graph="complete", variables=5, coupling=1.0, field=0.5)
    assert other.build() == Clique.alike(5, 5, 1.0, 0.5)
    assert other.build().words == "complete graph, N = 5, J = 1, h = 0.5"
