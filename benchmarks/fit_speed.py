"""Training and sampling of VAE models: ggpi against PyTorch, and against this machine's own matrix products.

35-d states, 8-d actions, batch 256, 4 policies × 2 horizons, one-step CETD: the same networks, targets and
optimiser on both sides. PyTorch runs it plainly (eight modules in a loop, Adam with its defaults), with the
eight models' weights stacked by hand (`baddbmm`, fused Adam), and stacked and compiled by `torch.compile`.
Rounds alternate between the contenders, and ratios of their best rounds are printed.
"""

from __future__ import annotations

import itertools
import json
import math
import multiprocessing
import resource
import time
from pathlib import Path

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import torch

import ggpi
from ggpi._jax.batching import over_models
from ggpi._jax.jit import fast_jit
from ggpi.learning.loop import run_chunk
from ggpi.learning.losses import CETD
from ggpi.learning.preparation import Inputs, new_training
from ggpi.learning.recipe import Recipe

STATES, ACTIONS, WIDTH, BATCH, MODELS, ROWS, ROUND = 35, 8, 128, 256, 8, 50_000, 20
HORIZONS = (0.9, 0.8)
RECIPE = Recipe(loss=CETD(n_step=1), steps=10**6, chunk=ROUND)


class Controller(eqx.Module):
    """A small policy network, so that most of the time goes into the models."""

    first: jax.Array
    second: jax.Array
    name: str

    def sample(self, state, *, key):
        mean = jnp.tanh(state @ self.first) @ self.second
        return jnp.clip(mean + 0.2 * jax.random.normal(key, (ACTIONS,)), -1, 1)


def data() -> ggpi.Transitions:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(ROWS, STATES)).astype(np.float32)
    y = x + 0.1 * rng.normal(size=x.shape).astype(np.float32)
    a = rng.uniform(-1, 1, (ROWS, ACTIONS)).astype(np.float32)
    step = np.arange(ROWS) % 100
    return ggpi.Transitions(
        x, a, y, step < 0, step == 99, np.arange(ROWS) // 20 % 4, np.arange(ROWS) // 100, step
    )


def policies() -> list[Controller]:
    rng = np.random.default_rng(1)
    shapes = (STATES, WIDTH), (WIDTH, ACTIONS)
    arrays = [[jnp.asarray(0.1 * rng.normal(size=shape), jnp.float32) for shape in shapes] for _ in range(4)]
    return [Controller(first, second, f"π{i}") for i, (first, second) in enumerate(arrays)]


class Ours:
    def __init__(self, recipe: Recipe):
        spec = ggpi.StateSpec(tuple(f"x{i}" for i in range(STATES)), (0, 1))
        inputs = Inputs(policies(), data(), HORIZONS, recipe, spec, jax.random.key(0))
        self.training, self.state = new_training(inputs)
        begun = time.perf_counter()
        self.round()
        self.compile_seconds = time.perf_counter() - begun

    def round(self) -> None:
        self.state, losses = run_chunk(self.training, self.state, first=ROUND, count=ROUND)
        losses.block_until_ready()


class PlainVAE(torch.nn.Module):
    """One model as one would write it down."""

    def __init__(self):
        super().__init__()
        context = STATES - 2 + ACTIONS
        self.encoder, self.prior = _plain_mlp(context + STATES, 2), _plain_mlp(context, 2)
        self.decoder = _plain_mlp(context + 1, 2 * STATES)


def _plain_mlp(fan_in: int, fan_out: int) -> torch.nn.Module:
    sizes = [(fan_in, WIDTH), (WIDTH, WIDTH), (WIDTH, WIDTH)]
    hidden = [layer for size in sizes for layer in (torch.nn.Linear(*size), torch.nn.SiLU())]
    return torch.nn.Sequential(*hidden, torch.nn.Linear(WIDTH, fan_out))


class StackedVAE(torch.nn.Module):
    """Eight models at once: weights [8, i, o], products by `baddbmm`."""

    def __init__(self):
        super().__init__()
        context = STATES - 2 + ACTIONS
        self.encoder, self.prior = StackedMLP(context + STATES, 2), StackedMLP(context, 2)
        self.decoder = StackedMLP(context + 1, 2 * STATES)


class StackedMLP(torch.nn.Module):
    def __init__(self, fan_in: int, fan_out: int):
        super().__init__()
        sizes = [fan_in, WIDTH, WIDTH, WIDTH, fan_out]
        shapes = list(itertools.pairwise(sizes))
        weights = [(torch.rand(MODELS, *shape) * 2 - 1) * shape[0] ** -0.5 for shape in shapes]
        self.weights = torch.nn.ParameterList(weights)
        self.biases = torch.nn.ParameterList([torch.zeros(MODELS, 1, size) for size in sizes[1:]])

    def forward(self, x):
        for i, (weight, bias) in enumerate(zip(self.weights, self.biases, strict=True)):
            x = torch.baddbmm(bias, x if i == 0 else torch.nn.functional.silu(x), weight)
        return x


def gaussian(outputs):
    mean, raw = outputs.chunk(2, -1)
    return mean, torch.exp(-5 + 7 * torch.sigmoid(raw))


def cetd(model, policy, x, a, following, stop):
    """The loss of one model on a batch, or of all stacked ones on theirs."""
    with torch.no_grad():
        mean = torch.tanh(following @ policy[0]) @ policy[1]
        acted = (mean + 0.2 * torch.randn_like(mean)).clamp(-1, 1)
        context = torch.cat([following[..., 2:], acted], -1)
        m, s = gaussian(model.prior(context))
        m, s = gaussian(model.decoder(torch.cat([context, m + s * torch.randn_like(m)], -1)))
        target = torch.where(stop, following, following + m + s * torch.randn_like(m))
    context, change = torch.cat([x[..., 2:], a], -1), target - x
    q_mean, q_scale = gaussian(model.encoder(torch.cat([context, change], -1)))
    p_mean, p_scale = gaussian(model.prior(context))
    z = q_mean + q_scale * torch.randn_like(q_mean)
    mean, scale = gaussian(model.decoder(torch.cat([context, z], -1)))
    fit = (0.5 * ((change - mean) / scale) ** 2 + scale.log() + 0.5 * math.log(2 * math.pi)).sum(-1)
    ratio, distance = q_scale / p_scale, (q_mean - p_mean) / p_scale
    kl = 0.5 * (ratio**2 + distance**2 - 1 - 2 * ratio.log()).sum(-1)
    return (fit + kl).mean(-1).sum()


class Theirs:
    """The same in PyTorch: `kind` is plain, stacked or compiled."""

    def __init__(self, kind: str):
        torch.manual_seed(0)
        recorded = data()
        self.record = [torch.from_numpy(p) for p in (recorded.state, recorded.action, recorded.next_state)]
        self.beta = torch.tensor(HORIZONS).repeat_interleave(4)[:, None, None]
        rng = np.random.default_rng(1)
        shapes = (STATES, WIDTH), (WIDTH, ACTIONS)
        arrays = [np.tile(0.1 * rng.normal(size=(4, *shape)), (2, 1, 1)) for shape in shapes]
        self.policy = [torch.from_numpy(array.astype(np.float32)) for array in arrays]
        self.models = [PlainVAE() for _ in range(MODELS)] if kind == "plain" else [StackedVAE()]
        parameters = [p for model in self.models for p in model.parameters()]
        self.optimiser = torch.optim.Adam(parameters, 1e-3, fused=None if kind == "plain" else True)
        self.loss = torch.compile(cetd) if kind == "compiled" else cetd

    def round(self) -> None:
        for _ in range(ROUND):
            rows = torch.randint(len(self.record[0]), (MODELS, BATCH))
            stop = torch.rand(MODELS, BATCH, 1) > self.beta
            given = [*(part[rows] for part in self.record), stop]
            if len(self.models) == 1:
                loss = self.loss(self.models[0], self.policy, *given)
            else:
                own = zip(self.models, zip(*self.policy, strict=True), *given, strict=True)
                loss = torch.stack([self.loss(*one) for one in own]).sum()
            self.optimiser.zero_grad()
            loss.backward()
            self.optimiser.step()


def seconds(work, *args) -> float:
    begun = time.perf_counter()
    work(*args)
    return time.perf_counter() - begun


def gemm_rate(size: int = 1024) -> float:
    """Best float32 matrix product of this machine, in FLOP/s."""
    a = jnp.ones((size, size))
    product = jax.jit(lambda a: a @ a)
    product(a).block_until_ready()
    return 2 * size**3 / min(seconds(lambda: product(a).block_until_ready()) for _ in range(10))


def update_flops() -> float:
    """Additions and multiplications in the matrix products that one update of all models needs.

    A layer takes as many forward, for its weights' gradient and for its inputs' gradient; the inputs of the
    first layers need none.
    """
    context, hidden = STATES - 2 + ACTIONS, 2 * WIDTH**2
    first = 3 * context * WIDTH + STATES * WIDTH
    later = 3 * hidden + 2 * 2 * WIDTH + WIDTH + 2 * STATES * WIDTH
    acting = STATES * WIDTH + WIDTH * ACTIONS
    return MODELS * BATCH * (2.0 * (2 * first + 3 * later + acting) + sample_flops(1))


def sample_flops(count: int) -> float:
    """The same for samples: prior and decoder."""
    context, hidden = STATES - 2 + ACTIONS, 2 * WIDTH**2
    return 2.0 * count * (2 * context * WIDTH + 2 * hidden + 3 * WIDTH + 2 * STATES * WIDTH)


def sampling(models, noise_size: int, count: int = 4096) -> float:
    """Seconds for `count` samples, spread over the eight models."""
    rng = np.random.default_rng(0)
    shapes = [(MODELS, count // MODELS, size) for size in (STATES, ACTIONS, noise_size)]
    x, a, noise = (jnp.asarray(rng.normal(size=shape), jnp.float32) for shape in shapes)
    push = fast_jit(lambda *args: over_models(lambda m, *one: m.push(*one), *args))
    push(models, x, a, noise).block_until_ready()
    return min(seconds(lambda: push(models, x, a, noise).block_until_ready()) for _ in range(10))


def peak_of_a_million(queue, recipe: Recipe) -> None:
    """Peak memory, in GB, of preparing 10⁶ transitions and training on them; in a process of its own."""
    rng = np.random.default_rng(0)
    x, a = (rng.standard_normal((10**6, size), dtype=np.float32) for size in (STATES, ACTIONS))
    row = np.arange(10**6, dtype=np.int32)
    step = row % 100
    many = ggpi.Transitions(x, a, x + 0.1, step < 0, step == 99, row // 20 % 4, row // 100, step)
    spec = ggpi.StateSpec(tuple(f"x{i}" for i in range(STATES)), (0, 1))
    training, state = new_training(Inputs(policies(), many, HORIZONS, recipe, spec, jax.random.key(0)))
    run_chunk(training, state, first=0, count=5)[1].block_until_ready()
    queue.put(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20)


def in_a_process(work, *args) -> float:
    context = multiprocessing.get_context("spawn")
    queue = context.SimpleQueue()
    process = context.Process(target=work, args=(queue, *args))
    process.start()
    result = queue.get()
    process.join()
    return result


def compare(
    name: str, recipe: Recipe, theirs, update_flops: float, sample_flops: float, noise_size: int
) -> None:
    """Prints ratios of rounds that alternate between us and PyTorch, and keeps them as results/NAME.json.

    `theirs` takes plain, stacked or compiled; the numbers of operations are those of one update of all models, and of
    4096 samples.
    """
    ours, contenders = Ours(recipe), {}
    for kind in ("plain", "stacked", "compiled"):
        try:
            contenders[kind] = theirs(kind)
            contenders[kind].round()
        except Exception as error:  # torch.compile needs a C++ compiler
            print(f"PyTorch {kind} did not run: {type(error).__name__}: {error}")
            contenders.pop(kind, None)
    best, rate = dict.fromkeys(["ours", *contenders], math.inf), 0.0
    for _ in range(6):
        rate = max(rate, gemm_rate())
        for kind, contender in {"ours": ours, **contenders}.items():
            best[kind] = min(best[kind], seconds(contender.round))
    samples = sampling(ours.state.models, noise_size)
    result = {
        "updates_per_second": {kind: round(ROUND / value, 1) for kind, value in best.items()},
        "times_as_fast_as_pytorch": {kind: round(best[kind] / best["ours"], 2) for kind in contenders},
        "gemm_gflops": round(rate / 1e9, 1),
        "share_of_gemm_training": round(update_flops * ROUND / best["ours"] / rate, 2),
        "share_of_gemm_sampling_4096": round(sample_flops / samples / rate, 2),
        "compile_seconds_first_chunk": round(ours.compile_seconds, 1),
        "peak_gb_with_a_million_transitions": round(in_a_process(peak_of_a_million, recipe), 2),
    }
    print(json.dumps(result, indent=1))
    path = Path(__file__).parent / "results" / f"{name}.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    compare("fit_speed", RECIPE, Theirs, update_flops(), sample_flops(4096), STATES + 1)
