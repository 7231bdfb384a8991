"""Site updates per second of 1-Gibbs beside dwave-samplers and thrml; how long the exact theory takes; k-Gibbs.

    python -m benchmarks.ising [--peers-python PYTHON] [--rounds 5] [--seed 0] [--laws]

Counted is one heat-bath update of one site of one chain: a fresh value from p(x_i | x_-i). A call makes S sweeps of B
chains, N updates each, and is timed whole, tables, start and states included, by the CPU seconds of its process (wall
seconds are written beside them): so a busy machine slows none of them more than another, and threads count in full.
Everybody runs on one thread, sites in a fixed order, with the best of several numbers of chains, warmed up (JAX
compiles before the clock starts), in rounds that alternate. Who draws the wrong law does not count: states of everybody
are checked first, on both models (benchmarks/ising_laws.py says against what), and beyond 5 standard errors the run
ends there, with exit code 1 and nothing written.

dense      N = 10, all pairs coupled, normal couplings and fields of scale 0.3
lattice    32 x 32, periodic, coupling 0.4

A peer that is not installed here runs under --peers-python, and is reported as not installed if it is not there either
(python -m venv peers; peers/bin/pip install dwave-samplers thrml; --peers-python peers/bin/python).
Writes results/ising.json, unless that file has rates of a peer which is missing now: then it is left as it is.
--laws checks the laws alone and writes them, with an environment of their own, beside the rates that are there.
"""

import argparse
import base64
import json
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Generator, Tensor

from anyfill.ising.asymptotics import ising_variance
from anyfill.ising.blocks import k_blocks
from anyfill.ising.chains import IndependentParallel, Kernel, KGibbs, run_chain, still
from anyfill.ising.heat_bath import colours, gibbs_updates
from anyfill.ising.model import Ising
from anyfill.ising.spectra import poincare_constant
from anyfill.networks.exact import to_spins
from benchmarks.common import RESULTS, environment, median_seconds, write_result
from benchmarks.ising_laws import Checked, WrongLawError, dense_law, lattice_law, lattice_reference, require_law
from benchmarks.peers_apart import Measured, Peer, find_peers

PEERS = ("dwave", "thrml")
# Chains and sweeps that each may choose from: about the same number of updates within a row, some tenths of a second.
CHOICES = {
    "dense": {
        "anyfill": ((4096, 400), (16_384, 100), (65_536, 25)),
        "dwave": ((10, 60_000), (100, 6000), (1000, 600)),
        "thrml": ((64, 800), (256, 200), (1024, 50)),
    },
    "lattice": {
        "anyfill": ((256, 400), (512, 200), (1024, 100)),
        "dwave": ((1, 6000), (10, 600), (100, 60)),
        "thrml": ((4, 1200), (16, 300), (64, 80)),
    },
}
SIDE, COUPLING = 32, 0.4


def described(ising: Ising) -> dict[str, object]:
    """The model as a peer reads it."""
    law = still(ising)
    return {
        "fields": law.fields.tolist(),
        "edges": [list(edge) for edge in ising.edges],
        "couplings": ising.couplings.tolist(),
        "classes": [sites.tolist() for sites in colours(law)],
    }


def ours(ising: Ising, chains: int, sweeps: int, seed: int) -> tuple[Measured, Tensor]:
    """Seconds of one call of ours, and the states it ends in."""
    generator = Generator().manual_seed(seed)
    cpu, wall = time.process_time(), time.perf_counter()
    start = torch.randint(2, (chains, ising.variables), generator=generator, dtype=torch.uint8)
    x = gibbs_updates(ising, start, sweeps * ising.variables, generator=generator)
    return {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}, x


def speed(name: str, ising: Ising, peers: dict[str, Peer], *, rounds: int, seed: int) -> Measured:
    """Updates per second of everybody, medians over rounds that alternate."""
    choices = CHOICES[name]
    runs: dict[str, Callable[[int, int, int, bool], Measured]] = {
        "anyfill": lambda chains, sweeps, seed, warm: ours(ising, chains, sweeps, seed)[0]
    }
    for peer in peers:
        peers[peer].ask(load=described(ising))
        runs[peer] = lambda chains, sweeps, seed, warm, peer=peer: peers[peer].ask(
            chains=chains, sweeps=sweeps, seed=seed, warm=warm
        )

    def rate(who: str, choice: tuple[int, int], clock: str, measured: Measured) -> float:
        return ising.variables * choice[0] * choice[1] / measured[clock]

    best: dict[str, tuple[int, int]] = {}
    for who, run in runs.items():
        run(*choices[who][0], seed, True)
        tried = {choice: rate(who, choice, "cpu", run(*choice, seed, True)) for choice in choices[who]}
        best[who] = max(tried, key=lambda choice: tried[choice])
    seen: dict[str, list[Measured]] = {who: [] for who in runs}
    for each in range(rounds):
        for who, run in runs.items():
            seen[who].append(run(*best[who], seed + 1 + each, False))
    result: Measured = {}
    for who, rows in seen.items():
        per_cpu = [rate(who, best[who], "cpu", row) for row in rows]
        per_wall = [rate(who, best[who], "wall", row) for row in rows]
        result[who] = {
            "chains": best[who][0],
            "sweeps": best[who][1],
            "updates_per_cpu_second": statistics.median(per_cpu),
            "updates_per_wall_second": statistics.median(per_wall),
            "rounds": per_cpu,
        }
    mine = result["anyfill"]["updates_per_cpu_second"]
    for who, row in result.items():
        row["anyfill_is_faster_by"] = mine / row["updates_per_cpu_second"]
        against = "" if who == "anyfill" else f"   anyfill is {row['anyfill_is_faster_by']:.1f} x as fast"
        rates = f"{row['updates_per_cpu_second']:10.3g} updates per CPU second"
        print(f"{name:8s} {who:8s} {rates} ({row['chains']} chains){against}", flush=True)
    return result


def drawn(peer: Peer | None, ising: Ising, chains: int, sweeps: int, seed: int) -> Tensor:
    """float64 (chains, N) of -1 and +1: where chains of a peer, or ours, end."""
    if peer is None:
        return to_spins(ours(ising, chains, sweeps, seed)[1])
    peer.ask(load=described(ising))
    bits = np.frombuffer(
        base64.b64decode(peer.ask(chains=chains, sweeps=sweeps, seed=seed, states=True)["states"]), np.uint8
    )
    codes = np.unpackbits(bits)[: chains * ising.variables].reshape(chains, ising.variables)
    return to_spins(torch.from_numpy(codes))


def laws(dense: Ising, lattice: Ising, peers: dict[str, Peer], *, seed: int) -> Measured:
    """Everybody's states on both models; WrongLawError if they are not what they ought to be."""
    reference = lattice_reference(SIDE, COUPLING, seed=seed)
    found: dict[str, dict[str, Checked]] = {"dense": {}, "lattice": {}}
    for who, peer in {"anyfill": None, **peers}.items():
        few = 2000 if who == "thrml" else 20_000  # it is slower: fewer chains, wider standard errors
        found["dense"][who] = dense_law(dense, drawn(peer, dense, few, 200, seed))
        found["lattice"][who] = lattice_law(lattice, drawn(peer, lattice, 512, 500, seed), reference)
        for name, rows in found.items():
            away = rows[who]["in_standard_errors"]
            print(f"law      {who:8s} {name:8s} {rows[who]['chains']} chains: at most {away:.1f} standard errors")
            require_law(name, who, rows[who])
    require_law("lattice", "the reference", {"in_standard_errors": abs(reference.product_z)})
    return {
        "law_at_n10": found["dense"],
        "law_of_the_lattice": {
            "product_exact": reference.product,
            "squared_magnetisation_of_clusters": [reference.squared, reference.squared_error],
            **found["lattice"],
        },
    }


def theory() -> Measured:
    """Seconds of the exact quantities that must take no more than 5."""
    twelve = Ising.random(12, generator=Generator().manual_seed(0), coupling_scale=0.2)
    sixteen = Ising.random(16, generator=Generator().manual_seed(0), coupling_scale=0.2)
    jobs: dict[str, Callable[[], object]] = {
        "gamma_k_at_n12_k6": lambda: ising_variance(twelve, k_blocks(12, 6)),
        "poincare_constant_at_n16_k1": lambda: poincare_constant(sixteen.log_joint().detach(), k_blocks(16, 1)),
    }
    found: Measured = {}
    for name, job in jobs.items():
        cpu = time.process_time()
        wall = median_seconds(job, repeats=1, warm_up=0)
        found[name] = {"wall_seconds": wall, "cpu_seconds": time.process_time() - cpu}
        print(f"exact    {name:28s} {wall:6.2f} s wall, {found[name]['cpu_seconds']:.2f} s CPU", flush=True)
    return found


def joint_blocks(seed: int) -> list[Measured]:
    """Steps per second of thousands of chains that redraw k spins jointly."""
    found: list[Measured] = []
    kernels: list[tuple[str, Kernel]] = [(f"KGibbs({k})", KGibbs(k)) for k in (1, 4, 8)]
    for variables in (10, 64):
        ising = Ising.random(variables, generator=Generator().manual_seed(seed), coupling_scale=0.1)
        for name, kernel in (*kernels, ("IndependentParallel()", IndependentParallel())):
            generator, chains, steps = Generator().manual_seed(seed), 4096, 10
            x = torch.randint(2, (chains, variables), generator=generator)
            cpu = time.process_time()
            _ = [state[0] for state in run_chain(ising, kernel, x, steps, generator=generator)]
            rate = chains * steps / (time.process_time() - cpu)
            found.append({"kernel": name, "variables": variables, "chains": chains, "steps_per_cpu_second": rate})
            print(f"blocks   {name:22s} N = {variables:3d}, {chains} chains: {rate:10.3g} steps per CPU second")
    return found


def lost(saved: Measured, peers: dict[str, Peer]) -> list[str]:
    """Peers that the saved file has rates of and this run has not."""
    return [name for name in PEERS if name in saved.get("dense", {}) and name not in peers]


def measure(arguments: argparse.Namespace, peers: dict[str, Peer], missing: dict[str, str]) -> None:
    """Laws, then rates; one file at the end."""
    path = RESULTS / "ising.json"
    saved: Measured = json.loads(path.read_text()) if path.exists() else {}
    generator = Generator().manual_seed(arguments.seed)
    dense = Ising.random(10, generator=generator, coupling_scale=0.3, field_scale=0.3)
    lattice = Ising.lattice(SIDE, SIDE, COUPLING, periodic=True)
    versions = {**{name: peer.version for name, peer in peers.items()}, **missing}
    checked = laws(dense, lattice, peers, seed=arguments.seed)
    if arguments.laws:
        payload = saved | checked | {"laws_checked": {"environment": environment(), "peers": versions}}
        payload.pop("name", None)
    else:
        payload = {
            "arguments": {"rounds": arguments.rounds, "seed": arguments.seed},
            "counted": "heat-bath updates of one site of one chain, per CPU second of the process, whole call",
            "peers": versions,
            **checked,
            **{
                name: speed(name, ising, peers, rounds=arguments.rounds, seed=arguments.seed)
                for name, ising in {"dense": dense, "lattice": lattice}.items()
            },
            "exact": theory(),
            "joint_blocks": joint_blocks(arguments.seed),
        }
    if gone := lost(saved, peers):
        print(f"{path.name} has rates of {' and '.join(gone)}, which this run has not: it is left as it is")
        return
    print(f"wrote {write_result('ising', payload)}")  # what was saved of the environment comes with it


def one_sweep(peer: Peer) -> None:
    """Two spins, once."""
    peer.ask(load=described(Ising.complete(2, 0.1)))
    peer.ask(chains=1, sweeps=1, seed=0)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers-python", help="an interpreter that has dwave-samplers and thrml")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--laws", action="store_true", help="check the laws only, and keep the rates that are written")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    script = Path(__file__).with_name("ising_peers.py")
    peers, missing = find_peers(script, PEERS, arguments.peers_python, tried=one_sweep)
    for name, why in missing.items():
        print(f"{name}: {why}")
    try:
        measure(arguments, peers, missing)
    except WrongLawError as error:
        sys.exit(f"{error}; nothing is written")
    finally:
        for peer in peers.values():
            peer.close()


if __name__ == "__main__":
    main()
