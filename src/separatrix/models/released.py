"""Causal language models of transformers in local folders, asked a task's questions: in words
through their tokenizer, or in token ids where they have none.

Only prompts of one length stand in a batch, so that no padding can change an answer. Nothing is
fetched, and no code of the folder runs: what transformers does not have itself is registered by a
module that the user imports.
"""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
from torch import Tensor

from separatrix.core.errors import ConfigError, MissingExtraError, SizeError
from separatrix.tasks.exports.asking import Asking, Question
from separatrix.tasks.exports.replies import share
from separatrix.tasks.labels import Labelled

_BATCH_TOKENS = 1 << 15
"""Tokens of a batch at first; halved where memory does not suffice."""
_HELD = ("max_position_embeddings", "n_positions", "n_ctx", "seq_length")
_WORDS = ("tokenizer.json", "tokenizer_config.json", "tokenizer.model", "vocab.json", "vocab.txt")
_PLAIN = re.compile("[a-z]{5,9}")
"""Words that may be written instead of values."""
Ids = tuple[int, ...]
Of = TypeVar("Of")
Got = TypeVar("Got")


class Reply(NamedTuple):
    """What came of one question."""

    right: bool
    said: str
    """What was chosen or written."""
    log_probability: float
    """Of the right answer, in nats."""
    credit: float
    """The share that is right of several names, or of several labels; else 1 or 0."""


@dataclass(frozen=True, eq=False)
class Released:
    """A model, what spells for it (None: token ids are asked), and the tokens of its context (None
    where its file does not tell).
    """

    model: Any
    tokenizer: Any
    context: int | None

    @classmethod
    def load(cls, folder: Path) -> Released:
        """The model of a folder, in the dtype that its config.json states, on an accelerator where
        there is one. Raises MissingExtraError without transformers, ConfigError for a folder that
        it cannot load alone.
        """
        try:
            import transformers
        except ImportError:
            raise MissingExtraError.of("asking a checkpoint of transformers", "hf") from None
        transformers.utils.logging.disable_progress_bar()
        if not (folder / "config.json").is_file():
            raise ConfigError(f"{folder}: no config.json; name the folder of a checkpoint")
        alone: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
        spelt = any((folder / name).is_file() for name in _WORDS)
        try:
            loaded: Any = transformers.AutoModelForCausalLM.from_pretrained(
                folder, dtype="auto", output_loading_info=True, **alone
            )
            model, told = loaded
            tokenizer = (
                transformers.AutoTokenizer.from_pretrained(folder, **alone) if spelt else None
            )
        except (OSError, ValueError, ImportError, KeyError, RuntimeError) as error:
            first = (str(error).strip().splitlines() or [type(error).__name__])[0]
            raise ConfigError(
                f"{folder}: transformers {transformers.__version__} does not load it without code"
                f" of the folder: {first[:300]} (--import MODULE for classes of your own)"
            ) from None
        missing = sorted(told["missing_keys"]) + sorted(map(str, told["mismatched_keys"]))
        if missing:
            # they would be drawn at random
            raise ConfigError(
                f"{folder}: {len(missing)} tensors of the model are not in the folder, such as"
                f" {missing[0][:100]}"
            )
        config = model.config.get_text_config()
        held = (getattr(config, name, None) for name in _HELD)
        context = next((size for size in held if type(size) is int and size > 0), None)
        device = torch.accelerator.current_accelerator(check_available=True) or torch.device("cpu")
        return cls(model.eval().to(device), tokenizer, context)

    def ids(self, text: str) -> Ids:
        """The tokens of a text, with what the tokenizer puts around one."""
        return tuple(self.tokenizer(text)["input_ids"])

    def split(self, prompt: str, answer: str) -> tuple[Ids, Ids]:
        """The tokens of a prompt, and those that an answer behind it adds."""
        whole = self.ids(f"{prompt} {answer}")
        alone = self.ids(prompt)
        # a tokenizer may end every text with a token
        same = next(
            (at for at, (one, other) in enumerate(zip(alone, whole, strict=False)) if one != other),
            min(len(alone), len(whole)),
        )
        # at least one token is read, and one is asked for
        same = max(1, min(same, len(whole) - 1))
        return whole[:same], whole[same:]

    def check(self, asking: Asking) -> None:
        """Raises SizeError where the context of the model is shorter than a question and its
        answer.
        """
        longest = max(len(self.ids(one.prompt)) for one in asking.questions)
        written = 0 if asking.questions[0].choices else asking.most
        if self.context is not None and longest + written > self.context:
            raise SizeError(
                f"a question takes {longest:,} tokens and an answer may take {written:,}; the"
                f" model's context has {self.context:,}: ask smaller sizes, or fewer solved"
                " questions (--rows train=0)"
            )

    def fits(self, ids: int, tokens: int) -> None:
        """Raises SizeError where the model has fewer token ids, or places for fewer tokens."""
        own = self.model.config.get_text_config().vocab_size
        if own < ids or (self.context or tokens) < tokens:
            raise SizeError(
                f"the model has {own:,} token ids and {self.context or 'any number of'} places; the"
                f" task takes {ids:,} and {tokens:,}: ask smaller sizes"
            )

    def split_values(self, words: Sequence[str]) -> list[str]:
        """Those of some words that are not one token each behind a blank."""
        # what stands around a text is counted off
        around = len(self.ids("a a")) - len(self.ids("a")) if words else 0
        empty = len(self.ids("a")) - around
        return [word for word in words if len(self.ids(f"a {word}")) - empty != 1 + around]

    def whole_words(self, number: int, but: Collection[str]) -> list[str]:
        """The first words of the vocabulary that are one token each behind a blank, none of `but`:
        so many, or all there are.
        """
        ids = sorted(self.tokenizer.get_vocab().values())
        words = dict.fromkeys(self.tokenizer.decode([one]).strip() for one in ids)
        plain = (word for word in words if _PLAIN.fullmatch(word) and word not in but)
        return list(islice((word for word in plain if not self.split_values([word])), number))

    @torch.inference_mode()
    def answered(self, asking: Asking, numbers: Sequence[int]) -> Iterator[tuple[int, Reply]]:
        """Asks the questions of these numbers; what came of each, batch by batch."""
        prompts = {number: self.ids(asking.questions[number].prompt) for number in numbers}

        def asked(some: Sequence[int]) -> list[Reply]:
            questions = [asking.questions[number] for number in some]
            if questions[0].choices:
                return self._chosen(questions)
            pairs = [[self.split(one.prompt, one.answer)] for one in questions]
            written = self._written([prompts[number] for number in some], asking)
            found: list[Reply] = []
            for one, said, (score,) in zip(questions, written, self._scored(pairs), strict=True):
                answer = asking.read(said, one)
                part = share(one.answer, answer, asking.shape)
                found.append(Reply(answer == one.answer, said, score, part))
            return found

        yield from _each(asked, numbers, lambda number: len(prompts[number]))

    def _chosen(self, questions: Sequence[Question]) -> list[Reply]:
        """The most likely of the choices; of several alike, none is right."""
        pairs = [[self.split(one.prompt, choice) for choice in one.choices] for one in questions]
        found: list[Reply] = []
        for one, scores in zip(questions, self._scored(pairs), strict=True):
            best = max(scores)
            own = scores[one.choices.index(one.answer)]
            right = own == best and scores.count(best) == 1
            found.append(Reply(right, one.choices[scores.index(best)], own, float(right)))
        return found

    def _scored(self, pairs: Sequence[Sequence[tuple[Ids, Ids]]]) -> list[list[float]]:
        """Log-probabilities of continuations, in nats. Those that differ in their last token alone
        are read off one row.
        """
        lasts: dict[tuple[Ids, int], list[int]] = defaultdict(list)
        for before, after in (pair for of in pairs for pair in of):
            lasts[before + after[:-1], len(after)].append(after[-1])
        found: dict[tuple[Ids, int, int], float] = {}

        def scored(some: Sequence[tuple[Ids, int]]) -> list[list[float]]:
            keep = max(count for _, count in some)
            logits = self.logits([ids for ids, _ in some], keep).double().log_softmax(-1)
            rows: list[list[float]] = []
            for row, (ids, count) in zip(logits, some, strict=True):
                inner = ids[len(ids) - count + 1 :]
                at = keep - count
                before = sum(float(row[at + k, token]) for k, token in enumerate(inner))
                rows.append([before + float(row[-1, last]) for last in lasts[ids, count]])
            return rows

        for key, scores in _each(scored, list(lasts), lambda key: len(key[0])):
            found |= {(*key, last): one for last, one in zip(lasts[key], scores, strict=True)}
        return [
            [found[before + after[:-1], len(after), after[-1]] for before, after in of]
            for of in pairs
        ]

    def logits(self, prompts: Sequence[Ids], keep: int) -> Tensor:
        """Logits after the last `keep` tokens of prompts of one length, (prompts, keep, ids)."""
        takes = "logits_to_keep" in inspect.signature(self.model.forward).parameters
        some = {"logits_to_keep": keep} if takes else {}
        ids = torch.tensor(prompts, device=self.model.device)
        return self.model(ids, use_cache=False, **some).logits[:, -keep:].cpu()

    def _written(self, prompts: Sequence[Ids], asking: Asking) -> list[str]:
        """What the model writes after prompts of one length, greedily, whatever its folder says of
        sampling.
        """
        from transformers import GenerationConfig

        own = self.model.generation_config
        ends = self.tokenizer.eos_token_id if own is None else own.eos_token_id
        first = ends[0] if isinstance(ends, list) else ends
        greedy = GenerationConfig(
            do_sample=False,
            max_new_tokens=asking.most,
            eos_token_id=ends,
            pad_token_id=0 if first is None else first,
            stop_strings=list(asking.ends),
        )
        ids = torch.tensor(prompts, device=self.model.device)
        made = self.model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            generation_config=greedy,
            tokenizer=self.tokenizer,
        )
        texts = self.tokenizer.batch_decode(made[:, ids.shape[1] :], skip_special_tokens=True)
        for end in asking.ends:
            texts = [text.partition(end)[0] for text in texts]
        return texts

    @torch.inference_mode()
    def answered_in_ids(
        self, labelled: Labelled, start: int | None, numbers: Sequence[int]
    ) -> Iterator[tuple[int, Reply]]:
        """Asks rows of token ids: a reply is right where every label is the likeliest id."""
        first = () if start is None else (start,)

        def asked(some: Sequence[int]) -> list[Reply]:
            rows = [(*first, *labelled.input_ids[number].tolist()) for number in some]
            wanted = torch.from_numpy(labelled.labels[list(some)])
            logits = self.logits(rows, wanted.shape[1]).double()
            due = wanted >= 0
            own = logits.log_softmax(-1).gather(-1, wanted.clamp(min=0)[..., None])[..., 0]
            said = logits.argmax(-1)
            met = (said == wanted) & due
            part = met.sum(1) / due.sum(1)
            scores = (own * due).sum(1).tolist()
            texts = [
                " ".join(map(str, one[at].tolist())) for one, at in zip(said, due, strict=True)
            ]
            whole = (met == due).all(1).tolist()
            return [Reply(*each) for each in zip(whole, texts, scores, part.tolist(), strict=True)]

        yield from _each(asked, numbers, lambda _: labelled.input_ids.shape[1])


def _each(
    run: Callable[[Sequence[Of]], list[Got]], items: Sequence[Of], length: Callable[[Of], int]
) -> Iterator[tuple[Of, Got]]:
    """Items and what comes of them, in batches of one length and a bounded number of tokens."""
    of: dict[int, list[Of]] = defaultdict(list)
    for item in items:
        of[length(item)].append(item)
    for tokens, alike in sorted(of.items()):
        each = max(1, _BATCH_TOKENS // max(1, tokens))
        for at in range(0, len(alike), each):
            some = alike[at : at + each]
            yield from zip(some, _halving(run, some), strict=True)


def _halving(run: Callable[[Sequence[Of]], list[Got]], some: Sequence[Of]) -> list[Got]:
    """`run` on a batch, on halves of it where the device has no memory for the whole."""
    try:
        return run(some)
    except torch.OutOfMemoryError:
        if len(some) == 1:
            raise SizeError(
                "the device has no memory for one question; ask smaller sizes"
            ) from None
    torch.accelerator.empty_cache()
    half = len(some) // 2
    return _halving(run, some[:half]) + _halving(run, some[half:])
