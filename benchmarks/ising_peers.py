"""The packages that benchmarks/ising.py measures itself against, in a process of their own.

    python benchmarks/ising_peers.py dwave|thrml      reads one request per line, answers one line of JSON each

It needs numpy and the package, and nothing of this project, so it may run under another interpreter. Requests:

    {"load": {"fields": [...], "edges": [[i, j], ...], "couplings": [...], "classes": [[site, ...], ...]}}
    {"chains": B, "sweeps": S, "seed": n}                      -> {"cpu": seconds, "wall": seconds} of one call
    {"chains": B, "sweeps": S, "seed": n, "states": true}      -> also the states: a bit each, packed, in base64

p(s) ∝ exp(sum h_i s_i + sum J_ij s_i s_j); every chain makes S sweeps of N heat-bath site updates from a start of its
own. The call is warmed up first (JAX compiles then), and a run is timed whole, from the call to the states in hand.
"""

import base64
import importlib.metadata
import json
import os
import sys
import time
from collections.abc import Callable
from typing import Any

os.environ["OMP_NUM_THREADS"] = "1"
os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
if hasattr(os, "sched_setaffinity"):  # XLA makes a thread for each core that it sees, whatever it is told
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})

import numpy as np

Model = dict[str, Any]
Draw = Callable[[int, int, int], np.ndarray]


def dwave(model: Model) -> Draw:
    """SimulatedAnnealingSampler held at one temperature: acceptance "Gibbs" is the heat bath, sites in order."""
    import dimod
    from dwave.samplers import SimulatedAnnealingSampler

    fields = {site: -value for site, value in enumerate(model["fields"])}  # it samples exp(-energy)
    couplings = {(i, j): -value for (i, j), value in zip(model["edges"], model["couplings"])}
    problem, sampler = dimod.BinaryQuadraticModel.from_ising(fields, couplings), SimulatedAnnealingSampler()

    def draw(chains: int, sweeps: int, seed: int) -> np.ndarray:
        found = sampler.sample(
            problem,
            num_reads=chains,
            beta_schedule_type="custom",
            beta_schedule=[1.0],
            num_sweeps_per_beta=sweeps,
            proposal_acceptance_criteria="Gibbs",
            randomize_order=False,
            seed=seed,
        )
        return found.record.sample

    return draw


def thrml(model: Model) -> Draw:
    """Block Gibbs, one block for each class of sites without an edge inside; chains by vmap, compiled."""
    import jax
    import jax.numpy as jnp
    from thrml import Block, SamplingSchedule, SpinNode, sample_states
    from thrml.models import IsingEBM, IsingSamplingProgram

    nodes = [SpinNode() for _ in model["fields"]]
    edges = [(nodes[i], nodes[j]) for i, j in model["edges"]]
    fields, couplings = jnp.asarray(model["fields"]), jnp.asarray(model["couplings"])
    energy = IsingEBM(nodes, edges, fields, couplings, jnp.asarray(1.0))
    program = IsingSamplingProgram(energy, [Block([nodes[i] for i in each]) for each in model["classes"]], [])
    compiled: dict[int, Any] = {}

    def draw(chains: int, sweeps: int, seed: int) -> np.ndarray:
        if sweeps not in compiled:
            schedule = SamplingSchedule(n_warmup=sweeps, n_samples=1, steps_per_sample=1)
            compiled[sweeps] = jax.jit(
                jax.vmap(lambda key, start: sample_states(key, program, schedule, start, [], [Block(nodes)]))
            )
        first, then = jax.random.split(jax.random.key(seed))
        start = [jax.random.bernoulli(first, 0.5, (chains, len(each))) for each in model["classes"]]
        return 2 * np.asarray(compiled[sweeps](jax.random.split(then, chains), start)[0])[:, 0].astype(np.int8) - 1

    return draw


PEERS = {"dwave": ("dwave-samplers", dwave), "thrml": ("thrml", thrml)}


def answer(draw: Draw, request: dict[str, Any]) -> dict[str, Any]:
    """One run, timed."""
    chains, sweeps, seed = request["chains"], request["sweeps"], request["seed"]
    if request.get("warm"):
        draw(chains, sweeps, seed)
    cpu, wall = time.process_time(), time.perf_counter()
    spins = draw(chains, sweeps, seed)
    reply: dict[str, Any] = {"cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall}
    if request.get("states"):
        reply["states"] = base64.b64encode(np.packbits(spins > 0).tobytes()).decode()
    return reply


def main() -> None:
    if sys.argv[1:] not in [[name] for name in PEERS]:  # benchmarks/ising.py calls it; alone it has nothing to do
        print(__doc__)
        return
    package, build = PEERS[sys.argv[1]]
    print(json.dumps({"version": importlib.metadata.version(package)}), flush=True)
    draw: Draw | None = None
    for line in sys.stdin:
        request = json.loads(line)
        if "load" in request:
            draw = build(request["load"])
            print(json.dumps({}), flush=True)
        elif draw is not None:
            print(json.dumps(answer(draw, request)), flush=True)


if __name__ == "__main__":
    main()
