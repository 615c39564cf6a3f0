"""To whom a measured row belongs: by hand, one difference at a time."""

from __future__ import annotations

from support.each import each
from support.practice_tables import trial

from separatrix.findings.own import lacks, measured, recorded
from separatrix.findings.results import Cell, Results
from separatrix.stacks.architecture import Architecture
from separatrix.tasks import Task, parse_task

GDN = "gdn(heads=1,head_dim=4,conv=4,negative=true)"
FULL = "full(heads=2,head_dim=16)"
STACK = f"({GDN}*3 + {FULL})*2"
TASK = "recall:n=16,K=16,V=16,form=independent,queries=all"
TOKENS = 48


def cell(
    name: str = "own", stack: str = STACK, task: str = TASK, short: int = 0, seeds: int = 8
) -> Cell:
    """Solved after 400 steps, but for the last seeds, which are not in 3,000."""
    ended = [
        trial(seed, 1000, stopped="solved", steps_done=400)
        if seed < seeds - short
        else trial(seed, 0, steps_done=3000)
        for seed in range(seeds)
    ]
    return Cell(
        name=name,
        stack=stack,
        task=task,
        comparison="one",
        width=32,
        steps=3000,
        stop_at=0.995,
        rate=3e-3,
        seeds=tuple(ended),
    )


def layout(text: str) -> Architecture:
    return Architecture.parse(text)


@each(
    "stack, tokens",
    [
        (STACK, TOKENS),
        # the same cycle, three times as deep: ratio and places stay
        (f"({GDN}*3 + {FULL})*6", TOKENS),
        # widths, states and lengths up to ten times as large, or as small
        (f"({GDN}*3 + full(heads=4,head_dim=80))*2", 10 * TOKENS),
        (STACK, 5),
        # formats say how numbers are kept, and a head of keys how many are shared
        (f"({GDN}*3 + full(heads=2,head_dim=16,kv_heads=1))*2 @ format=bf16", TOKENS),
    ],
)
def test_what_is_a_layouts_own(stack: str, tokens: int) -> None:
    assert lacks(cell(), layout(stack), tokens) == ()


def test_fewer_seeds_than_a_contrast_takes_say_nothing_of_a_layout() -> None:
    """Two seeds that chose a rate would be called "solved by 2 of 2"."""
    own = layout(STACK)
    assert measured(own, TOKENS, (), Results.of([cell(seeds=8)])).own
    found = measured(own, TOKENS, (), Results.of([cell(seeds=7)]))
    assert (found.own, [one.name for one in found.unfinished]) == ((), ["own"])


@each(
    "stack, tokens, differs",
    [
        (f"(mamba2(heads=1,head_dim=4,state=4,conv=4)*3 + {FULL})*2", TOKENS, "mechanisms"),
        (STACK.replace(",negative=true", ""), TOKENS, "gdn negative=true, here false"),
        (STACK.replace("conv=4", "conv=2"), TOKENS, "gdn conv=4, here 2"),
        (STACK.replace("head_dim=16", "head_dim=16,rope=true"), TOKENS, "full rope=false"),
        (f"{GDN}*7 + {FULL}", TOKENS, "2 of 8 layers reading, here 1 of 8"),
        (f"{FULL}*2 + {GDN}*6", TOKENS, "where they stand"),
        (f"({GDN}*3 + {FULL})*21", TOKENS, "layers 8, here 84"),
        # what eight layers solved, four may be unable to
        (f"{GDN}*3 + {FULL}", TOKENS, "layers 8, here 4"),
        # one layer of the cycle alone is another one
        (f"({GDN}*2 + {GDN.replace('conv=4', 'conv=2')} + {FULL})*2", TOKENS, "gdn conv=4, here 2"),
        (STACK.replace("head_dim=16", "head_dim=164"), TOKENS, "width 32, here 328"),
        # 16 numbers of 32 bits and 36 of the convolution; 1,024 and 288
        (STACK.replace("head_dim=4", "head_dim=32"), TOKENS, "bits of state 1,664, here 41,984"),
        (STACK, 481, "tokens 48, here 481"),
        (STACK, 4, "tokens 48, here 4"),
    ],
)
def test_what_is_not(stack: str, tokens: int, differs: str) -> None:
    (said,) = lacks(cell(), layout(stack), tokens)
    assert said.startswith(differs)


def test_the_same_mechanisms_in_another_order_are_another_layout() -> None:
    """Both times four layers of which every other has the convolution; once it comes first."""
    bare = GDN.replace(",conv=4", "")
    trained = cell(stack=f"({GDN} + {bare} + {bare} + {GDN})*2")
    assert lacks(trained, layout(trained.stack), TOKENS) == ()
    other = layout(f"({bare} + {GDN} + {GDN} + {bare})*2")
    assert lacks(trained, other, TOKENS) == ("gdn conv=4, here 0", "gdn conv=0, here 4")
    window = cell(stack="window(heads=2,head_dim=16,size=4)*8")
    wide = layout("window(heads=2,head_dim=16,size=40)*8")
    assert lacks(window, wide, TOKENS)[0] == "window size=4, here 40"


@each(
    "task, differs",
    [
        ("recall:n=16,K=16,V=16,form=independent", []),
        ("recall:n=20,K=32,V=160,form=independent", []),
        # as many questions as it was trained on, or one
        (TASK, []),
        ("recall:n=16,K=16,V=16,form=present", ["form=independent, here present"]),
        ("recall:n=16,K=16,V=161,form=independent", ["V=16, here 161"]),
        ("eva:n=16,V=16", ["task recall, here eva"]),
    ],
)
def test_of_a_task_that_is_asked(task: str, differs: list[str]) -> None:
    assert list(lacks(cell(), layout(STACK), 1 << 18, parse_task(task))) == differs


def test_another_number_of_steps_is_another_task() -> None:
    two = cell(task="seqcomp:L=2,m=4,n_1=3,queries=all,split=1,stages=1")
    three: Task = parse_task("seqcomp:L=3,m=4,n_1=3,n_2=3")
    assert "L=2, here 3" in lacks(two, layout(STACK), TOKENS, three)


def test_every_seed_is_told() -> None:
    """One unsolved seed of eight, and 3,000 steps are more than four times 400."""
    (said,) = measured(layout(STACK), TOKENS, results=Results.of([cell(short=1)])).lines()
    assert "7 of 8 seeds, 400 (from 400 on)" in said
    assert said.count("400,") == 7
    assert "not in 3,000" in said


def test_without_own_rows_the_nearest_is_named_and_no_number_is_said() -> None:
    results = Results.of([cell("far", "mamba2(heads=1,head_dim=4)*8"), cell("near")])
    found = measured(layout(STACK), 8192, results=results)
    assert (found.own, found.nearest) == ((), "near")
    (said,) = found.lines()
    assert said.startswith("nearest is near of the study (differs in")
    assert "tokens 48, here 8,192" in said
    assert "seed" not in said
    assert "400" not in said


def test_what_is_not_trained_to_the_end_is_no_answer_and_no_neighbour() -> None:
    """Nothing in its comparison is solved."""
    results = Results.of([cell(short=8)])
    found = measured(layout(STACK), TOKENS, results=results)
    assert (found.own, [one.name for one in found.unfinished]) == ((), ["own"])
    assert "nothing follows" in found.lines()[0]
    assert measured(layout("full*8"), TOKENS, results=results).own == ()


def test_the_package_has_the_study() -> None:
    """All-full attention solved recall by eight of eight, and no row reaches 8,192 tokens."""
    assert recorded() >= "2026-11-24"
    full = layout("full(heads=2,head_dim=16)*8")
    assert [one.solved for one in measured(full, TOKENS).own if "recall" in one.task] == [8]
    assert measured(full, 8192).own == ()
