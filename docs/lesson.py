# %% [markdown]
# # A lesson in five steps
#
# What can a stack of layers not do, whatever its weights? Five steps, about forty minutes, from
# counting to the depth of hybrid models. Everything is run: this page is a script, and what
# stands under a block is what it printed. As a notebook: [lesson.ipynb](lesson.ipynb).

# %%
from itertools import product
from math import log2
from pathlib import Path

import separatrix as sx
from separatrix import protocols

# %% tags=["hide-input"]
# How the pictures of the steps are drawn: run it before them, there is no need to read it.
from separatrix.cli.report.charts import states
from separatrix.core.document.plot import (
    FAILS,
    INK,
    MUTED,
    SOLVES,
    Axis,
    Dot,
    Drawing,
    Stroke,
    Words,
    linear_axis,
)

Marks = list[Stroke | Dot | Words]


def names(low: float, high: float, *told: tuple[float, str]) -> Axis:
    """An axis with no numbers, but what is at some places."""
    return Axis("", low, high, told, log=False)


def label(x: float, y: float, text: str, colour: str = INK, bold: bool = False) -> Words:
    return Words(x, y, text, colour, right=0, anchor="middle", bold=bold)


def colliding(one: sx.Certificate) -> Drawing:
    """Two prompts, the facts in which they differ, the state behind both, and the answers."""
    facts = [prompt[:-1] for prompt in one.inputs]
    places = [12 + 20 * i for i in range(len(facts[0]))]
    state, question, answer = (places[-1] + further for further in (70, 136, 192))
    marks: Marks = []
    for y, own, right in zip((2, 1), facts, one.answers, strict=True):
        for x, token, pair in zip(places, own, zip(*facts, strict=True), strict=True):
            differs = len(set(pair)) > 1
            if differs:
                marks.append(Dot(x, y, FAILS, size=9, hollow=True))
            marks.append(label(x, y, str(token), FAILS if differs else INK, differs))
        told = f"facts {own}, question {one.inputs[0][-1]}, right answer {right}"
        marks.append(Stroke([(places[-1] + 12, y), (state - 36, 1.5)], MUTED, told=told))
        marks.append(label(answer, y, f"right: {right}", SOLVES))
    told = f"both leave one state and are answered {one.output}"
    marks.append(Stroke([(state + 36, 1.5), (answer - 34, 1.5)], MUTED, told=told))
    marks.append(label(state, 1.5, "same state", bold=True))
    marks.append(Dot(question, 1.5, INK, size=9, hollow=True))
    marks.append(label(question, 1.5, str(one.inputs[0][-1]), bold=True))
    marks.append(label(answer, 1.5, f"answered: {one.output}", FAILS, bold=True))
    ticks = [*zip(places, map(str, range(len(places))), strict=True), (state, "then its state")]
    x = names(0, answer + 34, *ticks, (question, "asked"), (answer, "answer"))
    y = names(0.4, 2.4, (2, "first"), (1, "second"))
    return Drawing(x=x, y=y, marks=marks, width=answer + 34, height=110)


def players(sizes: protocols.OneReadingSizes) -> Drawing:
    """The players on their line, and each message as an arc with its bits."""
    state, read, z_0 = (round(log2(n)) for n in (sizes.caches_0, sizes.reads, sizes.m))
    arcs = [
        (1, 2, 1.2, "state", f"{state} bit"),
        (2, 3, 1.2, "state", f"{state} bit"),
        (3, 4, 1.2, "z_0, state", f"{z_0 + state} bits"),
        (2, 4, 2.0, f"all of B: {sizes.t * z_0} bits", ""),
        (1, 4, 2.8, f"what w reads of A: {read} bit", ""),
    ]
    marks: Marks = []
    for start, end, high, what, bits in arcs:
        at = [i / 40 - 1 for i in range(81)]
        middle, half = (start + end) / 2, (end - start) / 2 - 0.1 + 0.03 * high
        bow = [(middle + half * i, high * (1 - i**8)) for i in at]
        told = f"{start} to {end}: {what} {bits}".rstrip()
        marks.append(Stroke(bow, MUTED if bits else SOLVES, told=told))
        if bits:
            marks += [label(middle, high - 0.4, what), label(middle, high - 0.75, bits)]
        else:
            marks.append(label(middle, high + 0.2, what))
    marks += [Dot(place, 0, size=6) for place in range(1, 5)]
    x = names(0.6, 4.4, (1, "A"), (2, "B"), (3, "z_0"), (4, "w"))
    return Drawing(x=x, y=names(0, 3.2), marks=marks, width=420, height=170)


def reach(layers: int, window: int, context: int) -> Drawing:
    """What the last token can be told of, layer by layer."""
    far = layers * (window - 1)
    cone = [(context, layers), (context - far, 0), (context, 0)]
    reached = f"{layers} x {window - 1:,} = {far:,} tokens reach the last one"
    marks: Marks = [
        Stroke(cone, SOLVES, fill=True),
        Stroke(cone[:2], SOLVES, told=reached),
        Stroke([(0, 0), (context - far, 0)], FAILS, width=5, told="what lies before is gone"),
        label((context - far) / 2, layers / 12, f"gone: {context - far:,} tokens", FAILS),
        label(context - far / 3, layers / 6, reached, SOLVES),
        Dot(context, layers, size=6),
        Words(context, layers, "the last token", right=-12, anchor="end"),
    ]
    layer = names(0, layers, *((i, f"layer {i}") for i in range(0, layers + 1, layers // 4)))
    x = linear_axis("place in the prompt", context)
    return Drawing(x=x, y=layer, marks=marks, width=600, height=200, room=40)


def multiplied(found: list[tuple[int, float]]) -> Drawing:
    """Steps over cache: so many full layers follow so many."""
    marks: Marks = []
    for full, size in found:
        marks.append(Dot(size, full, SOLVES, size=6))
        marks.append(Words(size, full, f"{full} full, {size:.1f} GiB", right=11))
    told = ", ".join(f"{full} at {size:.1f} GiB" for full, size in found)
    marks.append(Stroke([(size, full) for full, size in found], SOLVES, width=1, told=told))
    x, y = linear_axis("GiB of cache at 262,144 tokens", 7), linear_axis("steps composed", 13)
    return Drawing(x=x, y=y, marks=marks, width=400, height=240, room=110)


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
assert certificate.answers[0] != certificate.answers[1]
colliding(certificate)

# %% [markdown]
# The question comes after the state, so the model gives both prompts one answer, and at least one
# is wrong. You need not believe the search: the model's weights travel inside the certificate, and
# what checks it shares no code with what found it.

# %%
for line in sx.verify(certificate, folder=Path()).checks:
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
# the full layer carries grows with every token. The shaded part is what the counting of step 1 asks
# for, here with facts of 50,000 values: where a line enters it (the cross), recall is over.
# Two linear layers keep 4,608 bits and a fact takes 15.6, so that is at 296 facts.

# %%
linear = sx.Architecture.parse("linear*2 @ heads=1, head_dim=8")
assert linear.cache_bits(8) == linear.cache_bits(131_072)
states({"two linear": linear, "linear + full": hybrid}, [2**i for i in range(3, 18)])

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
# a token learns $h$ bits of what it asks of $A$. All else $w$ may know whole, but what it asks of
# $A$ it asks before it knows $B$. These are the only messages:

# %%
sizes = protocols.OneReadingSizes(m=4, n_1=1, t=2, caches_0=2, reads=2)
players(sizes)

# %% [markdown]
# A model rounded to so few bits is a table for each message, and any tables will do: here they
# are drawn at random. We play the adversary of Theorem III against it, set by set.
#
# *First set.* Of all contents of $z_2$ keep those for which $A$ says the same state. At least
# half are left, as the state has one bit.

# %%
model = protocols.OneReading(sizes, protocols.random_tables(seed=7))
lead = (0,) * (sizes.m - sizes.t)
everything = list(product(range(sizes.N_1), repeat=sizes.N_1))
said, family = protocols.most_frequent(everything, lambda z_2: model.first(z_2 + lead))
print(f"{len(everything)} contents of z_2, {len(family)} of them leave A in state {said}")
assert 2 * len(family) >= len(everything)

# %% [markdown]
# *Second set.* Of all contents of $B$ keep those that leave the state after $B$ the same. Among
# those that are left, some place of $z_1$ still takes several values. Whoever knows only the
# state does not know which.

# %%
carried, pool = protocols.most_frequent(sizes.contents(), lambda B: model.carried(said, B))
place = next(place for place in range(sizes.t) if len({B[place] for B in pool}) > 1)
print(f"{len(list(sizes.contents()))} contents of B, {len(pool)} leave state {carried}")
print(f"at place {place} they take the values", sorted({B[place] for B in pool}))

# %% [markdown]
# *Third set.* The last token asks $A$ with what it knows: $w$, $z_0$ and the state, which are now
# the same on every prompt that is left. So it asks the same question whatever $z_1(z_0)$ is, and
# learns one bit for all of them. More contents of $z_2$ are left than one bit can tell apart
# where it matters: two of them look alike and have different answers.

# %%
collision = protocols.adversary_iii(model)
print(protocols.side_by_side(model, collision))
assert collision.right[0] != collision.right[1]

# %% [markdown]
# The theorem promises such a pair for every table of these sizes, so for all weights; here are
# twenty tables. `sx.judge` plays the same game with real sizes, where the sets have more elements
# than there are atoms, by comparing the same numbers.

# %%
for seed in range(20):
    protocols.adversary_iii(protocols.OneReading(sizes, protocols.random_tables(seed)))
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
assert first.numbers["reach"] == 32 * (4_096 - 1)
reach(layers=32, window=4_096, context=200_000)

# %% [markdown]
# Full layers do the opposite: each one can take a step. $L$ steps are composed by $L+1$ full
# layers, or by $L$ of them where a recurrent layer before the second carries the starting point
# along, as here. Each costs cache that grows with the prompt. That is the whole story of a hybrid,
# here for stacks of 48 layers with the heads of Qwen3-Next:

# %%
found = []
for full in (1, 2, 3, 4, 6, 12):
    hybrid = sx.Architecture.parse(
        f"(gdn*{48 // full - 1} + full)*{full} @ heads=2, head_dim=256, bf16"
    )
    assert sx.judge(hybrid, f"seqcomp:L={full},n=262144")[0].status == "SOLVABLE"
    found.append((full, hybrid.cache_bits(262_144) / 2**33))
multiplied(found)

# %% [markdown]
# One step more is OPEN, the honest word: between what is proved impossible and what somebody has
# written weights for lies what nobody knows. Where training ends up in that gap is a question for
# [experiments](experiments.md).
#
# Further: [your two layouts](tutorials/compare.md), [the theorems](theory.md), or [the
# explorer](explore/index.html), where layers are dragged and all of this follows at once
# (`separatrix explore` opens the same page on your own machine).
