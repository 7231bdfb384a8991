"""DDPM's simple loss (Ho et al. 2020, eq. 14): say which noise was added.

    x_t = sqrt(a_t) x + sqrt(1 - a_t) e,    e ~ N(0, I),  t uniform        loss = - log N(e; e^(x_t, t), I)

which is half the squared error and a constant, N/2 log 2 pi. a_t is the product of the schedule's 1 - beta. The network
sees all of x_t as known and gets t, on a scale from 0 to 1000, as its context. No chain of conditionals is trained:
completing a picture is the sampler's affair (``anyfill.samplers.RePaint``), and there are no log-probabilities.
"""

from dataclasses import dataclass, field
from functools import cache

import torch
from torch import Generator, Tensor

from anyfill.checks import refuse, require_count
from anyfill.corruption import NoiseSchedule
from anyfill.model import Model
from anyfill.objectives.objective import Objective
from anyfill.rows import Rows


@dataclass(frozen=True, slots=True)
class DenoisingLoss(Objective):
    """Nats of the noise in a row.

    Attributes:
        variables: N.
        schedule: how much noise there is at each time.
    """

    variables: int
    schedule: NoiseSchedule = field(default_factory=NoiseSchedule)

    def __post_init__(self) -> None:
        require_count("variables", self.variables)

    def sample_rank(self, batch: int, *, generator: Generator) -> Tensor:
        """Everything is asked at once."""
        return torch.zeros(batch, self.variables, dtype=torch.int64, device=generator.device)

    def loss(self, model: Model, rows: Rows, rank: Tensor, *, generator: Generator | None = None) -> Tensor:
        if generator is None:
            raise refuse("generator", expected="one, for times and noise", got="none")
        x = rows.x.float()
        kept = _kept(self.schedule, x.device)
        time = torch.randint(len(kept), (len(x),), generator=generator, device=generator.device).to(x.device)
        noise = torch.randn(x.shape, generator=generator, device=generator.device).to(x.device)
        share = kept[time].to(x.dtype).unsqueeze(1)
        noisy = share.sqrt() * x + (1 - share).sqrt() * noise
        told = self.schedule.told(time)
        answer = model.likelihood(model.network(noisy, torch.ones_like(rows.present), told))
        return -torch.where(rows.present, answer.log_prob(noise), 0.0).sum(1)


@cache
def _kept(schedule: NoiseSchedule, device: torch.device) -> Tensor:
    """What is kept of a row at each time, brought to a device once: a copy in every step would make it wait."""
    return schedule.kept().to(device)
