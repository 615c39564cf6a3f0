"""2-Sum as a decision in two full layers: does any pair cancel?"""

from __future__ import annotations

from typing import ClassVar

from separatrix.core.evidence.records import Verdict
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, TwoSum
from separatrix.theory.base import SOLVABLE, Sees, Theorem
from separatrix.theory.solves.places import NEEDS_NONE, compares, flags_carry
from separatrix.theory.solves.room import CHOSEN_WEIGHTS, CONTENTS, TAGS, bits_of, full_heads
from separatrix.theory.words import Words, WordsByTask


class TwoLayerPairs(Theorem):
    key = "pairs"
    title = "two full layers decide 2-Sum"
    statement = (
        "In the first layer every token asks for the bits of the value that cancels its own. The"
        " start token scores exactly as much as a match, so its weight is 1/(1 + c) for c matches,"
        " the token itself among them where it cancels itself (0, and M/2 for even M): above 3/4"
        " without one, else at most 1/2; and above 5/12 with itself alone, else at most 1/3. A"
        " token with an earlier match is flagged. In the second layer the last token looks for a"
        " flagged one, as in equality of strings."
    )
    premises = (
        "two full layers, the first with room in its keys for the bits of a value and two tags",
        CONTENTS,
        "a start token may stand before the prompt",
        "scores exact in the format: s a power of two, at most 256 bits",
        CHOSEN_WEIGHTS,
    )
    source = (
        "[San23] for Match2, with a bit code and a start token that counts matches [here];"
        " theory.md, section 6; the retrieval head is [CPW]"
    )
    proof_sketch = (
        "In the first layer values that do not cancel score 2 s^2 less and weigh at most (n-1)"
        " e^(-2 s^2) together, which moves no weight across its threshold once s^2 > ln(8n)/2; of a"
        " pair that cancels the later token sees the earlier one. In the second a flag scores s^2,"
        " the start token 0 and the rest -s^2, and s^2 > ln(2n) suffices."
    )
    shows = SOLVABLE
    sees = Sees.READERS
    words: ClassVar[WordsByTask] = {
        "twosum": Words(
            "{statement}",
            "One full layer flags each token that an earlier one cancels, a second one looks for a"
            " flag.",
        )
    }

    def judge(self, architecture: Architecture, task: Task) -> Verdict | None:
        if not isinstance(task, TwoSum) or task.form != "decision":
            return None
        bits = bits_of(task.M)
        heads = list(full_heads(architecture))
        flags = [i for i, part, head in heads if compares(architecture, part, head, bits + TAGS)]
        after = [
            i
            for i, part, head in heads
            if flags and i > flags[0] and flags_carry(architecture, part, head, tokens=task.length)
        ]
        if not after:
            return None
        first = flags[0]
        second = after[0]
        sentence = (
            f"two full layers solve it: layer {first + 1} flags tokens that an earlier one cancels"
            f" ({bits} value bits and {TAGS} tags in its keys), layer {second + 1} looks for a flag"
        )
        return self.solved(
            architecture,
            task,
            sentence,
            {"value_bits": bits, "first": first, "second": second},
            NEEDS_NONE,
        )
