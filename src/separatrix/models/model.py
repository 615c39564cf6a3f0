"""Architecture -> `nn.Module`: one plain residual stack for training, constructions and witnesses
alike. Hybrids live here, and only here.

x = token embedding + position embedding, if there is one  (b, t, w)
per layer:  x = x + sum over its heads of mixer(norm(x));  x = x + MLP(norm(x))
logits = head(norm(x_last))                                (b, answers)
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields
from typing import Any

import torch
import torch.nn.functional as F
from jaxtyping import Float, Int
from torch import Tensor, nn

from separatrix.core.errors import DriftWarning, SizeError, SpecError
from separatrix.mixers import Mixer, State, mixer
from separatrix.mixers.base.mixer import DTYPES, check_places, fan_in_normal, taken, traced
from separatrix.stacks.architecture import Architecture
from separatrix.stacks.architecture.resolve import Stack, stack_of
from separatrix.tasks import task_of
from separatrix.tasks.base.task import Task

MOST_SIZE = 1 << 40
"""Largest size in a model's description."""
MOST_NUMBERS = 1 << 31
"""Most numbers in a model's embeddings and head together."""
LONG = 1 << 22
"""Numbers in the embeddings of a prompt from which on a single layer reads it in blocks."""
BLOCK = 1 << 18
"""Numbers in the embeddings of one block."""
Cache = list[list[State]]
"""Per layer, per kind of heads: the state its mixer carries."""


@dataclass(frozen=True, kw_only=True)
class ModelConfig:
    """Everything that shapes a model. Raises SizeError for a size below its minimum."""

    architecture: str
    """Spec text."""
    vocabulary: int
    length: int
    """Longest prompt, without the start token."""
    answers: int
    width: int
    hidden: int
    """Hidden units of each MLP; 0 for none."""
    norm: bool
    """RMS norms before every part, or none."""
    bos: bool
    """Whether a start token stands before the prompt."""
    asks: bool = False
    """Whether a token of its own stands behind the prompt, and asks: wherever logits are given
    after a token of the prompt, it is read behind that token.
    """

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            low = 0 if f.name == "hidden" else 1
            # annotations are texts here; a bool is an int to isinstance, but no size
            if f.type == "int" and (type(value) is not int or not low <= value <= MOST_SIZE):
                raise SizeError(
                    f"model {f.name} is {value!r}; it must be an integer from {low} to 2^40"
                )
        # 4: a row for either token beside the prompt in each table of embeddings
        tables = (self.vocabulary + self.length + self.answers + 4) * self.width
        if tables > MOST_NUMBERS:
            raise SizeError(
                f"the model's tables would hold {tables:,} numbers; at most {MOST_NUMBERS:,}: use a"
                " smaller n or width"
            )

    def to_json(self) -> dict[str, Any]:
        """`asks` is named where it is true."""
        own = asdict(self)
        return own if self.asks else {k: value for k, value in own.items() if k != "asks"}

    @classmethod
    def from_json(cls, data: Any) -> ModelConfig:
        """Inverse of `to_json`. Raises SpecError for missing, unknown or mistyped fields."""
        names = {f.name: f.type for f in fields(cls)}
        if not isinstance(data, dict) or set(data) | {"asks"} != set(names):
            raise SpecError(f"a model description has exactly the fields {', '.join(names)}")
        data = {"asks": False} | data
        for name, kind in names.items():
            if type(data[name]).__name__ != kind:
                raise SpecError(f"model {name} is {data[name]!r}; it must be of type {kind}")
        return cls(**data)


class MLP(nn.Module):
    """Position-wise: W_2 relu(W_1 x + b_1) + b_2."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.up = nn.Linear(width, hidden)
        self.down = nn.Linear(hidden, width)

    def forward(self, x: Float[Tensor, "*b w"]) -> Float[Tensor, "*b w"]:
        # in place where no gradient is asked for: of a view, that would cost copies
        return self.down(F.relu(self.up(x), inplace=not torch.is_grad_enabled()))


class Block(nn.Module):
    """One layer: its mixers side by side (head-wise), then the MLP, each added to the residual
    stream.
    """

    def __init__(self, mixers: list[Mixer], config: ModelConfig) -> None:
        super().__init__()
        self.mixers = nn.ModuleList(mixers)
        self.norm1 = nn.RMSNorm(config.width) if config.norm else nn.Identity()
        self.norm2 = nn.RMSNorm(config.width) if config.norm else nn.Identity()
        self.mlp = MLP(config.width, config.hidden) if config.hidden else None

    def _mixers(self) -> list[Mixer]:
        return [m for m in self.mixers if isinstance(m, Mixer)]

    def _after(self, x: Tensor, reads: Iterable[Tensor]) -> Tensor:
        """The tokens x behind the layer, whose mixers read these."""
        for y in reads:
            x = x + y
        return x if self.mlp is None else x + self.mlp(self.norm2(x))

    def forward(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b t w"]:
        # heads side by side read the same input, not what the ones before them added
        normed = self.norm1(x)
        return self._after(x, (part(normed) for part in self._mixers()))

    def last(self, x: Float[Tensor, "b t w"]) -> Float[Tensor, "b w"]:
        """`forward(x)[:, -1]`, computed for that token only."""
        normed = self.norm1(x)
        # mixers read every token; the residual and the MLP are needed for the last alone
        return self._after(x[:, -1], (part.last(normed) for part in self._mixers()))

    def reads_blocks(self) -> bool:
        """Whether every mixer can take the tokens block by block."""
        return all(part.reads_blocks for part in self._mixers())

    def last_of_blocks(
        self, x: Float[Tensor, "b 1 w"], blocks: Callable[[], Iterator[Tensor]], tokens: int
    ) -> Float[Tensor, "b w"]:
        """`last` of so many tokens, x the last of them, which come in blocks."""
        normed = self.norm1(x)
        reads = (
            part.last_of_blocks(normed, map(self.norm1, blocks()), tokens)
            for part in self._mixers()
        )
        return self._after(x[:, 0], reads)

    def at(self, x: Float[Tensor, "b t w"], places: Int[Tensor, "b k"]) -> Float[Tensor, "b k w"]:
        """`forward(x)` gathered at the places, computed for these only."""
        normed = self.norm1(x)
        return self._after(taken(x, places), (part.at(normed, places) for part in self._mixers()))

    def step(
        self, x: Float[Tensor, "b w"], states: list[State], t: int
    ) -> tuple[Float[Tensor, "b w"], list[State]]:
        normed = self.norm1(x)
        each = zip(self._mixers(), states, strict=True)
        steps = [part.step(normed, state, t) for part, state in each]
        return self._after(x, (y for y, _ in steps)), [state for _, state in steps]


class NoPositions(nn.Module):
    """Stands where position embeddings would, in a stack without them: zeros, and no parameter."""

    weight: Tensor

    def __init__(self, tokens: int, width: int) -> None:
        super().__init__()
        # one number seen everywhere, also where weights are made without memory, to be loaded
        zero = torch.zeros((), device="cpu")
        self.register_buffer("weight", zero.expand(tokens, width), persistent=False)


def _table(rows: int, width: int) -> nn.Embedding:
    """Embeddings before any are drawn. `nn.Embedding` alone would draw some, for which the meta
    device loads PyTorch's compiler: two seconds.
    """
    return nn.Embedding.from_pretrained(torch.zeros(rows, width), freeze=False)


def _positions(architecture: Architecture, tokens: int, width: int) -> nn.Embedding | NoPositions:
    """The table of position embeddings. Raises SizeError for positions that no model here has."""
    if architecture.positions == "embedded":
        return _table(tokens, width)
    if architecture.positions == "none":
        return NoPositions(tokens, width)
    raise SizeError(
        f"positions={architecture.positions}: such a stack can be judged, but not built; take"
        " positions=embedded or positions=none"
    )


class Model(nn.Module):
    """A residual stack over a task's tokens. Raises SizeError when a mechanism cannot be built."""

    _exact_state: bool = False

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.architecture = Architecture.parse(config.architecture)
        beside = config.bos + config.asks
        self.embed = _table(config.vocabulary + beside, config.width)
        self.position = _positions(self.architecture, config.length + beside, config.width)
        parts = [
            [mixer(m, width=config.width) for m in layer if m.mixes_tokens]
            for layer in self.architecture
        ]
        self.blocks = nn.ModuleList(Block(mixers, config) for mixers in parts)
        self.norm = nn.RMSNorm(config.width) if config.norm else nn.Identity()
        self.head = nn.Linear(config.width, config.answers)

    def reset(self, generator: torch.Generator) -> Model:
        """Draws every parameter with `generator` and returns the model."""
        with torch.no_grad():
            for table in (self.embed, self.position):
                # variance 1/2 each: the sum of token and position has variance 1
                if isinstance(table, nn.Embedding):
                    table.weight.normal_(0.0, 0.5**0.5, generator=generator)
            for norm in (m for m in self.modules() if isinstance(m, nn.RMSNorm)):
                norm.reset_parameters()
            for block in self._blocks():
                for part in block._mixers():
                    part.reset(generator)
                if block.mlp is not None:
                    # ReLU halves the mean square, a gain of sqrt 2 makes up for it
                    fan_in_normal(block.mlp.up.weight, generator, gain=2**0.5)
                    # behind a norm each of L layers adds a variance of about 1/(2L): 1/2 in all
                    fan_in_normal(
                        block.mlp.down.weight, generator, gain=(2 * len(self.blocks)) ** -0.5
                    )
                    block.mlp.up.bias.zero_()
                    block.mlp.down.bias.zero_()
            fan_in_normal(self.head.weight, generator)
            self.head.bias.zero_()
        return self

    def forward(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b answers"]:
        """Logits of the answer after the last token; the last layer is computed for that token
        only.

        Raises SizeError for a prompt that is too long.
        """
        if self._streams():
            return self._streamed(tokens)[:, -1]
        if self.config.asks:
            tokens = F.pad(tokens, (0, 1), value=self._asker)
        *early, final = self._blocks()
        if not early and final.reads_blocks() and self._long(tokens):
            return self._of_blocks(tokens, final)
        x = self._embed(tokens)
        for block in early:
            x = block(x)
        return self.head(self.norm(final.last(x)))

    def _long(self, tokens: Int[Tensor, "b t"]) -> bool:
        """Whether a single layer reads the tokens in blocks: where their embeddings would fill more
        than caches, and no gradient is asked for, which would keep every block.
        """
        if tokens.numel() * self.config.width <= LONG or traced():
            return False
        return not torch.is_grad_enabled() or not any(p.requires_grad for p in self.parameters())

    def _of_blocks(self, tokens: Int[Tensor, "b t"], final: Block) -> Float[Tensor, "b answers"]:
        """As `forward` of one layer, without the embeddings of all tokens at once."""
        batch, count = tokens.shape
        bos = self.config.bos
        self._fits(count + bos)
        size = max(1, BLOCK // (batch * self.config.width))

        def blocks() -> Iterator[Tensor]:
            for start in range(-bos, count, size):
                yield self._embed_from(tokens[:, max(0, start) : start + size], max(0, start + bos))

        last = self._embed_from(tokens[:, -1:], count - 1 + bos)
        return self.head(self.norm(final.last_of_blocks(last, blocks, count + bos)))

    def _embed_from(self, tokens: Tensor, place: int) -> Tensor:
        """Embeddings of tokens from a place on; at place 0 the start token stands before them."""
        if self.config.bos and not place:
            tokens = F.pad(tokens, (1, 0), value=self.config.vocabulary)
        return self.embed(tokens) + self.position.weight[place : place + tokens.shape[1]]

    def every(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t answers"]:
        """Logits after every token of the prompt."""
        if self._streams() or self.config.asks:
            return self._streamed(tokens)
        x = self._embed(tokens)
        for block in self._blocks():
            x = block(x)
        # the start token is none of the prompt's
        return self.head(self.norm(x[:, self.config.bos :]))

    def at(
        self, tokens: Int[Tensor, "b t"], places: Int[Tensor, "n k"]
    ) -> Float[Tensor, "b k answers"]:
        """Logits after the prompt tokens at some places, which count from 0: `every(tokens)`
        gathered there, with the last layer computed for these tokens only.

        Raises SizeError for a prompt that is too long, and, outside of torch.func transforms, for
        a place that is no token's.
        """
        if self._streams() or self.config.asks:
            every = self._streamed(tokens)
            check_places(places, every)
            return taken(every, places)
        x = self._embed(tokens)
        check_places(places, x, self.config.bos)
        *early, final = self._blocks()
        for block in early:
            x = block(x)
        # the start token stands before the prompt's
        return self.head(self.norm(final.at(x, places + self.config.bos)))

    def init_cache(self, batch: int) -> Cache:
        """The cache before the first prompt token (after the start token, if there is one)."""
        cache = [[part.init_state(batch) for part in block._mixers()] for block in self._blocks()]
        if self.config.bos:
            # the start token is the number after the vocabulary
            start = torch.full((batch,), self.config.vocabulary, device=self.head.weight.device)
            _, cache = self._step(start, cache, 0)
        return cache

    def step(
        self, token: Int[Tensor, " b"], cache: Cache, t: int
    ) -> tuple[Float[Tensor, "b answers"], Cache]:
        """Logits after one more prompt token; t counts the prompt tokens before it. Raises
        SizeError beyond the longest prompt.
        """
        logits, cache = self._step(token, cache, t + self.config.bos)
        if self.config.asks:
            # read, and forgotten again
            logits, _ = self._step(token * 0 + self._asker, cache, t + self.config.bos + 1)
        return logits, cache

    @property
    def _asker(self) -> int:
        """The number of the token that asks, the last there is."""
        return self.config.vocabulary + self.config.bos

    def _step(self, token: Tensor, cache: Cache, place: int) -> tuple[Tensor, Cache]:
        self._fits(place + 1)
        x = self.embed(token) + self.position.weight[place]
        after = []
        for block, states in zip(self._blocks(), cache, strict=True):
            x, new = block.step(x, states, place)
            after.append(new)
        return self.head(self.norm(x)), after

    @property
    def exact_state(self) -> bool:
        """Whether `forward` rounds what is carried as it is declared, after every token: equal to
        `step` bit for bit. Without, it carries sums in float32 at least.
        """
        return self._exact_state

    @exact_state.setter
    def exact_state(self, exact: bool) -> None:
        self._exact_state = exact
        for part in self._parts():
            part.exact_state = exact

    @contextmanager
    def storing_states(self, dtype: torch.dtype) -> Iterator[None]:
        """Within it, recurrent layers store their states in this format after every token,
        whatever they declare, and prompts are read token by token. Keys, values and other stored
        inputs are left as they are.
        """
        parts = self._parts()
        before = self.exact_state, [part.state_dtype for part in parts]
        self.exact_state = True
        for part in parts:
            part.state_dtype = dtype
        try:
            yield
        finally:
            self.exact_state = before[0]
            for part, stored in zip(parts, before[1], strict=True):
                part.state_dtype = stored

    def _streams(self) -> bool:
        return any(part.streams for part in self._parts())

    def _streamed(self, tokens: Int[Tensor, "b t"]) -> Float[Tensor, "b t answers"]:
        """Logits after every token, by `step`."""
        cache = self.init_cache(len(tokens))
        if not tokens.shape[1]:
            raise SizeError("exact_state needs at least one token in a prompt")
        logits: list[Tensor] = []
        for t, token in enumerate(tokens.unbind(1)):
            one, cache = self.step(token, cache, t)
            logits.append(one)
        return torch.stack(logits, 1)

    def _embed(self, tokens: Tensor) -> Tensor:
        self._fits(tokens.shape[1] + self.config.bos)
        return self._embed_from(tokens, 0)

    def _fits(self, tokens: int) -> None:
        bos, asks = self.config.bos, self.config.asks
        # a start token alone is something to read: then the prompt may be empty
        if not 1 <= tokens <= self.config.length + bos + asks:
            raise SizeError(
                f"a prompt of {tokens - bos - asks} tokens; this model takes from {1 - bos} to"
                f" {self.config.length}"
            )

    def _blocks(self) -> list[Block]:
        return [b for b in self.blocks if isinstance(b, Block)]

    def _parts(self) -> list[Mixer]:
        return [part for block in self._blocks() for part in block._mixers()]


def trained_config(
    architecture: str, task: Task, *, width: int, hidden: int, length: int
) -> ModelConfig:
    """What a model that is trained for a task is built from: with norms and a start token."""
    return ModelConfig(
        architecture=architecture,
        vocabulary=task.vocabulary,
        length=length,
        answers=task.answers,
        width=width,
        hidden=hidden,
        norm=True,
        bos=True,
    )


def parameter_count(config: ModelConfig) -> int:
    """Parameters of a model, which is built without numbers for that. Raises what building does."""
    with torch.device("meta"):
        return sum(parameter.numel() for parameter in Model(config).parameters())


def build(
    architecture: Stack,
    task: Task | str,
    *,
    width: int | None = None,
    hidden: int | None = None,
    seed: int = 0,
    length: int | None = None,
    exact_state: bool = False,
) -> Model:
    """A trainable model of an architecture for a task's tokens and answers, or of what texts name,
    drawn from `seed`.

    `width` defaults to the largest heads * head_dim of the stack, `hidden` to twice the width, and
    `length`, the longest prompt that it takes, to the task's.
    With `exact_state`, `forward` rounds states as declared, as `step` does; without, a DriftWarning
    tells of layers in whose formats the two may differ by more than a rounding.
    Raises SizeError for a mechanism without a mixer or sizes that do not fit.
    """
    architecture, task = stack_of(architecture), task_of(task)
    if width is None:
        width = max(part.inner_width for layer in architecture for part in layer) or 64
    config = trained_config(
        architecture.spec,
        task,
        width=width,
        hidden=2 * width if hidden is None else hidden,
        length=task.length if length is None else length,
    )
    model = Model(config).reset(torch.Generator().manual_seed(seed))
    model.exact_state = exact_state
    if not exact_state:
        _warn_of_drift(architecture, task.length)
    return model


def _warn_of_drift(architecture: Architecture, tokens: int) -> None:
    """Warns of each kind of layer whose two forms differ in the format it declares, where PyTorch
    has that format.
    """
    parts = dict.fromkeys(part for layer, _ in architecture.counted() for part in layer)
    for part in parts:
        reason = part.drift(tokens) if part.rounded_to in DTYPES else None
        if reason is not None:
            warnings.warn(
                f"{part.name} with {part.rounded_to} states: over {tokens:,} tokens `step` and"
                f" `forward` may differ by more than {part.rounded_to} explains, since {reason};"
                " exact_state=True makes `forward` round as `step` does",
                DriftWarning,
                stacklevel=3,
            )
