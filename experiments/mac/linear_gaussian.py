"""Every named question on a linear-Gaussian robot, where all answers are known in closed form.

    x ~ N(0, P)                       state, two numbers
    y = C x + v,       v ~ N(0, R)    a noisy sensor
    g ~ N(0, 1)                       a goal
    a = K x + L g + e, e ~ N(0, E)    the demonstrator's actions
    x' = A x + B a + w, w ~ N(0, W)   what comes of them

A row is [x, y | g | a | x']. With S = L L' + E the answers are, each by its own formula and none by conditioning the
joint covariance,

    policy    a | o        N(K x, S)
    goal      a | o, g     N(K x + L g, E)
    inverse   a | o, x'    N(J^-1 (S^-1 K x + B' W^-1 (x' - A x)), J^-1),   J = S^-1 + B' W^-1 B
    forward   x' | o, a    N(A x + B a, W)
    sensors   x | y        N(G y, (I - G C) P),   G = P C' (C P C' + R)^-1: the Kalman gain
    task      g | o, a     N(h L' E^-1 (a - K x), h),   h = 1 / (1 + L' E^-1 L)
    safe      a_1 | o, a_0 N((K x)_1 + S_10 / S_00 (a_0 - (K x)_0), S_11 - S_10² / S_00)

The script trains small models on draws from it and writes by how many nats per variable each question misses its own
entropy: 0 is exact.

    python -m experiments.mac.linear_gaussian
"""

import argparse
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.distributions import MultivariateNormal

from anyfill.policy import Columns, Demonstrations, Layout, PolicyModel
from anyfill.policy.questions import SEVEN
from anyfill.policy.settings import Settings
from anyfill.policy.training import prepared
from anyfill.questions import Question
from anyfill.rows import Rows
from benchmarks.common import write_result

COLUMNS = Columns(("x0", "x1", "y"), ("a0", "a1"), ("g",), (0, 1), ((),))


def _matrix(*rows: tuple[float, ...]) -> Tensor:
    return torch.tensor(rows, dtype=torch.float64)


@dataclass(frozen=True, slots=True)
class Robot:
    """The system above."""

    P: Tensor
    C: Tensor
    R: Tensor
    K: Tensor
    L: Tensor
    E: Tensor
    A: Tensor
    B: Tensor
    W: Tensor

    @classmethod
    def usual(cls) -> "Robot":
        return cls(
            P=_matrix((2.0, 0.6), (0.6, 1.0)),
            C=_matrix((1.0, -0.5)),
            R=_matrix((0.3,)),
            K=_matrix((-0.8, 0.2), (0.1, -0.5)),
            L=_matrix((1.0,), (-0.6,)),
            E=_matrix((0.4, 0.1), (0.1, 0.3)),
            A=_matrix((1.0, 0.3), (0.0, 0.9)),
            B=_matrix((0.5, 0.0), (0.2, 0.7)),
            W=_matrix((0.05, 0.01), (0.01, 0.08)),
        )

    def rows(self, count: int, *, generator: torch.Generator) -> Tensor:
        """float64 (count, 8): [x, y, g, a, x']."""

        def noise(covariance: Tensor) -> Tensor:
            drawn = torch.randn(count, len(covariance), dtype=torch.float64, generator=generator)
            return drawn @ torch.linalg.cholesky(covariance).T

        x, g = noise(self.P), noise(torch.eye(1, dtype=torch.float64))
        y = x @ self.C.T + noise(self.R)
        a = x @ self.K.T + g @ self.L.T + noise(self.E)
        return torch.cat([x, y, g, a, x @ self.A.T + a @ self.B.T + noise(self.W)], 1)

    def covariance(self) -> Tensor:
        """(8, 8): of a row, by the linear map from its independent noises."""
        factors = [self.P, self.R, torch.eye(1, dtype=torch.float64), self.E, self.W]
        widths = [len(one) for one in factors]
        noise = torch.block_diag(*[torch.linalg.cholesky(one) for one in factors])
        px, pv, pg, pe, pw = noise.split(widths)
        x, g = px, pg
        y, a = self.C @ x + pv, self.K @ x + self.L @ g + pe
        rows = torch.cat([x, y, g, a, self.A @ x + self.B @ a + pw])
        return rows @ rows.T

    def answer(self, name: str, row: Tensor) -> MultivariateNormal:
        """p(asked | given) of rows (B, 8)."""
        x, y, g, a, after = row.split([2, 1, 1, 2, 2], 1)
        policy = x @ self.K.T
        spread = self.L @ self.L.T + self.E
        match name:
            case "policy":
                return MultivariateNormal(policy, spread)
            case "goal":
                return MultivariateNormal(policy + g @ self.L.T, self.E)
            case "inverse":
                precision, told = spread.inverse(), self.W.inverse()
                total = precision + self.B.T @ told @ self.B
                pull = policy @ precision + (after - x @ self.A.T) @ told @ self.B
                return MultivariateNormal(pull @ total.inverse(), precision_matrix=total)
            case "forward":
                return MultivariateNormal(x @ self.A.T + a @ self.B.T, self.W)
            case "sensors":
                gain = self.P @ self.C.T @ (self.C @ self.P @ self.C.T + self.R).inverse()
                return MultivariateNormal(y @ gain.T, (torch.eye(2, dtype=torch.float64) - gain @ self.C) @ self.P)
            case "task":
                weight = self.E.inverse() @ self.L
                left = 1.0 / (1.0 + self.L.T @ weight)
                return MultivariateNormal((a - policy) @ weight @ left, left)
            case _:
                slope = spread[1, 0] / spread[0, 0]
                mean = policy[:, 1:] + slope * (a[:, :1] - policy[:, :1])
                return MultivariateNormal(mean, (spread[1, 1] - slope * spread[1, 0]).reshape(1, 1))


def question_of(model: PolicyModel, name: str) -> Question:
    """The question as it is asked of a model of these rows."""
    how = {"sensors": {"missing": ("x0", "x1")}, "safe": {"held": ("a0",)}}.get(name, {})
    return model.question(name, **how)


def demonstrations(robot: Robot, count: int, *, seed: int) -> Demonstrations:
    """Trajectories of two steps whose first step is a row: what follows comes of it."""
    row = robot.rows(count, generator=torch.Generator().manual_seed(seed)).float().numpy()
    both = np.stack([row[:, :3], np.concatenate([row[:, 6:], np.full((count, 1), np.nan)], 1)], 1).reshape(-1, 3)
    nothing = np.full_like(row[:, 3:6], np.nan)
    rest = np.stack([row[:, 3:6], nothing], 1).reshape(-1, 3)
    length = np.full(count, 2, dtype=np.int64)
    return Demonstrations(COLUMNS, both.astype(np.float32), rest[:, 1:], rest[:, :1], length, "robot")


def excess(robot: Robot, model: PolicyModel, *, count: int = 4000, seed: int = 99) -> dict[str, float]:
    """For each question the nats per variable beyond those of the closed form, on fresh rows."""
    rows = robot.rows(count, generator=torch.Generator().manual_seed(seed))
    values = model.layout.standardise(rows)
    found: dict[str, float] = {}
    for name in SEVEN:
        asked = question_of(model, name)
        nats, _ = model.nats_of(Rows.from_values(values), asked)
        wanted = asked.asked[0]
        unit = float(model.layout.log_scale[wanted].mean())
        exact = -robot.answer(name, rows).log_prob(rows[:, wanted]).mean() / int(wanted.sum())
        found[name] = nats + unit - float(exact)
    return found


def trained(robot: Robot, method: str, *, steps: int, count: int, width: int, seed: int) -> PolicyModel:
    """A small model of draws from the robot."""
    settings = Settings(
        method=method, steps=steps, width=width, depth=2, components=2, batch=512, learning_rate=2e-3, valid_share=0.1
    )
    run = prepared(demonstrations(robot, count, seed=seed), settings)
    return run.fit(None)[0]


def exact_layout() -> Layout:
    """Rows in units of their own, so that standardising is part of what is tested."""
    return Layout(COLUMNS, center=(1.0, -2.0, 0.5, 0.0, 0.3, -0.1), scale=(2.0, 0.5, 3.0, 1.5, 0.7, 1.2))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=3000)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--name", default="mac/linear_gaussian", help="of the results file")
    options = parser.parse_args()
    robot = Robot.usual()
    found = {}
    for method in ("joint", "one-pass"):
        width = options.width if method == "joint" else max(32, options.width // 2)
        model = trained(robot, method, steps=options.steps, count=options.count, width=width, seed=options.seed)
        found[method] = excess(robot, model)
        print(method, {name: round(value, 4) for name, value in found[method].items()}, flush=True)
        write_result(options.name, {"options": vars(options), "excess_nats_per_variable": found})


if __name__ == "__main__":
    main()
