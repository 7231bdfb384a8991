"""Questions about actions alone, for methods that answer nothing else, and paths of one question for a specialist.

    given   the observation; the goal, if there is one, in half of the rows
    asked   all actions (behaviour cloning), or a uniform number of them (M of the paper's MAC)

``dropout`` leaves sensors out, each with a probability that is uniform for the row, in half of the rows. ``edges`` has
MAC's released loss: what is known on an edge of the paths is given, and all other actions are asked, nothing else.
"""

from dataclasses import dataclass

import torch
from torch import Generator

from anyfill.policy.layout import Blocks
from anyfill.questions import Edges, Question
from anyfill.questions.families import below, only, uniforms
from anyfill.questions.question import Family, Order, Questions


@dataclass(frozen=True, slots=True)
class ActionQuestions(Family):
    """p(actions | observation), see above.

    Attributes:
        blocks: how many variables of each group there are.
        subsets: ask a uniform number of actions, not all.
        dropout: leave sensors out.
        edges: known sets to ask all other actions after.
    """

    blocks: Blocks
    subsets: bool = False
    dropout: bool = False
    edges: Edges | None = None

    @property
    def variables(self) -> int:
        """N."""
        return self.blocks.variables

    @property
    def follows(self) -> Order | None:
        return None if self.edges is None else self.edges.follows

    def sample(self, batch: int, *, generator: Generator) -> Question:
        index = torch.arange(self.variables, device=generator.device)

        def members(group: str) -> torch.Tensor:
            place = self.blocks.place(group)
            return (index >= place.start) & (index < place.stop)

        action = members("action")
        if self.edges is not None:
            known = self.edges.sample(batch, generator=generator).given
            return Question(known, action & ~known)

        def uniform(columns: int) -> torch.Tensor:
            return uniforms(batch, columns, generator)

        given = members("observation") | (members("goal") & (uniform(1) < 0.5))
        if self.dropout:
            lost = (uniform(self.variables) < uniform(1)) & (uniform(1) < 0.5)
            given = given & ~(members("observation") & lost)
        asked = action.expand(batch, -1)
        if self.subsets:
            place = self.blocks.place("action")
            certain = only(place.start + below(self.blocks.action, batch, generator), self.variables)
            asked = (action & (uniform(self.variables) < uniform(1))) | certain
        return Question(given, asked)


@dataclass(frozen=True, slots=True)
class AlongPath(Family):
    """A uniform step of the path of a question, by index, and all that is still asked there: to train one question.

    Attributes:
        questions: whose asked variables are answered one after another.
    """

    questions: Questions

    @property
    def variables(self) -> int:
        """N."""
        return self.questions.variables

    def sample(self, batch: int, *, generator: Generator) -> Question:
        question = self.questions.sample(batch, generator=generator)
        place = question.asked.cumsum(1) - 1
        step = (uniforms(batch, 1, generator) * question.asked.sum(1, keepdim=True)).long()
        answered = question.asked & (place < step)
        return Question(question.given | answered, question.asked & ~answered)
