"""The files of an export: JSON lines or a Hugging Face dataset (needs pyarrow), and what it says of
itself: metadata with checksums, a Markdown card, YAML with functions.
"""

from __future__ import annotations

import importlib.metadata
import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml

from separatrix.core.evidence.canonical import package_version
from separatrix.core.evidence.folder import Checksum
from separatrix.core.numbers.lazy import np
from separatrix.tasks import Task
from separatrix.tasks.base.described import wrapped
from separatrix.tasks.base.references import references
from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.source import MOST_BALANCED, Rows, Source
from separatrix.tasks.measured import MEANT, level
from separatrix.tasks.text import TextTask


class Function(str):
    """`module.name` of a function beside the YAML file, for `!function`."""


class _Dumper(yaml.SafeDumper):
    """Lists stand below their keys; a text of several lines stands as such."""

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    style = "|" if "\n" in text.strip("\n") else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style)


def _function(dumper: yaml.SafeDumper, name: Function) -> yaml.Node:
    return dumper.represent_scalar("!function", name)


_Dumper.add_representer(str, _text)
_Dumper.add_representer(Function, _function)


def dumped(value: Mapping[str, Any]) -> str:
    """`value` in block style."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=1 << 20)


METADATA = "metadata.json"
DISTINCT = (
    "no instance occurs twice, in one split or in two: a repeated draw gives way to a later one"
    f" (of tokens with at most {MOST_BALANCED} answers, to one with the same answer as long as"
    " there is one)"
)


def probability(value: Fraction) -> str:
    """Exact, such as 1/6; to ten digits where that takes dozens of them."""
    return str(value) if value.denominator < 10**12 else f"{float(value):.10g}"


def about(source: Source) -> dict[str, Any]:
    """The task: its text, what it asks, how it is drawn, where it comes from, chance, sizes."""
    task = source.task
    reached = level_of(task)
    return {
        "task": task.spec,
        "title": task.own_title,
        "source": task.cited,
        "references": references(task.cited),
        "definition": wrapped(task.definition),
        "drawn": wrapped(task.how_drawn),
        "chance": probability(task.chance),
        **({} if reached is None else {"level": probability(reached)}),
    } | source.sizes()


def level_of(task: Task | TextTask) -> Fraction | None:
    """The level of a task with one answer; None where none was tried."""
    several = task.several if isinstance(task, Task) else task.reply[1] > 1
    return None if several else level(task)


def command(job: Job, format: str) -> str:
    """The command that makes the same export again."""
    splits = " ".join(
        f"--rows {name}={job.splits.get(name, 0)}" for name in ("train", "validation", "test")
    )
    return (
        f"separatrix task '{job.source.spec}' export --format {format} {splits} --seed"
        f" {job.seed} --out DIR"
    )


def metadata(
    job: Job, format: str, files: Mapping[str, Checksum], packages: Iterable[str]
) -> dict[str, Any]:
    return about(job.source) | {
        "format": format,
        "columns": {column.name: column.meaning for column in job.source.columns},
        "splits": job.splits,
        "distinct": DISTINCT,
        "seed": job.seed,
        "command": command(job, format),
        "versions": (
            {"separatrix": package_version()}
            | {name: importlib.metadata.version(name) for name in packages}
        ),
        "files": {name: part._asdict() for name, part in files.items()},
    }


def write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


def card(job: Job, format: str, *, loading: str) -> str:
    """Title, definition, columns, splits, chance; `loading` says how to use the folder."""
    source = job.source
    said = about(source)
    columns = [(f"`{column.name}`", column.meaning) for column in source.columns]
    splits = [(name, f"{count:,}") for name, count in job.splits.items()]
    works = [
        f"- {f'[{key}]' if f'[{key}]' in said['source'] else key}: {work}"
        for key, work in said["references"].items()
    ]
    title = f"{said['title'][0].upper()}{said['title'][1:]}"
    named = "\n".join(works)
    return f"""# {source.task.spec}

{title}. Made by Separatrix; the answers are those of its oracle.

## What is asked

```text
{said["definition"]}
```

## How it is drawn

{said["drawn"]}

## In numbers

{_table(("", ""), _numbers(source, said))}

## Columns

{_table(("column", "holds"), columns)}

## Splits

{_table(("split", "rows"), splits)}

Drawn with seed {job.seed}: {DISTINCT}. The rows of `test` depend on the seed only, not on how \
many rows the other splits have.

{loading}

## Made by

    {command(job, format)}

`metadata.json` has the versions and the checksum of every file.

## Source of the task

{said["source"]}.

{named}
"""


def _numbers(source: Source, said: dict[str, Any]) -> list[tuple[str, str]]:
    numbers = [(f"accuracy of {source.guess} (chance)", said["chance"])]
    if source.chance != source.task.chance:
        numbers.append(("the same at the end of the chain", probability(source.chance)))
    if "level" in said:
        numbers.append((f"level: {MEANT}", said["level"]))
    if "length" not in said:
        numbers += [(name, str(size)) for name, size in said["sizes"].items()]
    else:
        due = "after several tokens" if said["several"] else "after the last token"
        numbers += [
            ("tokens of a row", f"{said['length']:,}"),
            ("token ids", f"0 to {said['vocabulary'] - 1:,}"),
            ("answers", f"0 to {said['answers'] - 1:,}"),
            ("answers due", due),
        ]
    if classes := said.get("prefix_classes"):
        told = f"prefixes of {classes['after']:,} tokens to be told apart"
        numbers.append((told, f"2^{classes['log2']}"))
    return numbers


def _table(head: tuple[str, str], rows: list[tuple[str, str]]) -> str:
    cells = [head, ("---", "---"), *rows]
    return "\n".join(f"| {one} | {other} |" for one, other in (map(_cell, row) for row in cells))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


_ENCODE: Callable[[Any], str] = json.JSONEncoder(separators=(",", ":")).encode


def write_lines(job: Job, folder: Path, columns: Collection[str] | None = None) -> None:
    """Every split as `<split>.jsonl`, with all columns or those named."""
    for split, batches in job.drawn():
        with (folder / f"{split}.jsonl").open("w", encoding="utf-8", newline="\n") as file:
            for rows in batches:
                named = {name: rows[name] for name in rows if columns is None or name in columns}
                file.writelines(_lines(named))


def _lines(rows: Rows) -> Iterator[str]:
    lists = [values if isinstance(values, list) else values.tolist() for values in rows.values()]
    return (
        _ENCODE(dict(zip(rows, values, strict=True))) + "\n" for values in zip(*lists, strict=True)
    )


def write_dataset(job: Job, folder: Path) -> None:
    """Parquet files and README.md, as `datasets.load_dataset(folder)` reads them."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    integer = pa.int64() if job.source.largest >= 1 << 31 else pa.int32()
    text = pa.string()
    types = {"int": integer, "ints": pa.list_(integer), "text": text, "texts": pa.list_(text)}
    schema = pa.schema([(column.name, types[column.kind]) for column in job.source.columns])
    (folder / "data").mkdir()
    for split, batches in job.drawn():
        with pq.ParquetWriter(folder / _file(split), schema, compression="zstd") as file:
            for rows in batches:
                arrays = [
                    # token by token, and rows laid over it: a hundred times as fast as row by row
                    pa.FixedSizeListArray.from_arrays(values.ravel(), values.shape[1]).cast(kind)
                    if isinstance(values := rows[name], np.ndarray) and values.ndim == 2
                    else pa.array(values, kind)
                    for name, kind in zip(schema.names, schema.types, strict=True)
                ]
                file.write_table(pa.Table.from_arrays(arrays, schema=schema))
    (folder / "README.md").write_text(
        f"---\n{dumped(_front(job))}---\n\n{card(job, 'hf', loading=_loading(job))}",
        encoding="utf-8",
    )


def _loading(job: Job) -> str:
    split = next(iter(job.splits))
    return f"""## How to load it

```python
from datasets import load_dataset

rows = load_dataset("DIR", split="{split}")  # the path of this folder
```

or, without `datasets`: `pyarrow.parquet.read_table("DIR/{_file(split)}")`."""


def _file(split: str) -> str:
    return f"data/{split}-00000-of-00001.parquet"


def _front(job: Job) -> dict[str, Any]:
    """What stands above the card. Features and sizes are read from the files themselves."""
    return {
        "pretty_name": job.source.task.spec,
        "license": "apache-2.0",
        "task_categories": ["text-generation"],
        "tags": ["separatrix", "synthetic"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": _file(split)} for split in job.splits],
            }
        ],
    }
