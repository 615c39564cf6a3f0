"""One reader for all model types: from a row of the table and the fields of a file to layers and
what was assumed.
"""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.stacks.architecture.hf.draft import Draft, Reading
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.notes import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    predicted_notes,
    state_note,
)
from separatrix.stacks.architecture.hf.row import Found, Layers, Maker, Row
from separatrix.stacks.architecture.hf.single_layers import refuse_own
from separatrix.stacks.mechanisms.base import ATTENTION


def read(row: Row, fields: Fields) -> Reading:
    """The layers of a file of that model type. Raises ConfigError where the file does not tell
    them, or tells two things.
    """
    fields = row.before(fields)
    fields.harmless(*row.silent)
    if row.read is not None:
        return row.read(row, fields)
    return finished(row, fields, kinds_of(row, fields))


def kinds_of(row: Row, fields: Fields) -> Found:
    """The kind of every layer: from the lists that are there, which must agree, or as the model
    class makes them.
    """
    found = [(lists.field, kinds) for lists in row.lists if (kinds := lists(fields)) is not None]
    for name, kinds in found[1:]:
        if kinds != found[0][1]:
            raise fields.error(
                f"'{found[0][0]}' and '{name}' both list the layers and disagree; remove the wrong"
                " one"
            )
    if found:
        kinds = found[0][1]
        if "window" in kinds and fields.flag("use_sliding_window") is False:
            raise fields.error(
                "'use_sliding_window' is false, but layers are listed as sliding; correct one of"
                " them"
            )
        return list(kinds), []
    if not row.stateful:
        fields.refuse_recurrent_looks()
    for otherwise in row.otherwise:
        told = otherwise(fields)
        if told is not None:
            return told
    looked_for = [*(lists.field for lists in row.lists), *row.told_by]
    if row.stateful:
        raise fields.no_pattern(looked_for)
    raise fields.error(
        f"no field says which layers are of which kind (looked for"
        f" {', '.join(map(repr, looked_for))}); add one of them"
    )


def finished(row: Row, fields: Fields, found: Found) -> Reading:
    """The reading of layers whose kinds are known."""
    kinds, said = found
    makers: dict[str, tuple[Maker, ...]] = {
        kind: makers if isinstance(makers, tuple) else (makers,)
        for kind, makers in row.mixers.items()
        # fields of recurrences are read of each: a file may say sizes of layers that it lacks
        if row.stateful or kind in kinds
    }
    # one draft for all layers that share a mixer
    made = {id(maker): maker(fields) for several in makers.values() for maker in several}
    layers: Layers = tuple(tuple(made[id(maker)] for maker in makers[kind]) for kind in kinds)
    refuse_own(fields, but=row.own)
    if row.after is not None:
        layers, more = row.after(fields, kinds, layers)
        said = [*said, *more]
    said = [*said, *row.notes]
    drafts = [*made.values(), *(draft for layer in layers for draft in layer)]
    usual = [*usual_notes(row, fields, drafts), *predicted_notes(fields)]
    return Reading(layers, tuple([*usual, *said] if row.stateful else [*said, *usual]))


def usual_notes(row: Row, fields: Fields, drafts: Sequence[Draft]) -> list[str]:
    """What is taken for granted of such mixers in any file."""
    dtype = fields.model_format()
    state = state_note("fp32") if row.state is None else row.state(fields)
    notes = [state] if any("state_format" in draft.sizes for draft in drafts) else []
    notes += [convolution_note(dtype)] if any("conv" in draft.sizes for draft in drafts) else []
    softmax = any(draft.cls.group in ATTENTION for draft in drafts)
    return notes + ([cache_note(dtype), ACCUMULATORS] if softmax else [])
