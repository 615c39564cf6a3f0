"""The works that short names of sources stand for, in full."""

from __future__ import annotations

import re
from typing import Final

REFERENCES: Final = {
    "Aro24": (
        "Arora, Eyuboglu, Timalsina, Johnson, Poli, Zou, Rudra, Ré, Zoology: Measuring and"
        " Improving Recall in Efficient Language Models, arXiv 2312.04927"
    ),
    "Bha24": (
        "Bhattamishra, Hahn, Blunsom, Kanade, Separations in the Representational Capabilities of"
        " Transformers and Recurrent Architectures, arXiv 2406.09347"
    ),
    "CPW": "Chen, Peng, Wu, Theoretical Limitations of Multi-Layer Transformer, arXiv 2412.02975",
    "Peng24": (
        "Peng, Narayanan, Papadimitriou, On Limitations of the Transformer Architecture, arXiv"
        " 2402.08164"
    ),
    "San23": (
        "Sanford, Hsu, Telgarsky, Representational Strengths and Limitations of Transformers, arXiv"
        " 2306.02896"
    ),
    "San24": (
        "Sanford, Hsu, Telgarsky, Transformers, Parallel Computation, and Logarithmic Depth, arXiv"
        " 2402.09268"
    ),
    "Wen25": (
        "Wen, Dang, Lyu, RNNs are not Transformers (Yet): The Key Bottleneck on In-context"
        " Retrieval, arXiv 2402.18510"
    ),
    "Ye26": (
        "Ye, He, Liao, Wu, Lu, A Provable Expressiveness Hierarchy in Hybrid Linear-Full Attention,"
        " arXiv 2602.01763"
    ),
    "Barrington 1989": (
        "Bounded-Width Polynomial-Size Branching Programs Recognize Exactly Those Languages in NC1,"
        " Journal of Computer and System Sciences 38"
    ),
    "arXiv 1511.06464": "Arjovsky, Shah, Bengio, Unitary Evolution Recurrent Neural Networks",
    "arXiv 1906.06755": (
        "Hahn, Theoretical Limitations of Self-Attention in Neural Sequence Models"
    ),
    "arXiv 2312.00752": "Gu, Dao, Mamba: Linear-Time Sequence Modeling with Selective State Spaces",
    "arXiv 2402.01032": (
        "Jelassi, Brandfonbrener, Kakade, Malach, Repeat After Me: Transformers are Better than"
        " State Space Models at Copying"
    ),
    "arXiv 2403.17844": (
        "Poli et al., Mechanistic Design and Scaling of Hybrid Architectures (MAD)"
    ),
    "arXiv 2404.06654": (
        "Hsieh et al., RULER: What's the Real Context Size of Your Long-Context Language Models?"
    ),
    "arXiv 2404.08819": "Merrill, Petty, Sabharwal, The Illusion of State in State-Space Models",
    "arXiv 2604.03444": "Merrill et al.",
    "theory.md": "docs/theory.md of Separatrix",
}
"""By the keys that tasks name as their source; those in square brackets are the ones of
docs/theory.md.
"""
_KEY: Final = re.compile(r"\[(\w+)\]|(arXiv \d{4}\.\d{5}|\b[A-Z]\w+ \d{4}\b|theory\.md)")


def keys(source: str) -> list[str]:
    """The works that a task's `source` names, each once."""
    return list(dict.fromkeys(bracketed or plain for bracketed, plain in _KEY.findall(source)))


def references(source: str) -> dict[str, str]:
    """Every work named, in full. Raises KeyError for one that is not known."""
    return {key: REFERENCES[key] for key in keys(source)}
