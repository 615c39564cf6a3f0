"""Bounded Dyck-(k, D) in three recurrent layers: a counter, a stack, and a flag (theory.md, section
6).

With D' = min(D, n/2) - whoever opens more can close no longer - and c_i the brackets open after i
tokens, each layer leaves at token i:

    layer           keys           queries     values         leaves
    linear          1              1           +1 or -1       depth = c_i
    delta rule      e_s, b = 1     e_s         kind           top = what slot s holds
                    (b = 0 where a bracket closes)
    delta rule      wrong, b = 1   1           1              dead = 1 once wrong was not 0

s = c_i where a bracket opens and c_i + 1 where one closes: the slot of the pair. The MLP between
the first two writes e_s, a hat function for each slot j,

    e_s[j] = relu(s - j + 1) - 2 relu(s - j) + relu(s - j - 1),

the next one adds up what may be wrong at this token, with x the kind's bits, +-1 each:

    wrong = min(relu(-c), 1) + min(relu(c - D'), 1)
            + sum over the bits of relu(top - x - 2 open) + relu(x - top - 2 open)

and the last one off = |c|. Logits: 2 dead + 2 off for the answer 0, and 1 for the answer 1.

Recall with the question before the pairs, in three layers of the delta rule, whatever n
(theory.md, section 12).

B = ceil(log2 K) bits number a key, A an answer, +-1 each, lowest first.

    space    width   holds
    code     B       bits of a key, 0 at values
    key      1       1 at keys
    value    1       1 at values
    content  A       bits of a value, 0 at keys
    first    1       1 at the first place, by embeddings of positions
    asked    B       code of the first token, kept by layer 1
    apart    1       twice the bits in which code and asked differ, written by the MLP behind it
    met      1       apart of the last key, kept by layer 2
    found    A       content behind the last key that was asked for, kept by layer 3

Every layer has one key for all tokens, so that b = 1 overwrites what it keeps, and b = 0 keeps it:

    layer   v         b = sigmoid(128 z), z =   1 or more                         -1 or less
    1       code      2 first - key - value     at the first token                at all others
    2       apart     key - value               at keys                           at values
    3       content   value - key - met         at values behind the key asked    at all others

    apart = sum over the bits of relu(code - asked) + relu(asked - code)

The logit of a value is 2 <bits, found>, that of "none" 1: where nothing was found, found is 0.
"""

from __future__ import annotations

from separatrix.constructions.parts.built import (
    Spaces,
    empty_model,
    mixer_at,
    mlp_after,
    pick,
    put,
    recipe,
    signs,
    step,
)
from separatrix.constructions.tracked import keep
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.models.model import MLP, Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.exact import SATURATED
from separatrix.stacks.architecture import Architecture, Place, stack
from separatrix.stacks.mechanisms import DeltaNet, Linear
from separatrix.tasks import Dyck, Recall
from separatrix.theory.solves.states import Needed
from separatrix.theory.written import bits_for, slots


@recipe(
    "brackets",
    Dyck,
    takes=(
        "a linear layer without normaliser, a deltanet or gdn layer with a key dimension for every"
        " open bracket and ceil(log2 k) value dimensions behind it, and another one behind that"
    ),
)
def brackets(task: Dyck, architecture: Architecture | None, arithmetic: Arithmetic) -> Model:
    """A linear layer without normaliser and two delta-rule layers behind it."""
    needed = Needed.of(task)
    if architecture is None:
        architecture = stack(
            [
                Linear(heads=1, head_dim=1, value_dim=1, feature="identity", normaliser=False),
                DeltaNet(heads=1, head_dim=needed.slots, value_dim=needed.bits),
                DeltaNet(heads=1, head_dim=1, value_dim=1),
            ]
        )
    counter, holder, flag = (slot.place for slot in slots("brackets", task, architecture))
    space = Spaces(
        kind=needed.bits,
        open=1,
        close=1,
        one=1,
        depth=1,
        slot=needed.slots,
        top=needed.bits,
        wrong=1,
        dead=1,
        off=1,
    )
    hidden = max(needed.slots + 2, 4 + 2 * needed.bits)
    model = empty_model(task, architecture, space, hidden=hidden, placed=False)
    table = model.embed.weight
    table[:, space["kind"]] = signs(task.k, needed.bits).repeat(2, 1)
    table[: task.k, space["open"]] = 1.0
    table[task.k :, space["close"]] = 1.0
    table[:, space["one"]] = 1.0
    one, slot, shut = {"one": 1.0}, {"slot": 1.0}, {"open": 1.0, "close": -1.0}
    _write_head(model, counter, space, one, one, shut, "depth", {})
    _find_slot(mlp_after(model, counter), space, needed)
    _write_head(model, holder, space, slot, slot, {"kind": 1.0}, "top", shut)
    _compare(mlp_after(model, holder), space, needed)
    # key wrong, of length 1 or 0; a 1 is written and read
    always = {"open": 1.0, "close": 1.0}
    _write_head(model, flag, space, one, {"wrong": 1.0}, one, "dead", always)
    # |depth|
    mlp = mlp_after(model, flag)
    for unit, sign in enumerate((1.0, -1.0)):
        mlp.up.weight[unit, space["depth"]] = sign
        mlp.down.weight[space["off"], unit] = 1.0
    for fault in ("dead", "off"):
        model.head.weight[0, space[fault]] = 2.0
    model.head.bias[1] = 1.0
    return model


def _write_head(
    model: Model,
    place: Place,
    space: Spaces,
    query: dict[str, float],
    key: dict[str, float],
    value: dict[str, float],
    target: str,
    opens: dict[str, float],
) -> None:
    """Head 0, whose maps read these spaces, times factors, and which writes to `target`; b is the
    sigmoid of 128 times what opens it, and nothing decays.
    """
    mixer = mixer_at(model, place, RecurrentMixer)
    for maps, read in ((mixer.q, query), (mixer.k, key), (mixer.v, value)):
        for name, factor in read.items():
            pick(maps.weight, [(space[name], factor)])
    put(mixer.o.weight, space[target])
    for name, factor in opens.items():
        mixer.get_parameter("b.weight")[0, space[name]] = factor * SATURATED
    if opens:
        keep(mixer)


def _find_slot(mlp: MLP, space: Spaces, needed: Needed) -> None:
    """slot = e_s, s = depth + close: hats over units relu(s - m) for m = 0, ..., slots + 1."""
    units = range(needed.slots + 2)
    for unit in units:
        mlp.up.weight[unit, space["depth"]] = 1.0
        mlp.up.weight[unit, space["close"]] = 1.0
        mlp.up.bias[unit] = -float(unit)
    for number, row in enumerate(range(space["slot"].start, space["slot"].stop)):
        for unit, factor in enumerate((1.0, -2.0, 1.0), number):
            mlp.down.weight[row, unit] = factor


def _compare(mlp: MLP, space: Spaces, needed: Needed) -> None:
    """wrong, as above."""
    deepest = -float(needed.slots)
    step(mlp, 0, [(space["depth"], -1.0)], (0.0, -1.0), space["wrong"])
    step(mlp, 2, [(space["depth"], 1.0)], (deepest, deepest - 1.0), space["wrong"])
    for bit in range(needed.bits):
        for side, sign in enumerate((1.0, -1.0)):
            unit = 4 + 2 * bit + side
            mlp.up.weight[unit, space["top"].start + bit] = sign
            mlp.up.weight[unit, space["kind"].start + bit] = -sign
            # bits differ by 2 at most: whoever opens is not wrong in kind
            mlp.up.weight[unit, space["open"]] = -2.0
            mlp.down.weight[space["wrong"], unit] = 1.0


@recipe(
    "question-first",
    Recall,
    takes=(
        "three deltanet or gdn layers, the first with ceil(log2 K) value dimensions, the last with"
        " ceil(log2 V) (of V + 1 answers where keys may be missing)"
    ),
)
def question_first(
    task: Recall, architecture: Architecture | None, arithmetic: Arithmetic
) -> Model:
    """Three delta-rule layers (default: DeltaNet)."""
    code, content = bits_for(task.K), bits_for(task.answers)
    if architecture is None:
        values = (code, 1, content)
        architecture = stack([DeltaNet(heads=1, head_dim=1, value_dim=dims) for dims in values])
    keeper, flag, holder = (
        slot.place for slot in slots("question-first", task, architecture, arithmetic.name)
    )
    space = Spaces(
        **{"code": code, "key": 1, "value": 1, "content": content, "first": 1},
        **{"asked": code, "apart": 1, "met": 1, "found": content},
    )
    model = empty_model(task, architecture, space, hidden=2 * code)
    embed = model.embed.weight
    embed[: task.V, space["content"]] = signs(task.answers, content)[: task.V]
    embed[: task.V, space["value"]] = 1.0
    embed[task.V :, space["code"]] = signs(task.K, code)
    embed[task.V :, space["key"]] = 1.0
    model.position.weight[0, space["first"]] = 1.0
    # one key for all tokens
    every = {"key": 1.0, "value": 1.0}
    for place, value, target, opens in (
        (keeper, "code", "asked", {"first": 2.0, "key": -1.0, "value": -1.0}),
        (flag, "apart", "met", {"key": 1.0, "value": -1.0}),
        (holder, "content", "found", {"value": 1.0, "key": -1.0, "met": -1.0}),
    ):
        _write_head(model, place, space, every, every, {value: 1.0}, target, opens)
    mlp = mlp_after(model, keeper)
    pick(mlp.up.weight, [(space["code"], 1.0), (space["code"], -1.0)])
    pick(mlp.up.weight, [(space["asked"], -1.0), (space["asked"], 1.0)])
    mlp.down.weight[space["apart"]] = 1.0
    for answer, bits in enumerate(signs(task.answers, content)[: task.V]):
        model.head.weight[answer, space["found"]] = 2.0 * bits
    model.head.bias[task.V :] = 1.0
    return model
