"""Recall with the question before the pairs, in three layers of the delta rule, whatever n
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

from separatrix.constructions.parts.built import recipe
from separatrix.constructions.parts.placement import empty_model, mlp_after, recurrent_head
from separatrix.constructions.parts.spaces import Spaces, pick, put, signs
from separatrix.constructions.tracked import keep
from separatrix.mixers.base.recurrent import RecurrentMixer
from separatrix.models.model import Model
from separatrix.proofs.arithmetic import Arithmetic
from separatrix.proofs.exact import SATURATED
from separatrix.stacks.architecture import Architecture, stack
from separatrix.stacks.mechanisms import DeltaNet
from separatrix.tasks import Recall
from separatrix.theory.written import bits_for, slots


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
    model = empty_model(task, architecture, width=space.width, hidden=2 * code)
    embed = model.embed.weight
    embed[: task.V, space["content"]] = signs(task.answers, content)[: task.V]
    embed[: task.V, space["value"]] = 1.0
    embed[task.V :, space["code"]] = signs(task.K, code)
    embed[task.V :, space["key"]] = 1.0
    model.position.weight[0, space["first"]] = 1.0
    for place, value, target, opens in (
        (keeper, "code", "asked", {"first": 2.0, "key": -1.0, "value": -1.0}),
        (flag, "apart", "met", {"key": 1.0, "value": -1.0}),
        (holder, "content", "found", {"value": 1.0, "key": -1.0, "met": -1.0}),
    ):
        _keep(recurrent_head(model, place), space, space[value], space[target], opens)
    mlp = mlp_after(model, keeper)
    pick(mlp.up.weight, [(space["code"], 1.0), (space["code"], -1.0)])
    pick(mlp.up.weight, [(space["asked"], -1.0), (space["asked"], 1.0)])
    mlp.down.weight[space["apart"]] = 1.0
    for answer, bits in enumerate(signs(task.answers, content)[: task.V]):
        model.head.weight[answer, space["found"]] = 2.0 * bits
    model.head.bias[task.V :] = 1.0
    return model


def _keep(
    mixer: RecurrentMixer, space: Spaces, value: slice, target: slice, opens: dict[str, float]
) -> None:
    """Head 0 keeps one value for all tokens, overwritten where the gate opens."""
    for maps in (mixer.q.weight, mixer.k.weight):
        for name in ("key", "value"):
            maps[0, space[name]] = 1.0
    pick(mixer.v.weight, [(value, 1.0)])
    put(mixer.o.weight, target)
    for name, factor in opens.items():
        mixer.get_parameter("b.weight")[0, space[name]] = factor * SATURATED
    keep(mixer)
