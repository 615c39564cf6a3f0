"""Contents compared: pairs that cancel, strings that agree or are near, symbols that are counted,
sets that are averaged.
"""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Full
from separatrix.tasks import QSA, Counting, Equality, Neighbour, TwoSum
from separatrix.theory.solves.places import (
    MOST_ADDRESS_BITS,
    NEEDS_NONE,
    Attending,
    finders,
    full_heads,
    heads_in_turn,
)
from separatrix.theory.solves.room import (
    CHOSEN_WEIGHTS,
    CONTENTS,
    EMBEDDED,
    EXACT_SCORES,
    PLACES,
    TAGS,
    WIDE,
    Construction,
    Room,
    bits_of,
)

MATCH_LIMIT = {"fp64": 130_000_000, "fp32": 5_754, "fp16": 63, "bf16": 22}
"""Largest M that the three-dimensional embedding separates, by format (theory.md, section 6)."""
MOST_TIED = {"fp64": 1 << 18, "fp32": 2351, "fp16": 25, "bf16": 7}
"""Keys that may tie at most, start token included, by format: up to here the logits are proved to
lead (constructions/counting.py).
"""
MOST_SUMMED = 1 << 19
"""Largest q^3 V^2 for which rounding of the steps is shown to leave a lead in fp32: up to q steps
are added up, each of numbers up to q V times V.
"""


class Match2(Construction[TwoSum]):
    key = "match2"
    title = "one full layer solves 2-Sum per query"
    statement = (
        "With phi(x) = (cos, sin, 1) of 2 pi x/M a head of dimension 3 scores c cos(2 pi (x_i +"
        " x_j)/M), largest exactly where the two cancel; a blank key takes the weight otherwise."
        " Beyond the M that the format separates, a bit code of log2 M + 2 dimensions does it, the"
        " start token scoring as much as a match: its weight tells how many tokens match, the last"
        " one itself among them where it cancels itself."
    )
    premises = (
        "a full head of dimension 3 (or log2 M + 2)",
        CONTENTS,
        "a start token may stand before the prompt",
        "weights and embeddings may be chosen",
    )
    source = "[San23]; theory.md, section 6, Match2"
    proof_sketch = (
        "Match over blank and blank over best non-match are both c sin^2(pi/M); c ="
        " ln(8n)/sin^2(pi/M) outweighs n tokens."
    )
    about = (TwoSum,)
    why = "The layer compares it with all others at once."

    def room(self, architecture: Architecture, task: TwoSum) -> Room | None:
        for one in full_heads(architecture) if task.form == "query" else ():
            part, head = one.part, one.head
            # the value is 0 at the last token, which needs its place
            placed = architecture.positions == "embedded"
            # what a norm of queries and keys, or of a latent, makes of cosines is not worked out
            free = placed and not part.normed and head.latent is None
            most = MATCH_LIMIT[head.format]
            dims = bits_of(task.M) + TAGS
            if free and most >= task.M and one.compares(3):
                dims, rests_on = 3, EMBEDDED
                how = f"3 key dimensions, M = {task.M:,} of at most {most:,} in {head.format}"
            elif one.compares(dims):
                how = f"a bit code in {dims} of {head.head_dim} key dimensions"
                rests_on = NEEDS_NONE
            else:
                continue
            said = f"one full layer (layer {one.layer + 1}) solves it: {how}"
            return Room(said, {"dimensions": dims, "layer": one.layer}, (rests_on,))
        return None


class TwoLayerPairs(Construction[TwoSum]):
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
    about = (TwoSum,)
    why = (
        "One full layer flags each token that an earlier one cancels, a second one looks for a"
        " flag."
    )

    def room(self, architecture: Architecture, task: TwoSum) -> Room | None:
        bits = bits_of(task.M)
        layers = heads_in_turn(
            architecture,
            lambda one: one.compares(bits + TAGS),
            lambda one: one.flags_carry(task.length),
        )
        if layers is None or task.form != "decision":
            return None
        first, second = layers
        said = (
            f"two full layers solve it: layer {first + 1} flags tokens that an earlier one cancels"
            f" ({bits} value bits and {TAGS} tags in its keys), layer {second + 1} looks for a flag"
        )
        return Room(said, {"value_bits": bits, "first": first, "second": second}, (NEEDS_NONE,))


class TwoLayerEquality(Construction[Equality]):
    key = "equality"
    title = "two full layers compare two strings"
    statement = (
        "In the first layer every bit of the second string fetches the bit at its place in the"
        " first, by its address, and flags a difference. In the second the last token looks for a"
        " flagged token: weight at least 1 - n e^(-2 s^2) on flagged ones if there is any, none"
        " otherwise. With rotations alone every token asks for the offset n; a start token takes"
        " the weight of those that have no token there."
    )
    premises = (
        (
            "two full layers, the first, for addresses, with room in its keys for their bits and"
            " two tags"
        ),
        PLACES,
        "with rotations alone, a start token may stand before the prompt",
        EXACT_SCORES,
        CHOSEN_WEIGHTS,
    )
    source = "[Bha24], in the form of theory.md, section 6; the retrieval head is [CPW]"
    proof_sketch = (
        "The first layer is a retrieval head of one bit, the second a retrieval head for the flag;"
        " a threshold cleans both."
    )
    about = (Equality,)
    why = "One full layer fetches each bit's partner, a second one looks for a pair that differs."

    def room(self, architecture: Architecture, task: Equality) -> Room | None:
        address = bits_of(task.n)
        n = task.length
        fetching = (
            (one.layer, found)
            for one, found in finders(architecture, address=address + TAGS, payload=1, tokens=n)
            # tokens of the first string have no partner: a start token must take their weight
            if found.address or one.blank_beside(1, n)
        )
        first, found = next(fetching, (-1, None))
        later = (one for one in full_heads(architecture) if one.layer > first)
        second = next((one.layer for one in later if one.flags_carry(n)), None)
        if found is None or second is None:
            return None
        asked = f"the offset {task.n:,}"
        if found.address:
            asked = f"{address} address bits and {TAGS} tags in its keys"
        said = (
            f"two full layers solve it: layer {first + 1} fetches partners ({asked}), layer"
            f" {second + 1} looks for a difference"
        )
        return Room(said, found.numbers(address, first=first, second=second), (found.rests_on,))


class TwoLayerNeighbour(Construction[Neighbour]):
    key = "neighbour"
    title = "two full layers find the nearest of n labelled strings"
    statement = (
        "In the first layer every label fetches the string before it, by its place. In the second"
        " the query compares its bits with those: a label whose string differs in h bits scores s^2"
        " (d - 2 h), strings less than all labels, by a tag of weight d + 1. The nearest ones lead"
        " by 2 s^2, and all others weigh at most 2 n e^(-2 s^2) relative to them."
    )
    premises = (
        (
            "two full layers: the first, for addresses, with room in its keys for their bits and"
            " two tags, and in its values for d bits; the second with d + 2 key dimensions, and"
            " room in its values for the bits of a label"
        ),
        PLACES,
        CONTENTS,
        "no norm of queries and keys, and no latent, in the second",
        "scores exact in the format: s a power of two, d at most 40",
        CHOSEN_WEIGHTS,
    )
    source = "[Bha24], nearest neighbour in two layers; the weights, and the tag, are ours [here]"
    proof_sketch = (
        "The first layer is a retrieval head of d bits, cleaned by a threshold. In the second each"
        " bit that differs costs 2 s^2. Strings as near as the nearest have its label, or the"
        " prompt is no instance, so that it is a mean of equal values that is read."
    )
    about = (Neighbour,)
    why = (
        "One full layer hands every label its string, a second one compares them all with the"
        " query."
    )

    def room(self, architecture: Architecture, task: Neighbour) -> Room | None:
        address = bits_of(task.n + 1)
        fetching = finders(architecture, address=address + TAGS, payload=task.d, tokens=task.length)
        if not fetching:
            return None
        (first, found), *_ = ((one.layer, found) for one, found in fetching)
        compared, labels = task.d + TAGS, bits_of(task.V)
        second = next(
            (
                one.layer
                for one in full_heads(architecture)
                if one.layer > first
                and not one.part.normed
                and one.head.latent is None
                and one.compares(compared)
                and one.head.has_room(compared, labels)
            ),
            None,
        )
        if second is None:
            return None
        asked = f"{address} address bits and {TAGS} tags in its keys"
        said = (
            f"two full layers solve it: layer {first + 1} hands labels their strings"
            f" ({asked if found.address else 'the offset 1'}, {task.d} bits in its values), layer"
            f" {second + 1} compares {task.d} bits ({compared} key dimensions)"
        )
        numbers = found.numbers(address, first=first, second=second, compared=compared)
        return Room(said, numbers, (found.rests_on,))


class StartTokenCounts(Construction[Counting]):
    key = "counting"
    title = "one full layer counts beside a start token"
    statement = (
        "A start token that scores as much as every match, while all else scores 2 s^2 less, weighs"
        " 1/k, where k counts it and the matches. Of the lines -y sum j (j + 1) + sum (j + 1/2), j"
        " below k, that of k is the highest at y = 1/k, by 1/2. They are of size k^2, so that p"
        " digits tell about 2^(p/2) counts apart. One full layer solves counting up to the n of its"
        " format."
    )
    premises = (
        "a full head with room for a symbol's bits and one tag in its keys",
        CONTENTS,
        "a start token stands before the prompt",
        (
            "at most 262,144 keys that tie in fp64, 2,351 in fp32, 25 in fp16, 7 in bf16, half"
            " formats with sums in fp32; exp(0) = 1"
        ),
        CHOSEN_WEIGHTS,
    )
    source = "[Wen25] (counting); this program: constructions/counting.py derives the weights"
    proof_sketch = (
        "Scores that tie are exact, each weighs exp(0) = 1, and sums of ones are exact, so that the"
        " weight is 1/k up to three roundings. It is one number for all logits: between neighbours"
        " what is left is what the head itself rounds, about u k^2, against 1/2."
    )
    about = (Counting,)
    why = "The weight of a start token that ties says how many tie."

    def room(self, architecture: Architecture, task: Counting) -> Room | None:
        tied = task.n + 1 + (task.form == "queried")
        bits = bits_of(task.V)
        for one in full_heads(architecture):
            index, part, head = one.layer, one.part, one.head
            if not isinstance(part, Full) or part.normed or tied > MOST_TIED[head.format]:
                continue
            if head.format not in WIDE and part.accumulator_bits < 32:
                continue
            if one.content_dims <= bits or not head.has_room(bits + 1, 1):
                continue
            said = (
                f"one full layer (layer {index + 1}) solves it: {bits} bits of a symbol and a tag"
                f" of {head.head_dim} key dimensions; at most {tied:,} of"
                f" {MOST_TIED[head.format]:,} keys tie in {head.format}"
            )
            return Room(said, {"symbol_bits": bits, "tied": tied, "layer": index}, (NEEDS_NONE,))
        return None


class SparseAveraging(Construction[QSA]):
    key = "qsa"
    title = "two full layers average over sets"
    statement = (
        "In the first layer every token of a set fetches the value at its place. In the second the"
        " tokens of one set, whose keys hold its number, score alike, exactly, and 2 s^2 more than"
        " all others: the last one gets their average. Steps of a position-wise map take multiples"
        " of V off its q-fold, the sum. Two full layers solve q-sparse averaging."
    )
    premises = (
        (
            "two full heads in turn, the first with room for the bits of a place and two tags and"
            " for a value's bits, the second for the bits of a set's number and two tags"
        ),
        "embeddings give every token its place",
        "fp32 or wider, exp(0) = 1, q^3 V^2 at most 2^19 and at most 2^16 tokens",
        CHOSEN_WEIGHTS,
    )
    source = "[San23] for the task; this program: constructions/qsa.py derives the weights"
    proof_sketch = (
        "The first layer is a retrieval head that every token asks. Keys of one set are equal, so"
        " their weights are 1 each, and the average is off by what q roundings take; a sum is a"
        " whole number, a step has room for 1/4, and the logits a s - a^2/2 leave 1/2. One layer"
        " alone cannot: a set is q tokens, and the last of them is fixed."
    )
    about = (QSA,)
    embedded = True
    why = "One layer looks the values of a set up, the next averages over the set."

    def room(self, architecture: Architecture, task: QSA) -> Room | None:
        if task.q**3 * task.V**2 > MOST_SUMMED or task.length > 1 << 16:
            return None
        address, payload, number = bits_of(task.n), bits_of(task.V), bits_of(task.sets)

        def holds(one: Attending, keys: int, values: int) -> bool:
            if one.head.format not in WIDE or one.part.normed or one.head.latent:
                return False
            return keys <= min(one.content_dims, MOST_ADDRESS_BITS) and one.head.has_room(
                keys, values
            )

        layers = heads_in_turn(
            architecture,
            lambda one: holds(one, address + TAGS, payload),
            lambda one: holds(one, number + TAGS, 1),
        )
        if layers is None:
            return None
        first, second = layers
        said = (
            f"two full layers (layers {first + 1} and {second + 1}) solve it: {address} bits of a"
            f" place and {payload} of a value, then {number} bits of a set's number"
        )
        numbers = {"address_bits": address, "payload_bits": payload, "set_bits": number}
        return Room(said, numbers | {"first": first, "second": second})
