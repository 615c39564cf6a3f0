"""What the sections of the net are about: stacks, tasks, sizes, replies, forgeries, bad inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

STACKS = (
    *("full", "full*2", "full*3", "full*4 @ heads=1, head_dim=8", "full(rope=true, rope_dim=4)"),
    *("full @ positions=none", "full(causal=false)*3", "full*2 @ bf16", "full(sink=true)*2"),
    *("gdn*4", "linear @ heads=1, head_dim=8", "linear*3 @ heads=2, head_dim=4", "mamba2*2"),
    *("gdn @ heads=1, head_dim=2, p2", "window(size=8)*2", "chunked(size=8)*2", "rwkv*2"),
    *("gdn + full", "full + gdn", "gdn*3 + full @ bf16", "mamba2*2 + full", "shortconv + full"),
    *("shortconv + full @ positions=none", "full*3 + linear @ heads=1, head_dim=16"),
    *("full + full + full + linear @ heads=1, head_dim=8", "full|gdn", "fox", "loglinear*2"),
    *("sparse(block=4)", "sparse(block=4, topk=2)*2", "sparse(block=4, topk=1) @ heads=1, p3"),
    *("mla(latent=32, rope_dim=4)", "indexed(topk=3)", "dsa", "nsa", "moba", "automaton(bits=8)"),
    *("rwkv + full*4 @ heads=1, head_dim=32", "gdn*2 + full*2 + window(size=16)"),
)
VERDICTS = (
    *("eva:n=8,V=8", "eva:n=65536,V=256", "index:n=64,V=64", "recall:n=8,K=16,V=4"),
    *("recall:n=64,K=256,V=32,form=absent", "recall:n=256,K=1024,V=256"),
    *(
        "mqar:vocab_size=64,input_seq_len=64,num_kv_pairs=4",
        "copying:n=24,V=4",
        "cgram:n=26,V=8,c=2",
    ),
    *("seqcomp:L=1,m=6", "seqcomp:L=2,m=4,n_1=2"),
    *("seqcomp:L=2,m=4,n_1=2,thought=pairs",),
    *("seqcomp-forward:L=2,n=64", "khop:n=64,V=8,k=7", "state-recall:n=6,V=2,K=24,P=6"),
    *("twosum:n=12,M=32", "twosum:n=64,M=4099,form=decision", "threesum:n=24,M=4099"),
    *("counting:n=24", "parity:n=32", "modular:n=48,m=3", "majority:n=15", "equality:n=24"),
    *("disjointness:n=16", "dyck:n=96,k=2,D=6", "permutation:n=16,k=4", "group:n=24,G=A5"),
    *(
        "istree:n=64",
        "qsa:n=8,q=3,V=2",
        "neighbour:n=4,d=12,V=2",
        "fuzzy-recall:n=24,K=2,V=6,a=4,b=2",
    ),
)
SEARCHED = (
    ("full*3 + linear @ heads=1, head_dim=16", "seqcomp:L=3,m=584,n_1=2,n_2=2"),
    (
        "full + full + full + linear @ heads=1, head_dim=8",
        "seqcomp:L=3,m=1375148573838972,n_1=646,n_2=5375",
    ),
    ("full*2", "seqcomp:L=2,n=65536"),
    ("full*2", "seqcomp:L=3,m=8,n_1=2,n_2=2"),
    ("gdn + full", "seqcomp:L=3,n=512"),
    ("full + gdn", "seqcomp:L=3,n=512"),
    ("full(rope=true)*3", "seqcomp:L=3,n=512"),
    ("sparse(block=4, topk=2)*2", "seqcomp:L=3,n=512"),
    ("nsa", "seqcomp:L=3,m=584,n_1=2,n_2=2"),
)
"""Stacks and tasks whose n a search has to find."""
FEW_PRESETS = (
    *("llama-3.1-8b", "qwen3-next-80b", "mamba-2.8b", "deepseek-v3.2", "recurrentgemma-2b"),
    *("rwkv-4-7b-pile",),
)
COMPARED = (
    "llama-3.1-8b qwen3-next-80b --context 131072",
    "'(gdn*3 + full)*2' 'gdn*7 + full' 'mamba2*8' --context 4096",
    "deepseek-v3.2 recurrentgemma-2b rwkv-4-7b-pile --context 8192",
)
ADVERSARIES = ((3, 1, 3, 2, 13, 1), (4, 1, 4, 15, 1, 1), (2, 3, 2, 3, 8, 5), (3, 2, 1, 1, 2, 40))
"""m, n_1, t, caches of z_0, readings, caches of z_1."""
DESIGNS = (
    "--task seqcomp:L=2 --cache 512MiB --context 8192 --layers 8",
    "--task eva:V=1000 --task twosum:M=4096 --cache 64MiB --context 4096 --layers 6",
    "--task seqcomp:L=3 --task eva:V=50000 --context 65536 --cache 1GiB --base qwen3-next-80b",
    "--task recall:K=4096,V=64 --cache 32MiB --context 8192 --layers 4",
    "--task seqcomp:L=2 --cache 1KiB --context 8192 --layers 4",
)
CONSTRUCTED = {
    "retrieval": "eva:n=6,V=5",
    "sparse-retrieval": "eva:n=16,V=8",
    "indexed-retrieval": "eva:n=8,V=8",
    "seqcomp": "seqcomp:L=2,m=4,n_1=2",
    "carried": "seqcomp:L=2,m=4,n_1=2",
    "match2": "twosum:n=6,M=9,form=query",
    "match2-bits": "twosum:n=6,M=70,form=query",
    "pairs": "twosum:n=6,M=8,form=decision",
    "equality": "equality:n=6",
    "neighbour": "neighbour:n=4,d=6,V=2",
    "brackets": "dyck:n=8,k=2,D=3",
    "parity": "parity:n=9",
    "modular": "modular:n=9,m=5",
    "permutation": "permutation:n=6,k=3",
    "group": "group:n=6,G=A4",
    "swaps": "permutation:n=6,k=3,shift=swaps",
    "counted-parity": "parity:n=9",
    "counted-modular": "modular:n=9,m=5",
    "multiplied-parity": "parity:n=9",
    "multiplied-modular": "modular:n=9,m=5",
    "multiplied-permutation": "permutation:n=6,k=3",
    "multiplied-group": "group:n=6,G=A4",
    "automaton": "eva:n=4,V=2",
    "thought": "seqcomp:L=2,m=4,n_1=2,thought=pairs",
    "index": "index:n=6,V=5",
    "recall": "recall:n=6,K=7,V=4",
    "mqar": "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4",
    "carried-recall": "recall:n=6,K=7,V=4",
    "carried-mqar": "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4",
    "cgram": "cgram:n=26,V=8,c=2",
    "induction-recall": "recall:n=6,K=7,V=4",
    "induction-mqar": "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4",
    "induction-noisy-recall": "noisy-recall:n=4,noise=4,K=7,V=4",
    "induction-cgram": "cgram:n=26,V=8,c=2",
    "induction-twosum": "twosum:n=8,M=13,form=query",
    "khop": "khop:n=24,V=4,k=4",
    "copying": "copying:n=8,V=4",
    "counting": "counting:n=9",
    "encoder": "seqcomp:L=2,m=4,n_1=2",
    "qsa": "qsa:n=8,q=2,V=4,sets=6",
    "question-first": "recall:n=6,K=7,V=4,form=absent,question=first",
}
"""A construction -> the one small size at which it is built."""
PRECISION = (
    "retrieval --most 48 --tokens 2048 --formats fp64,fp32,bf16,fp16",
    "seqcomp --most 24 --tokens 2048 --formats fp64,fp32,bf16,fp16",
    "match2 --most 128 --tokens 2048 --formats fp32,bf16,p12",
    "counting --most 64 --tokens 2048 --formats bf16,fp16",
    "parity --most 32 --tokens 2048 --formats fp32,fp16",
)
CURVES = tuple(
    (stack if "width" in stack else f"{stack} @ heads=2, head_dim=4", task)
    for task, stacks in {
        "eva:n=6,V=4": (
            *("full", "fox", "window(size=4)", "chunked(size=4)", "linear", "gdn", "kda", "gla"),
            *("deltaproduct", "loglinear", "retnet", "mlstm", "lightning", "hgrn2"),
            *("mamba2", "mamba(width=16)", "rwkv(width=16)", "rglru(width=16)", "deltanet"),
            *("sparse(block=2, topk=2)", "mla(latent=8, rope_dim=2)", "shortconv(width=16)"),
            *("nsa(block=2, stride=1, selected=2, topk=3, window=3)",),
            *("moba(block=2, topk=2)", "indexed(topk=3, index_dim=2)", "gdn|full"),
        ),
        "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4": ("full*2", "gdn + full"),
        "seqcomp:L=2,m=4,n_1=2,thought=values": ("full*2",),
    }.items()
    for stack in stacks
)
DRAWN = {
    **{
        name: f"{name}{sizes} @ heads=1, head_dim=2"
        for name, sizes in {
            "full": "",
            "fox": "",
            "mla": "(latent=4, rope_dim=2)",
            "window": "(size=3)",
            "chunked": "(size=3)",
            "sparse": "(block=2, topk=2)",
            "nsa": "(block=2, stride=2, selected=2, topk=3, window=3)",
            "moba": "(block=2, topk=2)",
            "indexed": "(topk=3, index_dim=2)",
            "dsa": "(topk=3, latent=4, rope_dim=2, index_dim=2)",
            "rwkv": "(width=8)",
            "mamba2": "(state=4)",
        }.items()
    },
    **{
        name: f"{name} @ heads=1, head_dim=2"
        for name in (
            *("linear", "lightning", "retnet", "gla", "hgrn2", "deltanet", "gdn", "deltaproduct"),
            *("kda", "mlstm", "loglinear"),
        )
    },
    **{name: f"{name}(width=8)" for name in ("mamba", "rglru", "shortconv")},
    "automaton": "automaton(bits=8)",
}
"""Every mechanism that can be built -> a small one, of which no two compute the same."""
REFUTED = (
    ("linear @ heads=1, head_dim=2, p2", "eva:n=8,V=8"),
    ("window(size=3) @ heads=1, head_dim=2, p3", "seqcomp:L=2,m=4,n_1=2"),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=2, p3", "twosum:n=12,M=32"),
    ("full*2 @ heads=1, head_dim=2", "recall:n=8,K=12,V=6,form=absent"),
    ("gdn @ heads=1, head_dim=2", "parity:n=64"),
    ("rwkv(width=8) @ heads=1, head_dim=2", "parity:n=64"),
    ("mamba2(state=4) @ heads=1, head_dim=2", "dyck:n=96,k=2,D=5"),
)

Edit = Callable[[dict[str, Any]], None]


def _put(name: str, value: Any) -> Edit:
    def edit(body: dict[str, Any]) -> None:
        body[name] = value(body[name]) if callable(value) else value

    return edit


def _drop(name: str) -> Edit:
    def edit(body: dict[str, Any]) -> None:
        del body[name]

    return edit


_EVERYWHERE: dict[str, Edit] = {
    "another architecture": _put("architecture", "full*9 @ heads=3, head_dim=5"),
    "an unreadable architecture": _put("architecture", "linear ++"),
    "another task": _put("task", "eva:n=9,V=8"),
    "an unknown task": _put("task", "evo:n=8,V=8"),
    "another spelling of the task": _put("task", lambda task: task.replace("=", " = ", 1)),
    "no task": _drop("task"),
    "a task that is a number": _put("task", 3),
    "a field more": _put("more", 1),
}
FORGERIES: dict[str, dict[str, Edit]] = {
    "verdict": _EVERYWHERE
    | {
        "another status": _put(
            "status", lambda said: "FAILS" if said == "SOLVABLE" else "SOLVABLE"
        ),
        "a status that is none": _put("status", "SOLVED"),
        "another n": _put("n", lambda n: (n or 0) - 1),
        "another theorem": _put("theorem", "III"),
        "an unknown theorem": _put("theorem", "XX"),
        "another number": _put("numbers", lambda them: {key: n + 1 for key, n in them.items()}),
        "no numbers": _put("numbers", {}),
        "a huge number": _put("numbers", lambda them: dict.fromkeys(them, 10**400)),
        "another sentence": _put("statement", lambda text: f"{text} Always."),
        "other premises": _put("premises", []),
        "another slack": _put("slack", "[1, 2]"),
    },
    "construction": _EVERYWHERE
    | {
        "another name": _put("name", "retrieval"),
        "an unknown name": _put("name", "magic"),
        "another margin": _put("proof", lambda proof: proof | {"final_margin": "9"}),
        "a layer less": _put("proof", lambda proof: proof | {"layers": proof["layers"][1:]}),
        "no proof": _put("proof", {}),
        "unproved": _put(
            "proof", lambda proof: {"arithmetic": proof["arithmetic"], "unproved": ""}
        ),
        "another sentence": _put("statement", "It solves everything."),
        "other sizes": _put("sizes", lambda sizes: {key: n + 1 for key, n in sizes.items()}),
        "a width too large": _put("model", lambda model: model | {"width": 1 << 40}),
        "a width of text": _put("model", lambda model: model | {"width": "wide"}),
        "other weights": _put("weights_sha256", "0" * 64),
        "weights elsewhere": _put("weights", "../weights.safetensors"),
    },
    "certificate": _EVERYWHERE
    | {
        "another answer": _put("answers", lambda them: [(them[0] + 1) % 2, *them[1:]]),
        "another output": _put("output", lambda number: number + 1),
        "another token": _put(
            "inputs", lambda them: [[(them[0][0] + 1) % 4, *them[0][1:]], *them[1:]]
        ),
        "a token that is none": _put("inputs", lambda them: [[-1, *them[0][1:]], *them[1:]]),
        "a prompt more": _put("inputs", lambda them: [*them, them[0]]),
        "no prompt": _put("inputs", []),
        "another form": _put("form", "wrong_answer"),
        "an unknown form": _put("form", "proof"),
        "no weights": _put("weights", {}),
        "a weight less": _put("weights", lambda them: dict(sorted(them.items())[1:])),
        "weights of no type": _put(
            "weights", lambda them: {name: one | {"dtype": "pickle"} for name, one in them.items()}
        ),
        "weights cut": _put(
            "weights",
            lambda them: {name: one | {"data": one["data"][:-8]} for name, one in them.items()},
        ),
        "another cache": _put("cache_format", "p9:step=2^-1"),
        "no details": _put("details", {}),
    },
    "measurement": _EVERYWHERE
    | {
        "a right answer more": _put("correct", lambda them: [them[0] + 1, *them[1:]]),
        "more right than asked": _put("correct", lambda them: [10**9, *them[1:]]),
        "a seed less": _put("seeds", lambda them: them[1:]),
        "a seed twice": _put("seeds", lambda them: [them[0]] * len(them)),
        "another total": _put("total", lambda total: total - 1),
        "no total": _put("total", 0),
        "another chance": _put("chance", "1/5"),
        "a narrower interval": _put("intervals", lambda them: [["0.3", "0.3"], *them[1:]]),
        "another confidence": _put("confidence", "0.99"),
        "no budget": _put("budget", {}),
        "more steps done": _put("budget", lambda them: them | {"steps_done": [10**9, 40]}),
        "another optimiser": _put("budget", lambda them: them | {"optimiser": "luck"}),
        "longer prompts said": _put("longer", [{"task": "eva:n=5,V=4"}]),
    },
}
"""Kind of record -> one thing said otherwise, in words -> how."""

_NAMES = ("Ada", "Ben", "Cy Young", "Dee")
_NUMBERS = (
    *("7", " 7 ", "The answer is 7.", "**7**", "\\boxed{7}", "<answer>7</answer>", "Answer: 7"),
    *("It could be 4 or 5.", "not 5", "5, no: 7", "Is it 7?", "", "none", "12", "-3", "7.5", "07"),
    *("<think>5</think>7", "<think>5", "1. First look at 3.\n2. Then at 5.\nSo the answer is 6."),
    *("7\n\nQuestion: next\nAnswer: 5", "f(3) = 5, so the answer is $5$.", "seven", "７", "1,000"),
    *("The final answer is: **3**\nI hope this helps!", "x = 4\ny = 5", "answer is 4, answer is 5"),
    *("~~4~~ 5", "Let me see... 3 → 5 → 6", "`7`", "[7]", "7 (mod 9)", "Answer:\n\n7", "7!"),
)
_ARRANGEMENTS = (
    *(
        "0 1 2 3",
        "3, 2, 1, 0",
        "[1, 0, 3, 2]",
        "(0 1 2 3)",
        "0 1 2",
        "0 1 2 2",
        "0123",
        "2 1 0 3 4",
    ),
    *("The answer is 1 2 3 0.", "\\boxed{3 2 1 0}", "Before: 0 1 2 3\nAfter: 1 0 2 3", "none"),
)
_WORDS = (
    *("Ada", "ada", "The answer is Ben.", "Ada or Ben", "Cy Young", "cy  young", "Eve", "not Dee"),
    *("**Dee**", "Ada, Ben", "Ada's", "<answer>Ben</answer>", "Who is it? Ada", "Ben and Ada", ""),
)
REPLIES: tuple[tuple[tuple[Any, ...], tuple[str, ...], str], ...] = (
    *((("number", 9), (), reply) for reply in _NUMBERS),
    *((("arrangement", 4), (), reply) for reply in _ARRANGEMENTS),
    *((("names", 1), _NAMES, reply) for reply in _WORDS),
    *((("names", 2, True), _NAMES, reply) for reply in _WORDS),
    *((("names", 1, False, "[A-Z][a-z]+"), (), reply) for reply in _WORDS),
)
"""What an answer looks like, the names there are, and what a model wrote."""

BAD_INPUTS = (
    "reproduce --seed -1",
    "reproduce --workers 0",
    "reproduce --config no-such-preset",
    "analyze",
    "analyze no-such-model",
    "analyze 'full ++'",
    "analyze text.json",
    "analyze list.json",
    "analyze config.json",
    "analyze short.json",
    "analyze missing.json",
    "analyze llama-3.1-8b --context 0",
    "analyze llama-3.1-8b --context 8k9",
    "analyze llama-3.1-8b --set no_such=3",
    "analyze llama-3.1-8b --memory 80",
    "analyze 'full(heads=0)'",
    "analyze 'full @ heads=99999999999999999999'",
    "analyze full --no-such-option",
    "check-mechanism no-such",
    "check-mechanism no_such_module:Mixer",
    "check-mechanism gdn --set formats=fp7",
    "check-mechanism gdn --set state",
    "task no-such audit",
    "task eva:n=0 audit",
    "task eva audit --number 1",
    "compare llama-3.1-8b",
    "compare llama-3.1-8b no-such",
    "compare llama-3.1-8b mamba-2.8b --context -4",
    "design",
    "design --task seqcomp:L=2",
    "design --task seqcomp:L=2 --cache 2",
    "design --task no-such --cache 2GiB",
    "design --task seqcomp:L=2 --cache 2GiB --place middle",
    "design --task seqcomp:L=2 --cache 2GiB --layers 4-",
    "design --task seqcomp:L=2 --cache 2GiB --set format=guessed",
    "construct eva:n=4 --out empty",
    "construct eva:n=4,V=4 --arch gdn --out new",
    "construct eva:n=4,V=4 --kind no-such --out new",
    "construct istree:n=64 --out new",
    "construct eva:n=4,V=4 --format fp3 --out new",
    "construct eva:n=8,V=8,queries=all --out new",
    "list constructions --no-such",
    "refute full --task eva:n=8,V=8 --method no-such",
    "refute full --task eva:n=8,V=8 --method collision",
    "refute full --task eva",
    "refute empty --task eva:n=8,V=8",
    "verify missing.json",
    "verify text.json",
    "verify list.json",
    "verify old.json",
    "verify empty",
    "list constructions no-such",
    "list constructions retrieval --sizes eva:n=4,V=4",
    "list constructions retrieval --formats fp3",
    "list constructions retrieval --most 1",
    "train missing.yaml",
    "train sweep.yaml --dry-run",
    "train broken.yaml --dry-run",
    "list experiments no-such",
    "train capacity --retry",
    "train full eva:n=4,V=4 --steps 0 --out new",
    "train full no-such --out new",
    "train full eva:n=4,V=4 --set optimiser=sgd --out new",
    "train full eva:n=4,V=4 --out empty",
    "train full eva:n=4,V=4 --device tpu --out new",
    "task eva evaluate empty",
    "task eva evaluate missing",
    "list presets --no-such",
    "list theorems XX",
    "list tasks no-such",
    "task eva:n=four sample",
    "task eva:n=4,V=4 sample --number 0",
    "task seqcomp:L=2,thought=words sample",
    "task eva:n=4,V=4 export --format csv --out new",
    "task eva:n=2,V=2 export --format jsonl --out new --rows test=1000",
    "task eva:n=4,V=4 export --format jsonl --out empty --rows test=3",
    "list mechanisms no-such",
    "runs list --store missing.sqlite",
    "runs show abc --store missing.sqlite",
    "runs export out.xls --store missing.sqlite",
    "runs summary --store missing.sqlite --sweep no",
    "explore no-such-model",
    "explore full --port 0",
    "explore full --context 0",
    "trial full gdn",
    "trial full --task eva:n=4,V=4",
    "trial full no-such --task eva:n=4,V=4",
    "trial full gdn --task eva:n=4,V=4 --seeds 0",
    "trial full gdn --task eva:n=4,V=4 --hours -1",
    "trial full gdn --task eva:n=4,V=4 --out empty --dry-run",
    "no-such-command",
    "sweep missing.yaml",
    "theorems show III",
    "train full --task eva:n=4",
)
"""Command lines that are refused."""
