"""Whole models: drawn, trained, constructed, and what is found against them."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from unchanged.pieces import Piece, canonical, packed

MODELS = (
    ("full*2 @ heads=2, head_dim=4", "eva:n=8"),
    ("gdn + full|gdn @ heads=2, head_dim=4", "seqcomp:L=2,m=4,n_1=2"),
    ("linear + mlp + window(size=3) @ heads=2, head_dim=4", "twosum:n=8,M=16"),
    ("sparse(block=4, topk=1)|linear + rglru(width=8) @ heads=1, head_dim=4", "khop:n=24,V=8,k=2"),
    ("mamba2 + mla(latent=4) + loglinear @ heads=2, head_dim=4, bf16", "equality:n=8"),
)

TRAINED = (
    ("full*2 @ heads=2, head_dim=4", "eva:n=8"),
    ("gdn|full @ heads=1, head_dim=8", "mqar:vocab_size=16,input_seq_len=16,num_kv_pairs=4"),
)

CONSTRUCTED = (
    ("retrieval", "eva:n=8,V=4", ""),
    ("retrieval", "eva:n=16,V=16", "gdn + full"),
    ("sparse-retrieval", "eva:n=8,V=4", "sparse(block=4, topk=1)"),
    ("sparse-retrieval", "eva:n=16,V=5", "sparse(block=2, topk=3) + gdn"),
    ("seqcomp", "seqcomp:L=1,m=4", ""),
    ("seqcomp", "seqcomp:L=3,m=2,n_1=2,n_2=3", ""),
    ("seqcomp", "seqcomp:L=2,m=2,n_1=1", "(full|linear + gdn)*3"),
    ("carried", "seqcomp:L=2,m=3,n_1=1", "linear + full*2"),
    ("carried", "seqcomp:L=2,m=2,n_1=1", "gdn(heads=2, key_heads=1, head_dim=4) + full*2"),
    ("carried", "seqcomp:L=3,m=2,n_1=1,n_2=1", "linear(feature=relu) + full*3"),
    ("match2", "twosum:n=4,M=8", ""),
    ("match2", "twosum:n=16,M=50", ""),
)
"""The construction that must fit, the task, and the stack that holds it: "" for the smallest."""

REFUTED: tuple[tuple[str, str, dict[str, Any]], ...] = (
    ("gdn @ heads=1, head_dim=2, p3", "eva:n=8,V=8", {}),
    ("linear + window(size=2) @ heads=1, head_dim=2, p3", "seqcomp:L=2,m=4,n_1=2", {"seed": 3}),
    ("loglinear @ heads=1, head_dim=2", "twosum:n=8,M=16", {"cache_format": "p3"}),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=2, p3", "twosum:n=12,M=32", {"seed": 1}),
    ("full|linear @ heads=1, head_dim=4", "eva:n=8,V=8", {}),
    ("sparse(block=4, topk=1) @ heads=1, head_dim=2, p24", "twosum:n=12,M=64", {"tries": 64}),
)
"""Collisions, a block swap, a wrong answer, and a search that finds nothing."""


def models() -> Iterator[Piece]:
    """Drawn models of whole stacks with what they answer, and short trainings."""
    import numpy as np
    import torch

    import separatrix as sx

    for spec, text in MODELS:
        task = sx.parse_task(text)
        model = sx.build(sx.Architecture.parse(spec), task, width=8, hidden=12, seed=3)
        tokens = torch.from_numpy(task.sample(8, np.random.default_rng(0)).tokens)
        with torch.no_grad():
            logits = model(tokens)
        yield f"{spec} on {text}/parameters", packed(model.state_dict())
        yield f"{spec} on {text}/logits", packed({"logits": logits})
    for spec, text in TRAINED:
        run = sx.Run(
            architecture=spec,
            optimiser="adamw",
            task=text,
            seed=5,
            steps=25,
            batch=32,
            width=16,
            hidden=16,
            tested=256,
        )
        trained = sx.train(run)
        came = trained.outcome
        counts = [came.correct, came.steps_done, came.parameters]
        yield f"{spec} on {text}/trained", packed(trained.model.state_dict())
        yield f"{spec} on {text}/counts", canonical(counts)


def constructions() -> Iterator[Piece]:
    """Weights and proofs of every construction, and what checking them says."""
    import separatrix as sx

    for name, text, spec in CONSTRUCTED:
        architecture = sx.Architecture.parse(spec) if spec else None
        built = sx.construct(sx.parse_task(text), architecture)
        if built.record.name != name:
            raise RuntimeError(f"{text} in '{spec}' was built by {built.record.name}, not {name}")
        with tempfile.TemporaryDirectory() as folder:
            built.save(Path(folder))
            checked = sx.verify_path(Path(folder))
        title = f"{name}/{text} in {spec}"
        yield f"{title}/weights", packed(built.model.state_dict())
        yield f"{title}/record", canonical(built.record.envelope())
        yield f"{title}/checked", canonical([list(one.checks) for one in checked])


def refutations() -> Iterator[Piece]:
    """Certificates of failures, and what checking them says."""
    import separatrix as sx

    for spec, text, options in REFUTED:
        architecture = sx.Architecture.parse(spec)
        # all end in seconds, so that the budget plays no part
        found = sx.refute(architecture, sx.parse_task(text), budget=120, **options)
        name = f"{spec} on {text}"
        if not isinstance(found, sx.Certificate):
            yield f"{name}/not found", f"{found}\n"
            continue
        yield f"{name}/certificate", canonical(found.envelope())
        yield f"{name}/checked", canonical(list(sx.verify(found, folder=Path()).checks))
