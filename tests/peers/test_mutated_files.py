"""Files of tiny models of transformers with one field changed, as files are that people or other
releases wrote: what is counted is what the class's cache then holds, or the file is refused.

A few families here; `python tests/peers/test_mutated_files.py` asks all of them, in five minutes.
"""

from __future__ import annotations

import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
if __name__ == "__main__":
    # as pytest finds its helpers
    sys.path.insert(0, str(Path(__file__).parents[1]))
torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

from peers.test_every_family import (  # noqa: E402
    ALL_KEPT,
    AUTO,
    NO_CACHE,
    NOT_RUN,
    REFUSED,
    TOGETHER,
    TOO_LARGE,
    counted,
)
from support.real_caches import carried  # noqa: E402
from support.tiny_configs import VOCABULARY, tiny  # noqa: E402

from separatrix.core.errors import ConfigError  # noqa: E402

pytestmark = pytest.mark.filterwarnings(
    "ignore::DeprecationWarning", "ignore::FutureWarning", "ignore::UserWarning"
)
File = dict[str, Any]
T = 96


def _without(*names: str, **more: Any) -> Callable[[File], File]:
    return lambda file: {k: v for k, v in file.items() if k not in names} | more


MUTATIONS: dict[str, Callable[[File], File]] = {
    "no head_dim": _without("head_dim"),
    "other heads": lambda file: file | ({"head_dim": 16} if "head_dim" in file else {}),
    # in some classes another name of a size that the file has
    "head_dim beside": lambda file: file | {"head_dim": 16},
    "one key head": lambda file: (
        file | ({"num_key_value_heads": 1} if file.get("num_key_value_heads") == 2 else {})
    ),
    "no key heads": _without("num_key_value_heads"),
    "switched on": lambda file: file | {"use_sliding_window": True},
    "switched off": lambda file: file | {"use_sliding_window": False},
    "other window": lambda file: file | {"sliding_window": 24},
    "null window": lambda file: (
        file | ({"sliding_window": None} if "sliding_window" in file else {})
    ),
    "no list": _without("layer_types"),
    "a pattern": _without("layer_types", sliding_window_pattern=3),
    "a chunk": lambda file: file | {"attention_chunk_size": 24},
    "first windows": lambda file: file | {"max_window_layers": 3},
    "fewer layers": _without("layer_types", "mlp_layer_types", num_hidden_layers=6),
}
MASKED = frozenset((("minimax", "other window"),))
"""Whose class masks by a window and caches all tokens; what is counted is what later ones see."""


def compared(kind: str) -> Iterator[tuple[str, str]]:
    """Each mutation of a family's file that the class takes, and how its cache compares."""
    file = json.loads(tiny(kind).to_json_string())
    for name, change in MUTATIONS.items():
        other = change(file)
        if other == file:
            continue
        try:
            config = transformers.CONFIG_MAPPING[kind].from_dict(dict(other))
            torch.manual_seed(0)
            ids = torch.randint(4, VOCABULARY - 4, (1, T))
            found = dict(carried(AUTO[kind].from_config(config).eval(), ids))
        except Exception:
            continue
        try:
            ours = counted(kind, other, T)
        except ConfigError:
            yield name, "refused"
            continue
        theirs = [found.get(i, 0) for i in range(len(ours))]
        if kind in TOGETHER:
            same = sum(ours) == sum(found.values())
        elif kind in NO_CACHE:
            same = not any(found.values())
        else:
            same = ours == theirs and sum(found.values()) == sum(theirs)
        masked = kind in ALL_KEPT or (kind, name) in MASKED
        yield name, "equal" if same or masked else f"{ours} is counted, {theirs} cached"


@pytest.mark.parametrize(
    "kind",
    [
        *("llama", "mistral", "qwen2", "gemma2", "olmo2", "dots1", "cohere_compass_text", "moshi"),
        *("recurrent_gemma", "minimax", "jetmoe", "glm4_moe_lite"),
    ],
)
def test_a_field_that_is_changed_changes_both_or_is_refused(kind: str) -> None:
    answers = dict(compared(kind))
    assert len(answers) > 5
    assert "equal" in answers.values()
    assert set(answers.values()) <= {"equal", "refused"}


if __name__ == "__main__":
    torch.set_num_threads(1)
    totals: Counter[str] = Counter()
    for each in sorted(set(AUTO) - set(REFUSED) - set(NOT_RUN) - TOO_LARGE):
        if getattr(transformers.CONFIG_MAPPING[each](), "text_config", None) is not None:
            # its language model is a family itself
            continue
        for name, answer in compared(each):
            totals[answer if answer in ("equal", "refused") else "unlike"] += 1
            if answer not in ("equal", "refused"):
                print(f"{each}, {name}: {answer}")
    print(dict(totals))
