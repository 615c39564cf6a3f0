"""Fields that recurrent families share: sizes given as factors, Mamba layers, and the assumptions
that go with them.
"""

from __future__ import annotations

from fractions import Fraction

from separatrix.architecture.hf.attention import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    full_attention,
    state_note,
)
from separatrix.architecture.hf.draft import Draft, Size, Unknown, Value
from separatrix.architecture.hf.fields import LARGEST, Fields, shown
from separatrix.mechanisms import Mamba, Mamba2

WORDS = {
    "mamba": "recurrent",
    "linear_attention": "recurrent",
    "attention": "full",
    "full_attention": "full",
}
"""`layer_types` and its older spelling `layers_block_type`."""
LISTS = (("layer_types", WORDS), ("layers_block_type", WORDS))


def factor(fields: Fields, *names: str) -> Fraction | Unknown:
    """The positive number under one of these spellings (an expansion factor), unknown if it is
    missing. Raises ConfigError if it is none.
    """
    name = fields.find(*names)
    if name is None:
        first, *others = names
        return Unknown(
            (
                f"'{first}' is missing"
                + (f" (also looked for {', '.join(others)})" if others else ""),
            )
        )
    value = fields.data[name]
    if type(value) not in (int, float) or not 0 < value <= LARGEST:  # not a number compares false
        raise fields.error(
            f"'{name}' is {shown(value)}; it must be a positive number of at most {LARGEST:,}"
        )
    # through text: 1.3 means 13/10, not the float nearest to it
    return Fraction(str(value))


def scaled(fields: Fields, whole: Size, *names: str) -> Size:
    """`whole` times a factor, where that is an integer. Raises ConfigError where it is not."""
    by = factor(fields, *names)
    if isinstance(whole, Unknown) or isinstance(by, Unknown):
        # the sum is unknown, and names what was looked for on either side
        return (whole if isinstance(whole, Unknown) else Unknown(())) + (
            by if isinstance(by, Unknown) else 1
        )
    size = whole * by
    if size.denominator != 1 or not 1 <= size <= LARGEST:
        raise fields.error(
            f"'{fields.find(*names)}' is {fields.data[str(fields.find(*names))]}, which times"
            f" {whole} is no size; correct it"
        )
    return int(size)


def expanded(fields: Fields) -> Size:
    """The channels of a Mamba: `intermediate_size`, which older files repeat as `d_inner`, or
    `expand` x `hidden_size`. Raises ConfigError where two of them disagree.
    """
    ways: list[tuple[str, Size]] = [
        (f"'{name}'", fields.size(name))
        for name in ("intermediate_size", "d_inner")
        if fields.has(name)
    ]
    if fields.has("expand") or not ways:
        width = scaled(fields, fields.size("hidden_size", "d_model"), "expand")
        ways.append(("'expand' x hidden_size", width))
    known = [(what, size) for what, size in ways if isinstance(size, int)]
    for what, size in known[1:]:
        if size != known[0][1]:
            raise fields.error(
                f"{known[0][0]} is {known[0][1]}, but {what} is {size}; correct one of them"
            )
    return known[0][1] if known else ways[0][1]


def attention_head_dim(fields: Fields) -> Size:
    """hidden_size / num_attention_heads: what the model class computes, unless the file says
    otherwise.
    """
    given = fields.optional_size("head_dim")
    hidden = fields.size("hidden_size")
    heads = fields.size("num_attention_heads")
    return (
        fields.quotient(hidden, heads, "hidden_size / num_attention_heads")
        if given is None
        else given
    )


def plain_attention(fields: Fields, *, head_dim: Size | None = None) -> Draft:
    """Full attention of a model class that has no other. Raises ConfigError where the file asks
    for a window all the same.
    """
    for name in ("sliding_window", "attention_chunk_size"):
        if fields.has(name) and not (
            name == "sliding_window" and fields.flag("use_sliding_window") is False
        ):
            raise fields.error(
                f"'{name}' is {shown(fields.data[name])}, but attention of this model type sees"
                " every token; set it to null"
            )
    return full_attention(fields, head_dim=head_dim)


def mamba(
    fields: Fields,
    *,
    width: Size,
    state: tuple[str, ...],
    conv: tuple[str, ...],
    norms: bool = False,
) -> Draft:
    """Mamba of `width` channels; `state` and `conv` are spellings of the state size and the
    kernel. `norms`: whether B, C and the step size's input are normed.
    """
    return Draft(
        Mamba,
        {
            "width": width,
            "state": fields.size(*state),
            "conv": fields.size(*conv),
            "rank": _rank(fields),
            "norms": norms,
            "format": fields.model_format(),
            "state_format": "fp32",
        },
    )


def _rank(fields: Fields) -> int | None:
    """The rank of the step size, where it is another than the model width / 16 (`auto`)."""
    name = fields.find("time_step_rank", "mamba_dt_rank", "dt_rank", "ssm_cfg.dt_rank")
    if name is None or fields.data[name] == "auto":
        return None
    rank = fields.optional_size(name)
    width = fields.optional_size("hidden_size", "d_model")
    return None if width is not None and rank == -(-width // 16) else rank


def mamba2(
    fields: Fields, *, heads: Size, head_dim: Size, state: Size, groups: Size, conv: Size
) -> Draft:
    """Mamba-2 with its state in fp32. Raises ConfigError where the groups do not divide the
    heads.
    """
    if isinstance(heads, int) and isinstance(groups, int) and heads % groups:
        raise fields.error(
            f"{groups} groups do not divide {heads} heads of a Mamba-2 layer; correct one of the"
            " two fields"
        )
    sizes: dict[str, Value] = {
        "heads": heads,
        "head_dim": head_dim,
        "state": state,
        "groups": groups,
        "conv": conv,
    }
    return Draft(Mamba2, sizes | {"format": fields.model_format(), "state_format": "fp32"})


def mamba2_heads(fields: Fields, *, width: Size, heads: str, head_dim: str) -> tuple[Size, Size]:
    """Heads and head dimension; a head dimension that is missing or "auto" is width / heads.
    Raises ConfigError where the three disagree.
    """
    number = fields.size(heads)
    if not fields.has(head_dim) or fields.data[head_dim] == "auto":
        return number, fields.quotient(width, number, f"the width of the recurrence / '{heads}'")
    each = fields.size(head_dim)
    if (
        isinstance(number, int)
        and isinstance(each, int)
        and isinstance(width, int)
        and number * each != width
    ):
        raise fields.error(
            f"'{heads}' x '{head_dim}' is {number} x {each}, but the recurrence has {width}"
            " channels; correct one of them"
        )
    return number, each


def assumed(
    fields: Fields, *, state: str | None = None, attention: bool = True, convolution: bool = True
) -> list[str]:
    """The assumptions of a recurrent family; `state` replaces the sentence about the state."""
    dtype = fields.model_format()
    notes = [state or state_note("fp32")]
    notes += [convolution_note(dtype)] if convolution else []
    return notes + ([cache_note(dtype), ACCUMULATORS] if attention else [])
