# %% [markdown]
# # A lesson in five steps
#
# What can a stack of layers not do, whatever its weights? Five steps, about forty minutes, from
# counting to the depth of hybrid models. Everything is run: this page is a script, and what
# stands under a block is what it printed. As a notebook: [lesson.ipynb](lesson.ipynb).

# %%
import tempfile
from math import log2
from pathlib import Path

import separatrix as sx

# %% [markdown]
# ## 1. What a state must hold
#
# The task is *Eva*: a prompt names $n$ values, one for each of $n$ facts, then asks for one of
# them. A recurrent layer reads the facts before it knows the question. So two different tables of
# facts must leave it in two different states: if they did not, some question would have two right
# answers and one state to answer from.
#
# Counting is all of the proof. There are $V^n$ tables. Here is a layer so small that its states
# can be counted too.

# %%
stack = sx.Architecture.parse("linear @ heads=1, head_dim=2, p3")
n, V = 8, 8
bits = stack.cache_bits(n)
print(f"the layer holds {bits} bits, so it has at most 2^{bits} states")
print(f"there are {V}^{n} = 2^{n * log2(V):.0f} tables of facts")
assert bits < n * log2(V)

# %% [markdown]
# The layer keeps a $2 \times 2$ matrix and a vector of 2, six numbers of 3 bits. It cannot work,
# and no training can help. The software says the same, with the smallest $n$ at which it is so:

# %%
sx.judge(stack, f"eva:n={n},V={V}")

# %% [markdown]
# Nothing here is about linear attention. For Mamba-2, a window, or a mixer that nobody has
# written yet, the argument asks for one number: the bits it holds. The picture has it for several
# stacks: how many facts each can tell before the counting forbids more.
#
# ![Smallest prompts at which stacks of bounded layers fail](images/bounded.svg)
#
# ## 2. Two prompts that collide
#
# A count says that two tables with one state exist. It does not show them. A search does: it
# looks for two prompts that leave *this* model, with its weights, in the same state, although
# their right answers differ.

# %%
task = sx.parse_task(f"eva:n={n},V={V}")
certificate = sx.refute(stack, task)
assert isinstance(certificate, sx.Certificate)
for prompt, right in zip(certificate.inputs, certificate.answers, strict=True):
    print("facts", prompt[:-1], " question", prompt[-1], " right answer", right)
print("the model answers", certificate.output, "to both")

# %% [markdown]
# One of the two answers is wrong. You need not believe the search: the model's weights travel
# inside the certificate, and what checks it shares no code with what found it.

# %%
with tempfile.TemporaryDirectory() as folder:
    checked = sx.verify(certificate, folder=Path(folder))
for line in checked.checks:
    print("-", line)

# %% [markdown]
# ## 3. What one full layer adds
#
# A full attention layer does not have to remember: it keeps every token and looks the fact up
# when the question is there. Behind it stands a construction, weights that anyone can write down,
# and a proof that they answer every prompt of the size.

# %%
hybrid = sx.Architecture.parse("linear + full @ heads=1, head_dim=8")
sx.judge(hybrid, task)

# %% [markdown]
# It has a price. What the linear layer carries stays the same however long the prompt is; what
# the full layer carries grows with every token.

# %%
linear = sx.Architecture.parse("linear*2 @ heads=1, head_dim=8")
print(f"{'tokens':>10}{'two linear':>14}{'linear + full':>16}   (bits)")
for tokens in (8, 1_024, 131_072):
    print(f"{tokens:>10,}{linear.cache_bits(tokens):>14,}{hybrid.cache_bits(tokens):>16,}")
assert linear.cache_bits(8) == linear.cache_bits(131_072)

# %% [markdown]
# This is why released models mix the two: few full layers for what must be looked up, many
# recurrent ones for the rest. How few are enough?
#
# ## 4. Why steps need depth
#
# Now the question has two steps. The prompt holds two functions as tables, $z_2$ first and then
# $z_1$, and asks for $z_2(z_1(z_0))$. To ask for the right entry of $z_2$ one must know
# $z_1(z_0)$, so a single layer that looks things up looks too early.
#
# To see that this is a theorem, let the tokens be players on a line. $A$ holds $z_2$ and the
# beginning of $z_1$, $B$ the rest of $z_1$; then come $z_0$ and $w$, the last token, which must
# answer. Layers before the reading layer pass on a state of $\sigma_0$ bits; in the reading layer
# a token learns $h$ bits of what it asks of $A$. These are the only messages.


# %% tags=["hide-input"]
class Line:
    """The players on their line, and each message as an arc with its bits; `side` is -1 below."""

    def __init__(self, players: list[str], messages: list[tuple[int, int, int, str]]) -> None:
        self.players = players
        self.messages = messages

    def _repr_html_(self) -> str:
        places = [70 + 160 * i for i in range(len(self.players))]
        parts = []
        for start, end, side, text in self.messages:
            a, b = places[start], places[end]
            base = 140 if side > 0 else 172  # below the names
            top = base - side * (30 + 36 * (end - start))
            # inside its arc, where no longer one crosses it
            label = base - side * (6 + 27 * (end - start))
            parts.append(
                f'<path d="M{a} {base} C{a} {top} {b} {top} {b} {base}" fill="none"'
                ' stroke="currentColor"/>'
                f'<text x="{(a + b) / 2}" y="{label}" text-anchor="middle">{text}</text>'
            )
        for place, name in zip(places, self.players, strict=True):
            parts.append(f'<circle cx="{place}" cy="140" r="5" fill="currentColor"/>')
            parts.append(f'<text x="{place}" y="162" text-anchor="middle">{name}</text>')
        width = places[-1] + 70
        words = ", ".join(text for *_, text in self.messages)
        return (
            f'<figure class="drawn"><svg viewBox="0 0 {width} 280" width="{width}" role="img"'
            f' fill="currentColor" font-size="13" aria-label="{words}">'
            f"{''.join(parts)}</svg></figure>"
        )


# %%
from separatrix.protocols import (
    OneReading,
    OneReadingSizes,
    adversary_iii,
    random_tables,
    side_by_side,
)
from separatrix.protocols.steps import every_z_2, most_frequent, spread

sizes = OneReadingSizes(m=4, n_1=1, t=2, caches_0=2, reads=2)
state, read = (f"{log2(count):.0f} bit" for count in (sizes.caches_0, sizes.reads))
Line(
    ["A: z_2, z_1 begins", "B: z_1 ends", "z_0", "w: answers"],
    [
        (0, 1, 1, f"state: {state}"),
        (1, 2, 1, f"state: {state}"),
        (0, 3, 1, f"what w reads of A: {read}"),
        (1, 3, -1, "all of B, after w has asked"),
    ],
)

# %% [markdown]
# A model rounded to so few bits is a table for each message, and any tables will do: here they
# are drawn at random. We play the adversary of Theorem III against it, set by set.
#
# *First set.* Of all contents of $z_2$ keep those for which $A$ says the same state. At least
# half are left, as the state has one bit.

# %%
model = OneReading(sizes, random_tables(seed=7))
lead = (0,) * (sizes.m - sizes.t)
everything = list(every_z_2(sizes.N_1))
said, family = most_frequent(everything, lambda z_2: model.first(z_2 + lead))
print(f"{len(everything)} contents of z_2, {len(family)} of them leave A in state {said}")
assert 2 * len(family) >= len(everything)

# %% [markdown]
# *Second set.* Of all contents of $B$ keep those that leave the state after $B$ the same. Among
# those that are left, some place of $z_1$ still takes several values. Whoever knows only the
# state does not know which.

# %%
carried, pool = most_frequent(sizes.contents(), lambda B: model.carried(said, B))
r = sizes.failing()
assert r is not None
found = spread(pool, r)
assert found is not None
place, chosen = found
print(f"{len(list(sizes.contents()))} contents of B, {len(pool)} leave state {carried}")
print(f"at place {place} they take the values", [B[place] for B in chosen])

# %% [markdown]
# *Third set.* The last token asks $A$ with what it knows: $w$, $z_0$ and the state, which are now
# the same on every prompt that is left. So it asks the same question whatever $z_1(z_0)$ is, and
# learns one bit for all of them. More contents of $z_2$ are left than one bit can tell apart
# where it matters: two of them look alike and have different answers.

# %%
collision = adversary_iii(model)
print(side_by_side(model, collision))
assert collision.right[0] != collision.right[1]

# %% [markdown]
# The theorem promises such a pair for every table of these sizes, so for all weights; here are
# twenty tables. `sx.judge` plays the same game with real sizes, where the sets have more elements
# than there are atoms, by comparing the same numbers.

# %%
for seed in range(20):
    adversary_iii(OneReading(sizes, random_tables(seed)))
print("20 models, 20 collisions")
sx.judge("gdn + full + gdn @ heads=1, head_dim=1", "seqcomp:L=2,m=512,n_1=16")

# %% [markdown]
# With more reading layers the same fight takes longer, and the prompts at which it is won grow
# quickly with the bits $h$ that one token can read:
#
# ![Smallest prompts at which stacks of one to four reading layers fail](images/depth.svg)
#
# ## 5. What windows forget, and how full layers multiply
#
# Windows of $w$ tokens in $k$ layers reach back $k(w-1)$ tokens together. What lies before is
# gone, unless a state carries it. So a model of windows alone fails inside contexts that people
# use:

# %%
(first, *_) = sx.judge("mistral-7b-v0.1", "eva:n=200000,V=32000")
print(first.status, "by Theorem", first.theorem, "from n =", f"{first.n:,}")
layers, window = 32, 4_096
assert first.numbers["reach"] == layers * (window - 1)

# %% [markdown]
# Full layers do the opposite: each one can take a step. $L$ steps are composed by $L+1$ full
# layers, or by $L$ of them where a recurrent layer before the second carries the starting point
# along, as here.

# %%
for full in (1, 2, 3):
    steps = 0
    hybrid = sx.Architecture.parse(f"(gdn*3 + full)*{full} @ heads=4, head_dim=64")
    while sx.judge(hybrid, f"seqcomp:L={steps + 1},n=4096")[0].status == "SOLVABLE":
        steps += 1
    print(f"{full} full layer{'s' * (full > 1)}: composes {steps} step{'s' * (steps != 1)}")

# %% [markdown]
# That is the whole story of a hybrid in one table: cache on one side, steps and facts on the
# other.

# %%
sx.compare("(gdn*3 + full)*12", "(gdn*7 + full)*6", "mamba2*48", context=262_144)

# %% [markdown]
# OPEN is the honest word here: between what is proved impossible and what somebody has written
# weights for lies what nobody knows. Where training ends up in that gap is a question for
# [experiments](experiments.md).
#
# Further: [your two layouts](tutorials/compare.md), [the theorems](theory.md), or [the
# explorer](explore/index.html), where layers are dragged and all of this follows at once
# (`separatrix explore` opens the same page on your own machine).
