"""GPT-Neo: full layers and local ones that see a window, told by a list of patterns."""

from __future__ import annotations

from separatrix.architecture.hf.attention import softmax_sizes
from separatrix.architecture.hf.draft import Draft, Reading
from separatrix.architecture.hf.family import Family
from separatrix.architecture.hf.fields import Fields, shown
from separatrix.architecture.hf.stack import attention_reading
from separatrix.evidence.canonical import json_list
from separatrix.mechanisms import Full, Window

_WORDS = {"global": Full, "local": Window}


def gpt_neo(fields: Fields) -> Reading:
    """`attention_types`: lists of kinds with how often they repeat; `attention_layers`, the same
    written out, must agree. Local layers see `window_size` tokens.
    """
    depth = fields.layers("num_layers", "num_hidden_layers")
    kinds: list[object] = []
    for entry in json_list(fields.value("attention_types")) or []:
        pair = json_list(entry) or []
        words = json_list(pair[0]) if pair else None
        times = pair[1] if len(pair) == 2 else None
        if words is None or type(times) is not int or not 1 <= times <= depth:
            raise fields.error(
                f"'attention_types' holds {shown(entry)}; it must be kinds of layers and how often"
                " they repeat"
            )
        kinds += words * times
    listed = json_list(fields.value("attention_layers"))
    if listed is not None and listed != kinds:
        raise fields.error("'attention_layers' and 'attention_types' disagree; correct one of them")
    if len(kinds) != depth or any(kind not in _WORDS for kind in kinds):
        raise fields.error(
            f"'attention_types' makes {len(kinds)} layers; it must make {depth}, each global or"
            " local"
        )
    heads = fields.size("num_heads", "num_attention_heads")
    width = fields.size("hidden_size")
    dims = fields.quotient(width, heads, "hidden_size / num_heads")
    sizes = softmax_sizes(fields, head_dim=dims, kv_heads=heads) | {"heads": heads}
    made = {
        "global": Draft(Full, sizes),
        "local": Draft(Window, sizes | {"size": fields.size("window_size")}),
    }
    return attention_reading(fields, [made[str(kind)] for kind in kinds])


FAMILIES: dict[str, Family] = {"gpt_neo": gpt_neo}
CLASSES: dict[str, str] = {"GPTNeoForCausalLM": "gpt_neo"}
