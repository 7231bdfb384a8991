"""How long a translation takes: one sentence at a time and in batches, beside CTranslate2 with the same weights.

Every system translates the same sources in one run, and each output has the length of the reference: then untrained
weights cost what trained ones do, and nobody is fast because it stops early. Measured per sentence: wall time and CPU
time of this process; p50, p90 and p99 over sentences. On a busy machine compare CPU time, within one run.

    parallel   T passes of a model with a length; fp32, or int8 by torch's dynamic quantisation of its matrices
    torch      an autoregressive model, one word after another from a cache; fp32 or int8
    ct2        the same autoregressive weights in CTranslate2: float32 or int8, beam 1 or more

A parallel decoder cannot run in CTranslate2, whose decoders are causal.
"""

import copy
import importlib
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import nn

from anyfill.checks import refuse, require_package
from anyfill.model import Model
from anyfill.networks.decoders import CausalDecoder
from anyfill.networks.encoder_decoder import END, SequenceToSequence
from anyfill.networks.encoder_decoder_layers import EPS
from anyfill.networks.frozen import freeze
from anyfill.networks.traced import trace_layers
from anyfill.questions.question import Question
from anyfill.samplers import CachedChain, Restricted, State, sample
from anyfill.translation.hypotheses import padded
from anyfill.translation.recipes import sampler_of

System = Callable[[Sequence[Sequence[int]], Sequence[int]], list[list[int]]]
"""From sources and the lengths their translations shall have to translations, all in codes."""


def int8(model: Model, *, traced: bool = True) -> Model:
    """A copy for CPUs whose matrices are int8, the output too; answers differ by rounding.

    ``traced`` = with all layers as one graph each (``anyfill.networks.traced``), which changes no answer.
    """
    network = copy.deepcopy(model.network).eval()
    if not isinstance(network, SequenceToSequence):
        raise refuse("int8", expected="an encoder-decoder", got=type(network).__name__)
    projection = nn.Linear(network.width, network.codes, bias=False)
    projection.weight = nn.Parameter(network.table.weight.detach().clone())
    network.projection = projection
    freeze(network)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch means to move this elsewhere
        quantisation: Any = importlib.import_module("torch.ao.quantization")
        small: Any = quantisation.quantize_dynamic(network, {nn.Linear}, dtype=torch.qint8)
    if traced:
        trace_layers(small)
    made = Model(small, model.likelihood, corruption=model.corruption, order=model.order)
    made.factorizations = model.factorizations
    return made.eval()


def parallel(model: Model, recipe: str, passes: int, *, lengths: int = 1) -> System:
    """T passes at the asked length; ``lengths`` = as many candidates side by side, of that length and longer ones."""

    def run(sources: Sequence[Sequence[int]], wanted: Sequence[int]) -> list[list[int]]:
        with model.evaluating():  # once for all passes
            return decoded(sources, wanted)

    def decoded(sources: Sequence[Sequence[int]], wanted: Sequence[int]) -> list[list[int]]:
        memory: Any = model.read(padded(sources, _device(model)))
        rows = [(row, n + extra) for row, n in enumerate(wanted) for extra in range(lengths)]
        longest = max(n for _, n in rows)
        x = torch.zeros(len(rows), longest + 1, dtype=torch.long)
        x[:, 0] = torch.tensor([n for _, n in rows])
        told = (torch.arange(longest + 1) == 0).expand(len(rows), -1)
        asked = (torch.arange(longest + 1) <= x[:, :1]) & ~told
        policy, draw = sampler_of(recipe, passes, stutter=False)
        policy = _without_stopping(policy)
        device = _device(model)
        context = memory if lengths == 1 else memory.rows(torch.tensor([row for row, _ in rows], device=device))
        drawn = sample(
            model,
            x.to(device),
            Question(told.to(device), asked.to(device)),
            policy=policy,
            draw=draw,
            context=context,
            generator=torch.Generator(device).manual_seed(0),
            allow_untrained=True,
        )
        return [drawn.x[row * lengths, 1 : n + 1].tolist() for row, n in enumerate(wanted)]

    return run


def _without_stopping(policy: Any) -> Any:
    """The policy without its early stop, of all rows or of one by itself: every sentence takes all passes."""
    name = type(policy).__name__

    def never(self: object, state: State, question: Question) -> bool:
        return False

    def everyone(self: object, state: State, question: Question) -> None:
        return None

    return type(f"All{name}", (type(policy),), {"__slots__": (), "done": never, "going": everyone})(
        **{field: getattr(policy, field) for field in policy.__dataclass_fields__}
    )


def one_by_one(model: Model) -> System:
    """Greedy from the cache, as many words as asked for; END is not among them."""

    def run(sources: Sequence[Sequence[int]], wanted: Sequence[int]) -> list[list[int]]:
        device = _device(model)
        longest = max(wanted)
        x = torch.zeros(len(sources), longest, dtype=torch.long, device=device)
        asked = torch.arange(longest, device=device) < torch.tensor(wanted, device=device).unsqueeze(1)
        codes = torch.arange(model.likelihood.width, device=device)
        with model.evaluating():  # once for all words
            drawn = sample(
                model,
                x,
                Question(torch.zeros_like(asked), asked),
                policy=CachedChain(),
                draw=Restricted(temperature=0.0, forbidden=(codes == END).view(1, 1, -1)),
                context=padded(sources, device),
                generator=torch.Generator(device).manual_seed(0),
                allow_untrained=True,
            )
        return [drawn.x[row, :n].tolist() for row, n in enumerate(wanted)]

    return run


def _device(model: Model) -> torch.device:
    return next((one.device for one in model.parameters()), torch.device("cpu"))


def ctranslate2() -> Any:
    """The package; ValueError with what to install if it is not there."""
    return require_package("ctranslate2", "the latency peer", extra="translation")


def export_ctranslate2(model: Model, folder: Path, *, quantization: Literal["float32", "int8"] = "float32") -> None:
    """Write an autoregressive model's weights as a CTranslate2 model; codes become tokens "t0", "t1", …"""
    ctranslate2()
    specs: Any = importlib.import_module("ctranslate2.specs.transformer_spec")
    common: Any = importlib.import_module("ctranslate2.specs.common_spec")
    network = model.network
    if not isinstance(network, CausalDecoder):
        raise refuse("CTranslate2", expected="an autoregressive model", got=type(network).__name__)
    if network.headed:
        raise refuse("CTranslate2", expected="a model that reads the source alone", got="one with START in front of it")
    depths = (len(network.encoder), len(network.decoder))
    spec = specs.TransformerSpec.from_config(
        depths, network.heads, pre_norm=True, activation=common.Activation.RELU, rms_norm=True
    )
    state = {name: value.detach().float().numpy() for name, value in network.state_dict().items()}
    spec.encoder.embeddings[0].weight = spec.decoder.embeddings.weight = state["table.weight"]
    spec.decoder.projection.weight = state["table.weight"]
    for side in (spec.encoder, spec.decoder):
        side.scale_embeddings = True
        side.position_encodings.encodings = state["position.weight"]
    spec.encoder.layer_norm.gamma = state["encoder_norm.weight"]
    spec.decoder.layer_norm.gamma = state["decoder_norm.weight"]
    for name, layers in (("encoder", spec.encoder.layer), ("decoder", spec.decoder.layer)):
        for number, layer in enumerate(layers):
            at = f"{name}.{number}"
            _attention(layer.self_attention, state, f"{at}.attention", together=3)
            if name == "decoder":
                _attention(layer.attention, state, f"{at}.cross", together=2)
            layer.ffn.layer_norm.gamma = state[f"{at}.feed.norm.weight"]
            layer.ffn.linear_0.weight = state[f"{at}.feed.up.weight"]
            layer.ffn.linear_1.weight = state[f"{at}.feed.down.weight"]
    tokens = ["<unk>", "<s>", "</s>", *(f"t{code}" for code in range(3, network.codes))]
    spec.register_source_vocabulary(tokens)
    spec.register_target_vocabulary(tokens)
    spec.config.decoder_start_token = "<s>"
    spec.config.layer_norm_epsilon = EPS
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    folder.mkdir(parents=True, exist_ok=True)
    spec.save(str(folder))


def _attention(into: Any, state: dict[str, Any], at: str, *, together: int) -> None:
    """Fill an attention: its projections stacked (Q, K, V), or Q and (K, V) of cross-attention."""
    parts = [state[f"{at}.{name}.weight"] for name in ("query", "key", "value")]
    into.layer_norm.gamma = state[f"{at}.norm.weight"]
    if together == 3:
        into.linear[0].weight = np.concatenate(parts)
    else:
        into.linear[0].weight, into.linear[1].weight = parts[0], np.concatenate(parts[1:])
    into.linear[-1].weight = state[f"{at}.out.weight"]


def peer(model: Model, *, kind: Literal["float32", "int8"], beam: int, threads: int = 1) -> System:
    """The same weights in CTranslate2 on the CPU."""
    package = ctranslate2()
    with tempfile.TemporaryDirectory() as folder:
        export_ctranslate2(model, Path(folder), quantization=kind)
        translator = package.Translator(folder, device="cpu", compute_type=kind, inter_threads=1, intra_threads=threads)
    names = ["<unk>", "<s>", "</s>"]

    def token(code: int) -> str:
        return names[code] if code < 3 else f"t{code}"

    def code(word: str) -> int:
        return int(word[1:]) if word.startswith("t") else names.index(word)

    def run(sources: Sequence[Sequence[int]], wanted: Sequence[int]) -> list[list[int]]:
        made: list[list[int]] = []
        # Exact lengths are a setting of the whole call: sources of one length of target go together.
        for n in dict.fromkeys(wanted):
            own = [[token(code) for code in source] for source, size in zip(sources, wanted) if size == n]
            found = translator.translate_batch(
                own, beam_size=beam, min_decoding_length=n, max_decoding_length=n, max_batch_size=len(own)
            )
            made += [[code(word) for word in one.hypotheses[0]] for one in found]
        return made

    return run


@dataclass(frozen=True, slots=True)
class Timing:
    """Milliseconds of a sentence: wall and CPU time."""

    wall: tuple[float, ...]
    cpu: tuple[float, ...]

    def summary(self) -> dict[str, float]:
        """p50, p90 and p99 of both."""
        return {
            f"{name}_p{level}_ms": float(np.quantile(values, level / 100))
            for name, values in (("cpu", self.cpu), ("wall", self.wall))
            for level in (50, 90, 99)
        }


def timed(
    system: System, sources: Sequence[Sequence[int]], lengths: Sequence[int], *, batch: int = 1, warmup: int = 3
) -> Timing:
    """Milliseconds a sentence, ``batch`` of them at a time, after a few that do not count."""
    wall: list[float] = []
    cpu: list[float] = []
    for number, start in enumerate([0] * warmup + list(range(0, len(sources), batch))):
        some, wanted = sources[start : start + batch], lengths[start : start + batch]
        begun, spent = time.perf_counter(), time.process_time()
        system(some, wanted)
        if torch.cuda.is_available() and torch.cuda.is_initialized():
            torch.cuda.synchronize()
        if number >= warmup:
            wall.append(1e3 * (time.perf_counter() - begun) / len(some))
            cpu.append(1e3 * (time.process_time() - spent) / len(some))
    return Timing(tuple(wall), tuple(cpu))
