"""Given / ask: condition a model on what is known, then sample it, score it, summarise it, ask what to measure next.

    answer = model.given(x)            # NaN = not known
    answer.sample(5)                   # five joint draws of everything unknown
    answer.mean(), answer.interval(0.9), answer.mode()      # of each unknown variable's own conditional, one pass
    answer.log_prob(other)             # log p(other's values of the unknown | given)
    answer.posterior()                 # likely answers by Bayes' rule from log p of whole rows, and what others have
    answer.information(target=3)       # nats that each other unknown variable is expected to tell about variable 3

Summaries are of p(x_j | given) for each unknown j by itself; joint questions need ``sample`` or ``log_prob``. For
discrete variables ``mean`` is the expected code, which says something about ordered values only; ``mode`` is the
likeliest value and ``interval`` is made of codes. All of it is answered only as far as the model was trained for it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, Literal, TypedDict, Unpack

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, refuse_cells, require_bool, require_count, require_keywords, require_shape
from anyfill.evaluation.acquire import Information, information
from anyfill.evaluation.chain import LogProb, log_prob, rows_in_a_pass
from anyfill.evaluation.posterior import Posterior, posterior
from anyfill.likelihoods.marginals import Marginals
from anyfill.likelihoods.mixed import code_sizes, marginals_at
from anyfill.model import Model
from anyfill.questions.question import Factorization, Question
from anyfill.questions.supported import step_factorization, untrained
from anyfill.samplers.cached import Opened
from anyfill.samplers.draw import Draw
from anyfill.samplers.loop import sample
from anyfill.samplers.policy import Sampler


class DrawOptions(TypedDict, total=False):
    """Where chance comes from, and how many rows go through the network at once.

    Attributes:
        seed, generator: one of them makes the draws repeatable; by default torch's global seed does.
        rows_per_pass: most rows in one call of the network.
    """

    seed: int | None
    generator: Generator | None
    rows_per_pass: int | None


@dataclass(frozen=True, slots=True, eq=False)
class Conditional:
    """p(. | given) for B rows; made by ``Conditional.on`` or ``model.given``.

    Attributes:
        model: what answers.
        x: values (B, N), 0 where not known; int64 if every variable is discrete, else floating point.
        known: bool (B, N), True = given.
        context: optional side information (B, ...).
    """

    model: Model
    x: Tensor
    known: Tensor
    context: Tensor | None = None

    @classmethod
    def on(cls, model: Model, x: Tensor, known: Tensor | None = None, context: Tensor | None = None) -> "Conditional":
        """Condition on values.

        Args:
            model: what answers.
            x: values (B, N), or (N,) for one row; NaN = not known. Any device: it is moved to the model's.
            known: bool, same shape, True = given; by default every value that is not NaN.
            context: optional side information (B, ...).
        """
        x, known = _one_or_more_rows(model, x, known)
        model.check_given(x, known)
        if context is not None and (context.dim() == 0 or len(context) != len(x)):
            raise refuse("context", expected=f"one entry for each of {len(x)} rows", got=tuple(context.shape))
        sizes = code_sizes(model.likelihood, model.variables)
        dtype = torch.int64 if bool((sizes > 0).all()) else x.dtype if x.is_floating_point() else torch.float32
        x = torch.where(known, x, torch.zeros_like(x)).to(dtype)
        device = next(chain(model.parameters(), model.buffers()), x).device
        return cls(model, x.to(device), known.to(device), None if context is None else context.to(device))

    @property
    def unknown(self) -> Tensor:
        """bool (B, N): everything that is not given."""
        return ~self.known

    def sample(
        self,
        n: int = 1,
        *,
        asked: Tensor | None = None,
        draw: Draw | None = None,
        policy: Sampler | None = None,
        allow_untrained: bool = False,
        **options: Unpack[DrawOptions],
    ) -> Tensor:
        """(n, B, N): n joint draws of the asked variables beside the given values.

        Args:
            n: how many draws per row.
            asked: bool (N,) or (B, N); by default everything unknown. The rest is NaN in the answer, or -1 for codes.
            draw: temperature, top-k, nucleus, typical.
            policy: how to decode; by default exactly, one by one in the model's order.
            allow_untrained: True = use conditionals that the model was not trained on.
            options: seed or generator, and rows_per_pass, see ``DrawOptions``.
        """
        require_count("n", n)
        require_keywords(options, DrawOptions)
        size = rows_in_a_pass(self.model, options.get("rows_per_pass"))
        question = Question(self.known, self._asked(asked))
        rows = torch.arange(len(self.x), device=self.x.device).repeat(n)
        source = _generator(options)
        drawn = self.x.new_empty(len(rows), self.x.shape[1])
        for begin in range(0, len(rows), size):
            part = rows[begin : begin + size]
            drawn[begin : begin + size] = sample(
                self.model,
                self.x[part],
                Question(question.given[part], question.asked[part]),
                policy=policy,
                draw=draw,
                context=None if self.context is None else self.context[part],
                generator=source,
                allow_untrained=allow_untrained,
            ).x
        nothing = torch.nan if drawn.is_floating_point() else -1
        return torch.where(question.ignored, nothing, drawn.reshape(n, *self.x.shape)).to(self.x.dtype)

    def log_prob(
        self,
        values: Tensor,
        asked: Tensor | None = None,
        *,
        factorization: Factorization | str | None = None,
        orders: int | None = None,
        estimator: Literal["estimate", "bound"] = "estimate",
        **options: Unpack[DrawOptions],
    ) -> LogProb:
        """log p(asked values | given), each of (B,), or (n, B) for values (n, B, N) as ``sample`` returns them.

        Args:
            values: (N,), (B, N) or (n, B, N), read where asked. Without ``asked``, a value where one is given must be
                the same.
            asked: bool (N,) or (B, N); by default everything unknown that has a value (not NaN, and not -1 for codes).
            factorization, orders, estimator: as for ``anyfill.evaluation.log_prob``.
            options: seed or generator, for shuffled orders, and rows_per_pass, see ``DrawOptions``.
        """
        require_keywords(options, DrawOptions)
        rows, times = self._rows_of(values)
        given, wanted = self.known.repeat(times, 1), self._asked(asked).repeat(times, 1)
        given_x = self.x.repeat(times, 1)
        if asked is None:
            named = ~rows.isnan() if self.x.is_floating_point() else ~rows.isnan() & (rows != -1)
            refuse_cells(given & named & (rows.to(given_x.dtype) != given_x), rows, "the value that is given, or none")
            wanted &= named
        refuse_cells(wanted & ~rows.isfinite(), rows, "a finite number where asked")
        rows = torch.where(wanted, rows, torch.zeros_like(rows))
        if not self.x.is_floating_point():
            rows = torch.where(rows == rows.round(), rows, -2)  # a fraction is no code: impossible, not rounded
        rows = rows.to(self.x.dtype)
        answer = log_prob(
            self.model,
            torch.where(given, given_x, rows),
            Question(given, wanted),
            factorization=factorization,
            orders=orders,
            estimator=estimator,
            context=None if self.context is None else self.context.repeat(times, *[1] * (self.context.dim() - 1)),
            generator=None if orders is None else _generator(options),
            rows_per_pass=options.get("rows_per_pass"),
        )
        if values.dim() < 3:
            return answer
        shape = values.shape[:2]
        return replace(answer, value=answer.value.reshape(shape), stderr=answer.stderr.reshape(shape))

    def marginals(
        self,
        asked: Tensor | None = None,
        *,
        cells: tuple[Tensor, Tensor] | None = None,
        opened: Opened | None = None,
    ) -> Marginals:
        """p(x_j | given) for every unknown j, each on its own, in one pass; meaningless at given variables.

        Args:
            asked: bool (B, N), those of them that matter; the others' answers may be meaningless as well.
            cells: (row, variable), each (H,): the answers (H, 1) about these alone, which may be far cheaper.
            opened: these very rows, if what is given has been read already; with cells, of a network that ``Foresees``.
        """
        model = self.model
        if cells is not None:
            asked = torch.zeros_like(self.known).index_put(cells, torch.tensor(True, device=self.known.device))
        question = Question(self.known, self.unknown if asked is None else asked & self.unknown)
        if step_factorization(model.factorizations, question, model.order, order=model.order, parallel=True) is None:
            raise untrained(model.factorizations, "p(x_j | given) for each unknown variable by itself")
        # Only a random order or a corruption that shows noise takes a draw; else torch's own state is left alone.
        chance = model.corruption.shows_unknown or model.order.random
        source = _generator({}) if chance else None
        with model.evaluating():
            shown = model.corruption.fill(self.x, self.known, generator=source)
            rank = model.known_rank(self.known, generator=source) if model.is_one_pass else None
            if cells is None:
                return model.likelihood(model.params(shown, self.known, rank=rank, context=self.context))
            if opened is None and rank is not None:
                return model.chain_at(self.x, rank, cells, self.context)
            if opened is not None:
                params = opened.foreseen(*cells)
            else:
                params = model.params(shown, self.known, context=self.context, cells=cells)
            return marginals_at(model.likelihood, params.unsqueeze(1), cells[1].unsqueeze(1))

    def mean(self) -> Tensor:
        """(B, N) floating point: the expected value (code) of each unknown variable; given values as they are."""
        mean = self.marginals().mean()
        return torch.where(self.known, self.x.to(mean.dtype), mean)

    def mode(self) -> Tensor:
        """(B, N): the likeliest value of each unknown variable by itself; given values as they are."""
        return torch.where(self.known, self.x, self.marginals().mode().to(self.x.dtype))

    def interval(self, level: float = 0.9) -> tuple[Tensor, Tensor]:
        """(B, N) each: the central interval of each unknown variable, its quantiles (1 - level)/2 and (1 + level)/2.

        Given values are their own interval. The interval of a discrete variable is made of codes and holds at least
        ``level``.
        """
        if isinstance(level, bool) or not 0.0 < level < 1.0:
            raise refuse("level", expected="a number between 0 and 1", got=repr(level))
        marginals = self.marginals()
        low, high = (marginals.quantile(q).to(self.x.dtype) for q in ((1 - level) / 2, (1 + level) / 2))
        return torch.where(self.known, self.x, low), torch.where(self.known, self.x, high)

    def posterior(
        self,
        asked: Tensor | None = None,
        *,
        width: int = 128,
        keep: int = 512,
        draws: int = 16,
        allowed: Tensor | None = None,
        **options: Unpack[DrawOptions],
    ) -> list[Posterior]:
        """p(asked | given) of each row by Bayes' rule: p(given, answer) of likely answers, and what all others have.

        A network answers directly, in ``sample`` and ``log_prob``, and may contradict its own log p of whole rows; this
        agrees with it. For one-pass models in increasing order, with codes.

        Args:
            asked: bool (N,) or (B, N); by default everything unknown.
            width, keep, draws, allowed: how widely to look, see ``anyfill.evaluation.posterior``.
            options: seed or generator, see ``DrawOptions``.
        """
        require_keywords(options, DrawOptions)
        if self.context is not None or options.get("rows_per_pass") is not None:
            got = "context" if self.context is not None else "rows_per_pass"
            raise refuse("posterior", expected="rows without context, read one after another", got=got)
        source, wanted = _generator(options), self._asked(asked)
        how: dict[str, Any] = {"width": width, "keep": keep, "draws": draws, "allowed": allowed, "generator": source}
        rows = range(len(self.x))
        parts = ((self.x[n : n + 1], Question(self.known[n : n + 1], wanted[n : n + 1])) for n in rows)
        return [posterior(self.model, x, question, **how) for x, question in parts]

    def information(
        self, target: int | Sequence[int], *, samples: int = 100, **options: Unpack[DrawOptions]
    ) -> Information:
        """I(target; x_j | given) for each other unknown variable j, in nats: see ``anyfill.evaluation.acquire``.

        Args:
            target: the variable (or variables) to learn about; unknown in every row.
            samples: M, how many joint draws it is estimated from, at least 2.
            options: seed or generator, and rows_per_pass, see ``DrawOptions``.
        """
        wanted = torch.zeros_like(self.known)
        for variable in [target] if isinstance(target, int) else target:
            if not 0 <= variable < self.model.variables:
                raise refuse("target", expected=f"variables from 0 to {self.model.variables - 1}", got=variable)
            if bool(self.known[:, variable].any()):
                raise refuse("target", expected="variables that are unknown in every row", got=f"{variable}, given")
            wanted[:, variable] = True
        drawn = self.sample(samples, **options)
        size = options.get("rows_per_pass")
        return information(self.model, drawn, self.known, wanted, context=self.context, rows_per_pass=size)

    def _asked(self, asked: Tensor | None) -> Tensor:
        """bool (B, N): what is asked, everything unknown by default; ValueError where it is given."""
        if asked is None:
            return self.unknown
        require_bool("asked", asked)
        if tuple(asked.shape) not in (tuple(self.x.shape[1:]), tuple(self.x.shape)):
            expected = f"{tuple(self.x.shape[1:])} or {tuple(self.x.shape)}"
            raise refuse("shape of asked", expected=expected, got=tuple(asked.shape))
        wanted = asked.to(self.x.device).expand(self.x.shape)
        return Question(self.known, wanted).checked().asked

    def _rows_of(self, values: Tensor) -> tuple[Tensor, int]:
        """(n * B, N), and n, from values (N,), (B, N) or (n, B, N)."""
        shape = tuple(values.shape)
        if shape not in (self.x.shape[1:], self.x.shape) and not (values.dim() == 3 and shape[1:] == self.x.shape):
            raise refuse("shape of values", expected=f"(..., {', '.join(map(str, self.x.shape))})", got=shape)
        rows = values.to(self.x.device)
        rows = rows.expand(self.x.shape) if rows.dim() < 3 else rows.reshape(-1, self.x.shape[1])
        return rows, shape[0] if len(shape) == 3 else 1


def _generator(options: DrawOptions) -> Generator:
    """The caller's generator, one from the caller's seed, or one from torch's global state."""
    seed, generator = options.get("seed"), options.get("generator")
    if generator is not None:
        if seed is not None:
            raise refuse("seed and generator", expected="one of them", got="both")
        return generator
    return torch.Generator().manual_seed(int(torch.randint(2**62, ())) if seed is None else seed)


def _one_or_more_rows(model: Model, x: Tensor, known: Tensor | None) -> tuple[Tensor, Tensor]:
    """x and known as (B, N), checked for shape and dtype."""
    if not isinstance(x, Tensor):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise refuse("x", expected="a torch tensor", got=type(x).__name__)
    if x.dtype.is_complex or x.dtype == torch.bool:
        raise refuse("dtype of x", expected="an integer or floating-point type", got=x.dtype)
    if known is not None:
        require_bool("known", known)
        require_shape("known", known, tuple(x.shape))
    if x.dim() == 1:
        x, known = x.unsqueeze(0), None if known is None else known.unsqueeze(0)
    require_shape("x", x, (None, model.variables))
    return x, ~x.isnan() if known is None else known.to(x.device)
