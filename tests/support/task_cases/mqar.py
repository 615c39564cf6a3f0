"""MQAR: pairs, then every key once at an even place amid tokens that are no key of the prompt;
the answer is its value, counted from the first.
"""

import itertools
from collections.abc import Iterable

from separatrix.tasks import MQAR
from support.task_cases import Case, Prompt


def recalled(task: MQAR, prompt: list[int]) -> list[int]:
    pairs = 2 * task.num_kv_pairs
    value_of = dict(zip(prompt[:pairs:2], prompt[1:pairs:2], strict=True))
    return [-1] * pairs + [
        value_of[token] - task.vocab_size // 2 if token in value_of else -1
        for token in prompt[pairs:]
    ]


def instances(task: MQAR) -> Iterable[Prompt]:
    half = task.vocab_size // 2
    k = task.num_kv_pairs
    places = range(task.input_seq_len - 2 * k)
    for keys in itertools.permutations(range(1, half), k):
        filler = [token for token in range(task.vocab_size) if token not in keys]
        for values in itertools.product(range(half, task.vocab_size), repeat=k):
            start = tuple(itertools.chain.from_iterable(zip(keys, values, strict=True)))
            for asked in itertools.permutations(places[::2], k):
                at = dict(zip(asked, keys, strict=True))
                yield from (
                    start + rest
                    for rest in itertools.product(
                        *([at[place]] if place in at else filler for place in places)
                    )
                )


def sized(vocab_size: int, input_seq_len: int, num_kv_pairs: int, **more: float) -> MQAR:
    return MQAR(
        vocab_size=vocab_size,
        input_seq_len=input_seq_len,
        num_kv_pairs=num_kv_pairs,
        **more,  # type: ignore[arg-type]
    )


CASE = Case(
    kind=MQAR,
    examples=[
        *(
            sized(16, 16, 3),
            sized(12, 20, 5, power_a=1.0),
            sized(33, 24, 4, power_a=0.5, random_non_queries=0),
            sized(8, 4, 1),
        ),
    ],
    tiny=[
        sized(4, 4, 1),
        sized(5, 4, 1),
        sized(6, 4, 1),
        sized(8, 4, 1),
        sized(4, 6, 1),
        sized(6, 6, 1),
        sized(6, 8, 2),
        sized(7, 8, 2),
    ],
    by_hand=recalled,
    instances=instances,
    bad=[
        ("mqar:vocab_size=16,input_seq_len=16", "size num_kv_pairs is missing"),
        (
            "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=0",
            "num_kv_pairs is 0; it must be an integer from 1",
        ),
        (
            "mqar:vocab_size=16,input_seq_len=14,num_kv_pairs=4",
            "input_seq_len is 14; it must be an integer from 16",
        ),
        ("mqar:vocab_size=16,input_seq_len=17,num_kv_pairs=4", "it must be even"),
        (
            "mqar:vocab_size=9,input_seq_len=16,num_kv_pairs=4",
            "vocab_size is 9; it must be an integer from 10",
        ),
        (
            "mqar:vocab_size=3,input_seq_len=4,num_kv_pairs=1",
            "vocab_size is 3; it must be an integer from 4",
        ),
        ("mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4,power_a=0", "power_a is 0"),
        ("mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4,power_a=nan", "power_a is 'nan'"),
        ("mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4,power_a=half", "power_a is 'half'"),
        (
            "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4,random_non_queries=2",
            "random_non_queries is 2; it must be an integer from 0 to 1",
        ),
        ("mqar:vocab=16,input_seq_len=16,num_kv_pairs=4", "Did you mean 'vocab_size'"),
    ],
)
