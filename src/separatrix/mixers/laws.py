"""The laws every token mixer obeys. Each takes a float64 mixer with drawn parameters and raises AssertionError where it is broken."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.func import functional_call, stack_module_state, vmap

from separatrix.bits import sum_bits
from separatrix.mixers import Mixer, State, state_numbers

LENGTHS = (1, 2, 63, 64, 65, 130)
CACHE_LENGTHS = (1, 2, 3, 31, 32, 33, 64, 100)
RELATIVE = 1e-9
"""Of the largest number compared: some 10^6 roundings of float64."""


def drawn(mixer: Mixer, seed: int = 0) -> Mixer:
    """The mixer in float64, drawn, and every parameter moved a little, so that none sits at a special value such as 0."""
    mixer = mixer.double()
    generator = torch.Generator().manual_seed(seed)
    mixer.reset(generator)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter.add_(0.1 * torch.randn(parameter.shape, generator=generator, dtype=torch.float64))
    return mixer


def inputs(mixer: Mixer, batch: int, tokens: int, seed: int = 1) -> Tensor:
    return torch.randn(batch, tokens, mixer.width, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def stream(mixer: Mixer, x: Tensor, state: State | None = None, start: int = 0) -> tuple[Tensor, State]:
    """Outputs of `step` token by token, and the state after the last."""
    state, outputs = mixer.init_state(len(x)) if state is None else state, []
    for t in range(x.shape[1]):
        y, state = mixer.step(x[:, t], state, start + t)
        outputs.append(y)
    return torch.stack(outputs, 1), state


def close(a: Tensor, b: Tensor, what: str, scale: float = 0.0) -> None:
    assert a.shape == b.shape, f"{what}: shapes {tuple(a.shape)} and {tuple(b.shape)}"
    scale = max(scale, a.abs().max().item(), b.abs().max().item())
    gap = (a - b).abs().max().item()
    assert gap <= RELATIVE * scale, f"{what}: differ by {gap:.3g} of {scale:.3g}"


def all_close(a: dict[str, Tensor], b: dict[str, Tensor], what: str) -> None:
    """Gradients of one function: a gradient that is 0 in exact arithmetic (of q after one token) is compared at the size of the others."""
    scale = max(tensor.abs().max().item() for tensor in a.values())
    for name in a:
        close(a[name], b[name], f"gradient by {name}, {what}", scale)


def gradients(mixer: Mixer, x: Tensor, y: Tensor, seed: int = 2) -> dict[str, Tensor]:
    """Gradients of a random linear function of y by the input (as far as y reaches) and by every parameter."""
    wanted = {"input": x, **dict(mixer.named_parameters())}
    weights = torch.randn(y.shape, generator=torch.Generator().manual_seed(seed), dtype=y.dtype)
    found = torch.autograd.grad((weights * y).sum(), list(wanted.values()), retain_graph=True, allow_unused=True, materialize_grads=True)
    return dict(zip(wanted, found, strict=True))


def forms_agree(mixer: Mixer) -> None:
    """`step` equals `forward`: outputs, and gradients by the input and all parameters."""
    for batch in (1, 3):
        x = inputs(mixer, batch, max(LENGTHS)).requires_grad_()
        steps, _ = stream(mixer, x)
        for tokens in LENGTHS:
            y = mixer(x[:, :tokens])
            close(steps[:, :tokens], y, f"outputs, batch {batch}, T={tokens}")
            all_close(gradients(mixer, x, steps[:, :tokens]), gradients(mixer, x, y), f"batch {batch}, T={tokens}")


def last_is_last(mixer: Mixer) -> None:
    """`last` equals the last output of `forward`, and has its gradients."""
    for batch, tokens in ((1, 1), (3, 2), (3, 64), (1, 65), (3, 130)):
        x = inputs(mixer, batch, tokens).requires_grad_()
        y, last = mixer(x)[:, -1], mixer.last(x)
        close(last, y, f"T={tokens}")
        all_close(gradients(mixer, x, last), gradients(mixer, x, y), f"T={tokens}")


@torch.no_grad()
def causal(mixer: Mixer) -> None:
    """Changing token t changes nothing before t, to the last bit, and does change the output at t."""
    x = inputs(mixer, 1, 130)
    y = mixer(x)
    for t in (0, 1, 31, 63, 64, 65, 129):
        changed = x.clone()
        changed[:, t] = inputs(mixer, 1, 1, seed=3)[:, 0]
        z = mixer(changed)
        assert torch.equal(y[:, :t], z[:, :t]), f"a change of token {t} reaches tokens before it"
        assert not torch.equal(y[:, t], z[:, t]), f"a change of token {t} does not reach its own output"


@torch.no_grad()
def cache_as_declared(mixer: Mixer) -> None:
    """The state after t tokens holds the numbers, and so the bits, that the mechanism declares."""
    x, state = inputs(mixer, 2, max(CACHE_LENGTHS)), mixer.init_state(2)
    assert state_numbers(state) * mixer.mechanism.p == mixer.mechanism.cache_bits(0), "before the first token"
    for t in range(x.shape[1]):
        _, state = mixer.step(x[:, t], state, t)
        if t + 1 in CACHE_LENGTHS:
            declared = sum_bits(item.bits for item in mixer.mechanism.cache(t + 1))
            assert all(len(tensor) == 2 for tensor in state.values()), "the first axis of every state tensor is the batch"
            assert state_numbers(state) == declared.numbers, (
                f"{state_numbers(state)} numbers after {t + 1} tokens, {declared.numbers} declared"
            )
            assert state_numbers(state) * mixer.mechanism.p == mixer.mechanism.cache_bits(t + 1), f"bits after {t + 1} tokens"


@torch.no_grad()
def split_is_one_pass(mixer: Mixer) -> None:
    """A second mixer that gets only the weights and the state continues as if it had seen every token."""
    x, unused = inputs(mixer, 3, 80), copy.deepcopy(mixer)
    whole, _ = stream(mixer, x)
    for cut in (1, 17, 32, 64):
        one, other = copy.deepcopy(unused), copy.deepcopy(unused)
        _, state = stream(one, x[:, :cut])
        rest, _ = stream(other, x[:, cut:], {name: tensor.clone() for name, tensor in state.items()}, cut)
        close(rest, whole[:, cut:], f"cut at {cut}")


def finite_on_large(mixer: Mixer) -> None:
    """Outputs and gradients are finite in float32 on inputs of size 1000 and on zeros."""
    mixer = copy.deepcopy(mixer).float()
    for size in (1e3, 0.0):
        x = (size * inputs(mixer, 2, 130)).float().requires_grad_()
        y = mixer(x)
        assert y.isfinite().all(), f"outputs at size {size:g}"
        for name, gradient in gradients(mixer, x, y).items():
            assert gradient.isfinite().all(), f"gradient by {name} at size {size:g}"


@torch.no_grad()
def chunks_do_not_matter(mixer: Mixer) -> None:
    """Any chunk size gives the same outputs."""
    mixer, x = copy.deepcopy(mixer), inputs(mixer, 2, 100)
    y = mixer(x)
    for mixer.chunk in (1, 7, 16, 100, 1000):
        close(mixer(x), y, f"chunk {mixer.chunk}")
        close(mixer.last(x), y[:, -1], f"last, chunk {mixer.chunk}")


def stacks(mixer: Mixer) -> None:
    """torch.func.vmap over stacked models equals one model after the other: forward, last, step, and gradients by the parameters."""
    models = [drawn(copy.deepcopy(mixer), seed) for seed in range(3)]
    parameters, buffers = stack_module_state(models)
    x = torch.stack([inputs(mixer, 2, 130, seed) for seed in range(3)])
    calls: dict[str, Callable[[Mixer, Tensor], Tensor]] = {
        "forward": lambda m, x: m(x),
        "last": lambda m, x: m.last(x),
        "step": lambda m, x: stream(m, x[:, :20])[0],
    }
    for name, call in calls.items():
        runner = Runner(copy.deepcopy(mixer), call)
        stacked = vmap(lambda p, b, x, runner=runner: functional_call(runner, ({f"mixer.{k}": v for k, v in (p | b).items()},), (x,)))(
            parameters, buffers, x
        )
        alone = torch.stack([call(m, x[i]) for i, m in enumerate(models)])
        close(stacked, alone, name)
        by_stack = torch.autograd.grad(stacked.square().sum(), list(parameters.values()), materialize_grads=True, allow_unused=True)
        by_alone = torch.autograd.grad(
            alone.square().sum(), [p for m in models for p in m.parameters()], materialize_grads=True, allow_unused=True
        )
        grouped = [torch.stack(by_alone[i :: len(parameters)]) for i in range(len(parameters))]
        all_close(dict(zip(parameters, by_stack, strict=True)), dict(zip(parameters, grouped, strict=True)), name)


class Runner(torch.nn.Module):
    """Lets functional_call reach methods other than forward."""

    def __init__(self, mixer: Mixer, call: Callable[[Mixer, Tensor], Tensor]) -> None:
        super().__init__()
        self.mixer, self.call = mixer, call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(self.mixer, x)


@torch.no_grad()
def reset_draws_all(mixer: Mixer) -> None:
    """`reset` writes every parameter, and writes the same for the same seed."""
    mixers = [copy.deepcopy(mixer) for _ in range(2)]
    for one in mixers:
        for parameter in one.parameters():
            parameter.fill_(float("nan"))
        one.reset(torch.Generator().manual_seed(5))
    for (name, a), b in zip(mixers[0].named_parameters(), mixers[1].parameters(), strict=True):
        assert torch.equal(a, b), f"{name} differs or was not drawn"


LAWS: dict[str, Callable[[Mixer], None]] = {
    "step=forward": forms_agree,
    "last": last_is_last,
    "causal": causal,
    "cache": cache_as_declared,
    "split": split_is_one_pass,
    "finite": finite_on_large,
    "chunks": chunks_do_not_matter,
    "stacks": stacks,
    "reset": reset_draws_all,
}


def broken_laws(mixer: Mixer, laws: Sequence[str] = tuple(LAWS)) -> set[str]:
    """The laws that a mixer breaks."""
    broken = set()
    for law in laws:
        try:
            LAWS[law](mixer)
        except (AssertionError, RuntimeError):
            broken.add(law)
    return broken
