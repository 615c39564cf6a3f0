from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any, Literal, Self, get_args

from separatrix.core.errors import SpecError
from separatrix.core.numbers.counts import Count
from separatrix.core.numbers.lazy import np
from separatrix.tasks.base.layout import Layout
from separatrix.tasks.base.task import Around, Batch, Task, Tokens
from separatrix.tasks.seqcomp import Functions

Form = Literal["values", "pairs"]
Law = tuple[tuple[range, Fraction], ...]


class Thought(Around):
    """Chain of thought: a composition task whose answer is written step by step.

        seqcomp:L=3 with chain i_1, i_2, i_3 after a prompt of n tokens, z_0 and w last:

        thought=values   position   0   ...   n-1   n     n+1
                         input      z_3       w     i_1   i_2
                         target     .   .     i_1   i_2   i_3

        thought=pairs    position   0   ...   n-1       n         n+1       n+2
                         input      z_3       w         (w,z_0)   (w,i_1)   (w,i_2)
                         target     .   .     (w,z_0)   (w,i_1)   (w,i_2)   i_3

    values: the chain's values, as tokens of the prompt's vocabulary. pairs (seqcomp and
    seqcomp-forward): each value before the answer together with w, as one token, z_0 first: L
    tokens. (w, value) has the id v + w N_{L-2} + value, where v is the number of ids of the prompt
    (with N_0 for N_{L-2} if L = 1). One layer is enough then; from i_l alone its next query could
    not know w_l. In training what is written stands in the input; a model that answers by itself
    writes each token after the ones before.

    Drawn: The prompt is drawn as the task draws it; what is written behind it follows from it.

    Counted: Those of the task: what is written is a function of the prompt.

    From: theory.md, sections 3 and 6 (Theorem I holds with what is written; one layer is enough
    then)
    """

    name = "thought"
    title = "the chain of a composition task, value by value, then the answer"
    usage = (
        "thought=values|pairs beside the sizes of a composition task (pairs: seqcomp,"
        " seqcomp-forward)"
    )
    source = "theory.md, sections 3 and 6"
    several = True
    stepwise = True
    due = "due after the prompt's last token and after every written token; the loss is taken there"

    form: Form = "values"

    # levels are those of the answer with the chain hidden: a value of the chain is one step from
    # what stands before it, and no test of shortcuts

    def __post_init__(self) -> None:
        """Raises SpecError for a task without a chain or pairs, UnknownNameError for a form."""
        self._known("form", self.form, get_args(Form))
        if not self.task.thoughts:
            raise SpecError(
                f"{self.task.name}: there is no chain of values to write; leave"
                f" thought={self.form} out"
            )
        if self.form not in self.task.thoughts:
            raise SpecError(
                f"{self.task.name}: there is no w to pair the chain's values with; write"
                " thought=values"
            )

    @property
    def _functions(self) -> Functions:
        assert isinstance(self.task, Functions)
        return self.task

    @classmethod
    def from_sizes(cls, sizes: dict[str, Any]) -> Self:
        raise SpecError(f"a chain of thought is written as {cls.usage}, not as a task of its own")

    def _own(self) -> dict[str, Any]:
        return {"thought": self.form}

    @property
    def written(self) -> int:
        """Tokens between the prompt and the answer: steps - 1 values, or L pairs."""
        return self.task.steps - (self.form == "values")

    def layout(self) -> Layout:
        """The task's, with its answers and pairs as tokens behind the prompt."""
        ids = {"": max(self.task.vocabulary, self.task.answers)}
        if self.form == "pairs":
            w = self._functions.branching[:-1]
            pair = f"pair of w, counted by {w}, and one of {self._values} values"
            ids |= {pair: self._functions.w_values * self._values}
        length = self.task.length + self.written
        own: dict[str, Any] = {"steps": 0, "parts": {}, "written": {}, "spelling": ""}
        return self.task.layout()._replace(length=length, ids=ids, answers=ids, **own)

    @property
    def token_ids(self) -> dict[str, range]:
        """Those of the task and of its answers, which are tokens here, then the pairs."""
        own = self.task.token_ids | self.task.answer_ids
        return own | {kind: ids for kind, ids in super().token_ids.items() if kind}

    @property
    def answer_ids(self) -> dict[str, range]:
        return self.token_ids

    @property
    def _values(self) -> int:
        """Of pairs, the number of different values: N_{L-2}, or m where L = 1."""
        return self._functions.N(max(self._functions.L - 2, 0))

    def pair(self, w: Tokens, value: Tokens) -> Tokens:
        """Ids of the tokens (w, value)."""
        return self.task.vocabulary + w * self._values + value

    @property
    def chance(self) -> Fraction:
        """Of the best constant answer, at a uniform one of the places where one is due; exact."""
        laws = list(self._laws())
        ids = {part.start for law in laws for part, _ in law}  # where shares change, going up
        return max(
            sum((share for law in laws for part, share in law if guess in part), Fraction(0))
            for guess in ids
        ) / len(laws)

    def _laws(self) -> Iterator[Law]:
        """The probability of every id at each place where an answer is due."""
        if self.form == "values":
            yield from (self.task.law(step) for step in range(1, self.task.steps + 1))
            return
        task = self._functions
        first = self.task.vocabulary
        for step in range(task.L):
            values = task.law(step) if step else ((range(task.m), Fraction(1, task.m)),)
            # w is uniform; of each w the values stand in the same order, so that w = 0 shows every
            # share
            yield tuple(
                (range(first + part.start, first + part.stop), share / task.w_values)
                for part, share in values
            )
        yield task.law(task.L)

    @property
    def asked(self) -> Task:
        return self.task

    @property
    def definition(self) -> str:
        """And what the ids of pairs are."""
        if self.form == "values":
            return super().definition
        first = self.task.vocabulary
        values = self._values
        return (
            f"{super().definition}\n\nThe id of a pair is vocabulary + w * values + value: here"
            f" {first} + {values} w + value, where {first} is the number of ids that the prompt may"
            f" hold, w the token w, and value from 0 to {values - 1}. Asked in words, the chain is"
            " written as plain values."
        )

    @property
    def cited(self) -> str:
        return f"{self.task.cited}; {self.source}"

    def prompts(self) -> Count:
        """What is written follows from the prompt."""
        return self.task.prompts()

    def draw(self, batch: int, rng: np.random.Generator) -> Batch:
        return self._instance(self.task.draw(batch, rng).tokens)

    def answer(self, tokens: Tokens) -> Tokens:
        """NO_ANSWER in the prompt, then its chain. Raises SizeError for another chain."""
        tokens = self._checked(tokens)
        right = self._instance(tokens[:, : self.task.length])
        if (right.tokens != tokens).any():
            raise self.refused(
                f"the {self.written} tokens after the prompt are not the chain of their values"
            )
        return right.targets

    def due_after(self, prompts: Tokens) -> Tokens:
        """What is written behind prompts, then the answer: (batch, written + 1), or SizeError."""
        return self._instance(prompts).targets[:, self.task.length - 1 :]

    def _instance(self, prompts: Tokens) -> Batch:
        """Prompts with their chain behind them. Raises SizeError for no prompts of the task."""
        chain = self.task.chain(prompts)
        assert chain is not None
        if self.form == "pairs":
            task = self._functions
            before = np.column_stack((prompts[:, task.position_z0], chain[:, :-1]))
            chain = np.column_stack(
                (self.pair(prompts[:, task.position_w, None], before), chain[:, -1])
            )
        targets = self.targets(len(prompts), slice(self.task.length - 1, None), chain)
        return Batch(np.concatenate((prompts, chain[:, :-1]), axis=1), targets)
