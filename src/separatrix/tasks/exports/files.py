"""The files of an export: JSON lines, or a Hugging Face dataset (needs pyarrow)."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from separatrix.core.numbers.lazy import np
from separatrix.tasks.exports.card import card, dumped
from separatrix.tasks.exports.job import Job
from separatrix.tasks.exports.source import Rows

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


if TYPE_CHECKING:
    import pyarrow as pa

_SIZES = (
    (10**3, "n<1K"),
    (10**4, "1K<n<10K"),
    (10**5, "10K<n<100K"),
    (10**6, "100K<n<1M"),
    (10**7, "1M<n<10M"),
)


def write_dataset(job: Job, folder: Path) -> None:
    """Parquet files and README.md, as `datasets.load_dataset(folder)` reads them."""
    import pyarrow.parquet as pq

    schema = _schema(job)
    (folder / "data").mkdir()
    for split, batches in job.drawn():
        with pq.ParquetWriter(folder / _file(split), schema, compression="zstd") as file:
            for rows in batches:
                file.write_table(_table(rows, schema))
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


def _schema(job: Job) -> pa.Schema:
    import pyarrow as pa

    integer = pa.int64() if job.source.largest >= 1 << 31 else pa.int32()
    text = pa.string()
    types = {"int": integer, "ints": pa.list_(integer), "text": text, "texts": pa.list_(text)}
    return pa.schema([(column.name, types[column.kind]) for column in job.source.columns])


def _table(rows: Rows, schema: pa.Schema) -> pa.Table:
    import pyarrow as pa

    arrays = []
    for field in schema:
        values = rows[field.name]
        if isinstance(values, np.ndarray) and values.ndim == 2:
            # int32 is enough: a batch has at most 2^24 tokens, or is a single row of so many
            offsets = np.arange(len(values) + 1, dtype=np.int32) * values.shape[1]
            arrays.append(
                pa.ListArray.from_arrays(offsets, pa.array(values.ravel(), field.type.value_type))
            )
        else:
            arrays.append(pa.array(values, field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _front(job: Job) -> dict[str, Any]:
    """What stands above the card. Features and sizes are read from the files themselves."""
    return {
        "pretty_name": job.source.task.spec,
        "license": "apache-2.0",
        "task_categories": ["text-generation"],
        "tags": ["separatrix", "synthetic"],
        "size_categories": [
            next((name for bound, name in _SIZES if job.rows < bound), "10M<n<100M")
        ],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": split, "path": _file(split)} for split in job.splits],
            }
        ],
    }
