"""Facts by their addresses: retrieval in one layer, full, sparse or indexed; copying in two."""

from __future__ import annotations

from separatrix.stacks.architecture import Architecture
from separatrix.stacks.mechanisms import Sparse
from separatrix.tasks import Copying, Eva, Index
from separatrix.theory.solves.places import Attending, finders
from separatrix.theory.solves.room import TAGS, WIDE, Room, bits_of


def retrieval(architecture: Architecture, task: Eva | Index) -> Room | None:
    address, payload = bits_of(task.n), bits_of(task.V)
    heads = finders(architecture, address=address + TAGS, payload=payload, tokens=task.length)
    for one, found in heads:
        asked = found.asked or (
            f"{address} address bits and {TAGS} tags of {one.head.head_dim} key dimensions"
        )
        said = (
            f"one full layer (layer {one.layer + 1}) solves it: {asked}, {payload} answer bits"
            f" of {one.head.dv} value dimensions"
        )
        numbers = found.numbers(address, payload_bits=payload, layer=one.layer)
        return Room(said, numbers, (found.rests_on,))
    return None


def block_retrieval(architecture: Architecture, task: Eva | Index) -> Room | None:
    address, payload = bits_of(task.n), bits_of(task.V)
    for index, layer in enumerate(architecture):
        for part in layer:
            if not isinstance(part, Sparse) or not part.plain or not part.formats <= WIDE:
                continue
            # low address bits cancel in the mean over whole powers of two only
            if part.block < 2 or part.block & (part.block - 1):
                continue
            if part.head.has_room(address + TAGS, payload) and address <= 256:
                said = (
                    f"one sparse layer (layer {index + 1}) solves it, opening 1 block of"
                    f" {part.block} tokens: {address} address bits and {TAGS} tags of"
                    f" {part.head_dim} key dimensions, {payload} answer bits of {part.dv} value"
                    " dimensions"
                )
                numbers = {"address_bits": address, "payload_bits": payload}
                return Room(said, numbers | {"block": part.block, "layer": index})
    return None


def indexed_retrieval(architecture: Architecture, task: Eva | Index) -> Room | None:
    address, payload = bits_of(task.n), bits_of(task.V)
    for index, layer in enumerate(architecture):
        for part in layer:
            choice = part.token_choice
            if choice is None:
                continue
            found = Attending(architecture, index, part, choice.head).places(
                address=address + TAGS, payload=payload, tokens=task.length
            )
            # an indexer that reads every token need not choose
            every = choice.topk >= task.length
            if found is None or not (every or (found.address and choice.dims >= address + TAGS)):
                continue
            turned = 0 if part.rotation is None else part.rotation.dims
            if choice.asking is not None and choice.asking < (found.address or turned):
                continue
            asked = found.asked or (
                f"{address} address bits and {TAGS} tags of {choice.dims} dimensions of the"
                f" indexer and {choice.head.head_dim} key dimensions"
            )
            said = (
                f"one indexed layer (layer {index + 1}) solves it: {asked}, {payload} answer"
                f" bits of {choice.head.dv} value dimensions"
            )
            numbers = found.numbers(address, payload_bits=payload, layer=index)
            return Room(said, numbers, (found.rests_on,))
    return None


def copying(architecture: Architecture, task: Copying) -> Room | None:
    address = bits_of(task.length)
    heads = finders(
        architecture,
        address=address + TAGS,
        payload=max(address, bits_of(task.V)),
        tokens=task.length,
        named=True,
    )
    # of two kinds of heads in one layer the second adds no layer
    layers = {one.layer: found for one, found in heads}
    if len(layers) < 2:
        return None
    first, second, *_ = sorted(layers)
    said = (
        f"two full layers solve it: layer {first + 1} finds the mark, layer {second + 1} looks"
        f" up values by {address} address bits and {TAGS} tags in its keys"
    )
    numbers = {"address_bits": address, "first": first, "second": second}
    return Room(said, numbers, (layers[first].rests_on,))
