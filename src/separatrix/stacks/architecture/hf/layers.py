"""From a row of the table and the fields of a file to layers, and what was assumed of them."""

from __future__ import annotations

from collections.abc import Sequence

from separatrix.stacks.architecture.hf.draft import Draft, Reading
from separatrix.stacks.architecture.hf.fields import Fields
from separatrix.stacks.architecture.hf.hooks import AFTER, NOTES, state_said
from separatrix.stacks.architecture.hf.kinds import Found, listed, told
from separatrix.stacks.architecture.hf.notes import (
    ACCUMULATORS,
    cache_note,
    convolution_note,
    predicted_notes,
)
from separatrix.stacks.architecture.hf.single_layers import Layers, refuse_own
from separatrix.stacks.architecture.hf.table import Row
from separatrix.stacks.mechanisms.base import ATTENTION


def kinds_of(row: Row, fields: Fields) -> Found:
    """The kind of every layer: from the lists that are there, which must agree, or as the model
    class makes them.
    """
    all_ = [(name, listed(fields, name, how)) for name, how in row.lists.items()]
    found = [(name, kinds) for name, kinds in all_ if kinds is not None]
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
    for rule in row.otherwise:
        kinds_told = told(fields, rule)
        if kinds_told is not None:
            return kinds_told
    looked_for = [*row.lists, *row.told_by]
    if row.stateful:
        raise fields.no_pattern(looked_for)
    raise fields.error(
        f"no field says which layers are of which kind (looked for"
        f" {', '.join(map(repr, looked_for))}); add one of them"
    )


def finished(row: Row, fields: Fields, found: Found) -> Reading:
    """The reading of layers whose kinds are known."""
    kinds, said = found
    # fields of recurrences are read of each: a file may say sizes of layers that it lacks
    makers = {kind: row.mixers[kind] for kind in row.mixers if row.stateful or kind in kinds}
    # one draft for all layers that share a mixer
    made = {id(maker): maker(fields) for several in makers.values() for maker in several}
    layers: Layers = tuple(tuple(made[id(maker)] for maker in makers[kind]) for kind in kinds)
    refuse_own(fields, but=row.own)
    if row.after:
        layers, more = AFTER[row.after](fields, kinds, layers)
        said = [*said, *more]
    said = [*said, *(NOTES[name] for name in row.notes)]
    drafts = [*made.values(), *(draft for layer in layers for draft in layer)]
    usual = [*_usual_notes(row, fields, drafts), *predicted_notes(fields)]
    return Reading(layers, tuple([*usual, *said] if row.stateful else [*said, *usual]))


def _usual_notes(row: Row, fields: Fields, drafts: Sequence[Draft]) -> list[str]:
    """What is taken for granted of such mixers in any file."""
    dtype = fields.model_format()
    state = state_said(row.state, fields)
    notes = [state] if any("state_format" in draft.sizes for draft in drafts) else []
    notes += [convolution_note(dtype)] if any("conv" in draft.sizes for draft in drafts) else []
    softmax = any(draft.cls.group in ATTENTION for draft in drafts)
    return notes + ([cache_note(dtype), ACCUMULATORS] if softmax else [])
