"""A task folder of lm-evaluation-harness (0.4.11 or later): one YAML file per way to ask, rows as
JSON lines, and what loads them.

`lm_eval --include_path DIR --tasks NAME` runs it wherever the folder stands. Where the steps to the
answer are known, NAME_cot asks for them first; a task that is asked step by step anyway
(thought=values, style=steps) has no other. NAME_chat is for chat models: they may think as long as
they like. What a model must write stands above the first question, and in each question of the
other two. What it wrote is read by exports/replies.py, which the folder carries in rows.py.
"""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

from separatrix.core.evidence.canonical import package_version
from separatrix.tasks.base.described import file_name
from separatrix.tasks.exports import replies
from separatrix.tasks.exports.asking import (
    ANSWER_ENDS,
    STEPS_END,
    description,
    most_written,
    refuse_pairs,
)
from separatrix.tasks.exports.card import Function, card, dumped, level_of, probability, write_lines
from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.source import CUE, CUE_STEPS, at_length, manner
from separatrix.tasks.measured import MEANT

_LOADER = '''

# what lm-evaluation-harness asks of this file

SHAPE = {shape}
LEAD = {lead}


def load(max_gen_toks=0, **given):
    """Every split by its name. Raises ValueError where a question does not fit the context of the
    model, as far as that is known; how many solved ones fit beside it stands in their rows.
    """
    files = sorted(Path(__file__).parent.glob("*.jsonl"))
    splits = {{file.stem: rows(file) for file in files}}
    length, tokens = context(given)
    if length:
        longest = max(tokens(LEAD + row["prompt"]) for row in splits["test"])
        if longest + max_gen_toks > length:
            raise ValueError(
                f"a question takes {{longest}} tokens, and an answer may take {{max_gen_toks}};"
                f" the model's context has {{length}}. Export smaller sizes, or allow fewer:"
                " max_gen_toks, in --gen_kwargs and in --metadata"
            )
        for solved in (splits[name] for name in splits if name != "test"):
            most = max(
                tokens(" ".join([row["prompt"], *(row.get("steps") or ()), row["completion"]]))
                for row in solved
            )
            for row in solved:
                row["room"] = (length - longest - max_gen_toks) // most
    return {{name: datasets.Dataset.from_list(split) for name, split in splits.items()}}


def context(given):
    """(tokens of the model's context, 0 where that is not known; what counts those of a text)."""
    name = given.get("tokenizer") or given.get("pretrained")
    if not name:
        return 0, len
    try:
        from transformers import AutoConfig, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained(name)
        config = AutoConfig.from_pretrained(given.get("pretrained") or name).get_text_config()
    except (ImportError, OSError, ValueError) as error:
        print(f"whether questions fit the model is not checked: {{error}}")
        return 0, len
    held = ("max_position_embeddings", "n_positions", "n_ctx")
    length = given.get("max_length") or next(filter(None, (getattr(config, x, 0) for x in held)), 0)
    return int(length), lambda text: len(tokenizer(text)["input_ids"])


class Shots(ContextSampler):
    """Solved questions. Raises ValueError for more than fit the model's context."""

    def sample(self, n, *args, **kwargs):
        room = (self.df or [{{}}])[0].get("room")
        if room is not None and n > room:
            raise ValueError(
                f"{{n}} solved questions do not fit the model's context beside the one that is"
                f" asked; at most {{room}} do (--num_fewshot {{max(0, room)}})"
            )
        return super().sample(n, *args, **kwargs)


def rows(path):
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def answers(resps, docs):
    """What every reply answers, as the rows write it; nothing where that is not clear."""
    return [
        [partly(reply, SHAPE, doc.get("choices") or ()) or "" for reply in written]
        for written, doc in zip(resps, docs)
    ]


def weighed(doc, results):
    log_probability, greedy = results[0]
    return {{"log_probability": log_probability, "acc": int(greedy)}}


def credit(references, predictions):
    return share(references[0], predictions[0], SHAPE)
'''
_IMPORTS = """from pathlib import Path
from typing import NamedTuple

import datasets
from lm_eval.api.samplers import ContextSampler
"""
_COLUMNS = ("prompt", "answer", "completion", "steps", "choices")
_CHAT_TOKENS = 4096
"""Tokens a chat model may write: thoughts, then an answer."""
_SHOTS = 4
"""Solved questions that a reader is advised to show."""

_MEANT = {
    "_logprob": ": the mean log-probability of the right answer, in nats",
    "_cot": ": the steps are written first",
    "_chat": (
        f": for chat models (`--apply_chat_template`), with room for {_CHAT_TOKENS:,} tokens of"
        " thought (more: `--gen_kwargs max_gen_toks=32768`)"
    ),
}
_COMPARE = f"Compare the accuracy with chance and with the level: {MEANT}."


def write(job: Job, folder: Path) -> None:
    """A YAML file per way to ask, rows, rows.py, README.md. Raises SpecError for thought=pairs."""
    source = job.source
    refuse_pairs(source.task)
    write_lines(job, folder, _COLUMNS)
    loader = _LOADER.format(shape=repr(source.shape), lead=repr(source.lead))
    reader = inspect.getsource(replies).replace("from typing import NamedTuple\n", _IMPORTS, 1)
    (folder / "rows.py").write_text(f"{reader}{loader}", encoding="utf-8")
    variants = _variants(job)
    for name, config in variants.items():
        whole = {"task": name} | _common(job, name, config) | config
        (folder / f"{name}.yaml").write_text(dumped(whole), encoding="utf-8")
    (folder / "README.md").write_text(
        card(job, "lm-eval", loading=_running(job, list(variants))), encoding="utf-8"
    )


def _variants(job: Job) -> dict[str, dict[str, Any]]:
    source = job.source
    name = f"separatrix_{file_name(source.task.spec)}"
    shape = source.shape
    # credit for a part of several names
    credited = [Function("rows.credit")] if shape.kind == "names" and shape.size > 1 else []

    def written(
        above: str, question: str, most: int, until: tuple[str, ...], solved: str = ""
    ) -> dict[str, Any]:
        """A task whose answer is read out of `most` tokens; `solved` answers solved questions."""
        read = {"function": "custom", "filter_fn": Function("rows.answers")}
        return {
            "output_type": "generate_until",
            "description": _literal(above),
            "doc_to_text": question,
            "doc_to_target": "answer",
            **({"fewshot_config": {"doc_to_target": solved}} if solved else {}),
            "generation_kwargs": {"until": [*until], "do_sample": False, "max_gen_toks": most},
            # what is read out of a reply is compared with the answer
            "filter_list": [{"name": "answer", "filter": [read, {"function": "take_first"}]}],
            "metric_list": _means("exact_match", *credited),
        }

    # nothing but its end stops a reply: whoever thinks aloud may write anything
    lead, at_the_end = f"{source.lead.rstrip()}\n\n", _question(at_length(source.task))
    chat = written(lead, at_the_end, _CHAT_TOKENS, (), f"{CUE} {{{{answer}}}}")
    told = f"{{{{steps | join(' ')}}}}{source.stop}\n{CUE} {{{{answer}}}}"
    by_steps = written(
        description(source, steps=True),
        _question(f"{manner(source.task, steps=True)}\n{CUE_STEPS}"),
        most_written(source, steps=True),
        STEPS_END,
        "{{completion}}" if source.stepwise else told,
    )
    if source.stepwise:
        return {name: by_steps, f"{name}_chat": chat}
    above = description(source, steps=False)
    chosen = {
        "output_type": "multiple_choice",
        "description": _literal(above),
        "doc_to_text": "prompt",
        "doc_to_target": "answer",
        "doc_to_choice": source.choices,
        "metric_list": _means("acc"),
    }
    weighed = {
        "output_type": "loglikelihood",
        "description": _literal(above),
        "doc_to_text": "prompt",
        # the harness puts no space between a question and what it weighs
        "doc_to_target": " {{answer}}",
        "fewshot_config": {"doc_to_target": "answer"},
        # the harness's own perplexity overflows from some 700 nats on
        "process_results": Function("rows.weighed"),
        "metric_list": _means("log_probability", "acc"),
    }
    short = written(above, "prompt", most_written(source, steps=False), ANSWER_ENDS)
    every = {
        name: chosen if source.choices else short,
        f"{name}_logprob": weighed,
        f"{name}_cot": by_steps,
        f"{name}_chat": chat,
    }
    if all(column.name != "steps" for column in source.columns):
        del every[f"{name}_cot"]
    return every


def _means(*metrics: str) -> list[dict[str, Any]]:
    return [
        {"metric": metric, "aggregation": "mean", "higher_is_better": True} for metric in metrics
    ]


def _literal(text: str) -> str:
    return f"{{% raw %}}{text}{{% endraw %}}" if re.search(r"{[{%#]", text) else text


def _question(instead: str) -> str:
    return f"{{{{prompt.rpartition('\\n')[0]}}}}\n{instead}"


def _shown(job: Job) -> str | None:
    return next((name for name in ("train", "validation") if name in job.splits), None)


def _common(job: Job, name: str, config: dict[str, Any]) -> dict[str, Any]:
    task = job.source.task
    shown = _shown(job)
    short = most_written(job.source, steps=False)
    most = config.get("generation_kwargs", {}).get("max_gen_toks", short)
    reached = level_of(task)
    return {
        # those that write long have tags of their own, so that nobody runs them unasked
        "tag": ["separatrix" + next((end for end in _MEANT if name.endswith(end)), "")],
        "custom_dataset": Function("rows.load"),
        "test_split": "test",
        **({} if shown is None else {"fewshot_split": shown}),
        "fewshot_config": {"sampler": Function("rows.Shots")} | config.pop("fewshot_config", {}),
        "metadata": {
            "version": 1.0,
            "spec": task.spec,
            "chance": probability(job.source.chance),
            **({} if reached is None else {"level": probability(reached)}),
            "max_gen_toks": most,
            "separatrix": package_version(),
        },
    }


def _running(job: Job, names: list[str]) -> str:
    tasks = "\n".join(
        f"- `{name}`{next((told for end, told in _MEANT.items() if name.endswith(end)), '')}"
        for name in names
    )
    shown = _shown(job)
    shots = min(_SHOTS, job.splits[shown]) if shown else 0
    first = (
        "Solved questions first show a model what to write; without them it has one sentence to go"
        " by. "
        if shots
        else ""
    )
    model = "--model hf --model_args pretrained=MODEL"
    return f"""## How to run it

    lm_eval {model} --include_path DIR --tasks {names[0]} --num_fewshot {shots}

with lm-evaluation-harness 0.4.11 or later; DIR is the path of this folder. Tasks:

{tasks}

{first}`--tasks separatrix` runs the tasks of all folders given, `separatrix_cot` those that write
the steps first, `separatrix_chat` those for chat models, `separatrix_logprob` the log-probability
of the right answer. What does not fit the context of a model
of transformers stops before the first question. {_COMPARE}"""
