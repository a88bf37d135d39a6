"""Training and sampling of flow-matching models: ggpi against PyTorch, and against this machine's own matrix products.

35-d states, 8-d actions, batch 256, 4 policies × 2 horizons, one-step TD²-CFM with four targets per solve: the same
networks, solver, targets, optimiser and slow copy on both sides. PyTorch runs it plainly (eight modules in a loop),
with the weights of the eight models stacked by hand (`baddbmm`, fused Adam), and stacked and compiled by
`torch.compile`. Rounds alternate between the contenders, and ratios of their best rounds are printed.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from fit_speed import ACTIONS, BATCH, HORIZONS, MODELS, ROUND, STATES, WIDTH, compare, data

import ggpi
from ggpi.ghm.velocity import FREQUENCIES, LIMIT
from ggpi.learning.flow_losses import TD2CFM
from ggpi.learning.recipe import Recipe

DEPTH, TARGETS, SAMPLER_STEPS = 3, 4, 10
CONTEXT = STATES - 2 + ACTIONS
MODULATION = 2 * WIDTH * DEPTH
RECIPE = Recipe(model=ggpi.FlowMatchingConfig(), loss=TD2CFM(n_step=1), steps=10**6, chunk=ROUND)


class Stacked(torch.nn.Module):
    """A linear layer of several models: weights [M, i, o], or of one."""

    def __init__(self, count: int, fan_in: int, fan_out: int):
        super().__init__()
        self.weight = torch.nn.Parameter((torch.rand(count, fan_in, fan_out) * 2 - 1) * fan_in**-0.5)
        self.bias = torch.nn.Parameter(torch.zeros(count, 1, fan_out))

    def forward(self, x):
        flat = x.reshape(len(self.weight), -1, x.shape[-1])
        return torch.baddbmm(self.bias, flat, self.weight).reshape(*x.shape[:-1], -1)


class Field(torch.nn.Module):
    """The velocity field of `ggpi.ghm.velocity` and `ggpi.ghm.paths`, for `count` models at once."""

    def __init__(self, count: int):
        super().__init__()
        self.inner, self.outer = Stacked(count, STATES, WIDTH), Stacked(count, WIDTH, STATES)
        self.layers = torch.nn.ModuleList([Stacked(count, WIDTH, WIDTH) for _ in range(DEPTH)])
        self.context = torch.nn.ModuleList(
            [Stacked(count, *sizes) for sizes in ((CONTEXT, WIDTH), (WIDTH, WIDTH), (WIDTH, MODULATION))]
        )
        self.clock = torch.nn.ModuleList(
            [Stacked(count, *sizes) for sizes in ((2 * FREQUENCIES, WIDTH), (WIDTH, MODULATION))]
        )

    def encode(self, inputs):
        return _bounded(_chain(self.context, inputs))

    def forward(self, y, t, code):
        """y [M, n, B, D], t [n], code [M, B, m]."""
        angles = math.pi * t[:, None] * torch.arange(1, FREQUENCIES + 1)
        features = torch.cat([angles.sin(), angles.cos()], -1).expand(len(y), -1, -1)
        given = code[:, None] + _bounded(_chain(self.clock, features))[:, :, None]
        h = self.inner(y)
        for layer, part in zip(self.layers, given.chunk(DEPTH, -1), strict=True):
            scale, shift = part.chunk(2, -1)
            h = h + layer(torch.nn.functional.silu(h * (1 + scale) + shift))
        signal, noise = t[:, None, None], 1 - t[:, None, None]
        return y * (signal - noise) / (signal**2 + noise**2) + self.outer(torch.nn.functional.silu(h))


def _chain(layers, x):
    for i, layer in enumerate(layers):
        x = layer(torch.nn.functional.silu(x) if i else x)
    return x


def _bounded(code):
    """Bounded scales; a scale and a shift follow one another, layer by layer."""
    parts = code.unflatten(-1, (DEPTH, 2, WIDTH))
    return torch.stack([LIMIT * (parts[..., 0, :] / LIMIT).tanh(), parts[..., 1, :]], -2).flatten(-3)


def td2(model, slow, policy, beta, direct, ahead):
    """The loss of some models: half of the rows direct, half bootstrapped from the slow copy."""
    times = (torch.arange(TARGETS) + torch.rand(())) / TARGETS
    with torch.no_grad():
        x, _, following = ahead
        mean = torch.tanh(following @ policy[0]) @ policy[1]
        acted = (mean + 0.2 * torch.randn_like(mean)).clamp(-1, 1)
        code = slow.encode(torch.cat([following[..., 2:], acted], -1))
        y, now, points, fields = torch.randn_like(x)[:, None], torch.zeros(()), [], []
        field = slow(y, now[None], code)
        for until in times:
            half = (until - now) / 2
            y = y + 2 * half * slow(y + half * field, (now + half)[None], code)
            field, now = slow(y, until[None], code), until
            points.append(y)
            fields.append(field)
        delta = (following - x)[:, None]
        far = torch.cat(points, 1) + times[:, None, None] * delta, torch.cat(fields, 1) + delta
        target = (direct[2] - direct[0])[:, None]
        noise = torch.randn(len(x), TARGETS, *x.shape[1:])
        near = times[:, None, None] * target + (1 - times[:, None, None]) * noise, target - noise
        y, v = (torch.cat(parts, 2) for parts in zip(near, far, strict=True))
    state, action = (torch.cat([direct[i], ahead[i]], 1) for i in (0, 1))
    found = model(y, times, model.encode(torch.cat([state[..., 2:], action], -1)))
    errors = ((found - v) ** 2).sum(-1).mean(1)
    near, far = errors.chunk(2, 1)
    return ((1 - beta) * near.mean(1, keepdim=True) + beta * far.mean(1, keepdim=True)).sum()


class Theirs:
    """The same in PyTorch: `kind` is plain, stacked or compiled."""

    def __init__(self, kind: str):
        torch.manual_seed(0)
        recorded = data()
        self.record = [torch.from_numpy(p) for p in (recorded.state, recorded.action, recorded.next_state)]
        rng = np.random.default_rng(1)
        shapes = (STATES, WIDTH), (WIDTH, ACTIONS)
        arrays = [np.tile(0.1 * rng.normal(size=(4, *shape)), (2, 1, 1)) for shape in shapes]
        groups = [slice(i, i + 1) for i in range(MODELS)] if kind == "plain" else [slice(0, MODELS)]
        policy = [torch.from_numpy(array.astype(np.float32)) for array in arrays]
        beta = torch.tensor(HORIZONS).repeat_interleave(4)[:, None]
        count = MODELS // len(groups)
        self.parts = [
            (Field(count), Field(count).requires_grad_(False), [p[group] for p in policy], beta[group])
            for group in groups
        ]
        self.pairs = [
            pair
            for model, slow, *_ in self.parts
            for pair in zip(model.parameters(), slow.parameters(), strict=True)
        ]
        own = [p for p, _ in self.pairs]
        self.optimiser = torch.optim.Adam(own, 1e-3, fused=None if kind == "plain" else True)
        self.loss = torch.compile(td2) if kind == "compiled" else td2

    def rows(self, count: int):
        index = torch.randint(len(self.record[0]), (count, BATCH // 2))
        return [part[index] for part in self.record]

    def round(self) -> None:
        for _ in range(ROUND):
            count = MODELS // len(self.parts)
            losses = [self.loss(*part, self.rows(count), self.rows(count)) for part in self.parts]
            self.optimiser.zero_grad()
            torch.stack(losses).sum().backward()
            self.optimiser.step()
            with torch.no_grad():
                torch._foreach_lerp_([slow for _, slow in self.pairs], [own for own, _ in self.pairs], 0.001)


def field_flops() -> float:
    """Additions and multiplications in the matrix products of one field at one point, and of one code."""
    return 2.0 * (2 * STATES * WIDTH + DEPTH * WIDTH**2)


def code_flops() -> float:
    """The same for the code of one (x, a)."""
    return 2.0 * (CONTEXT * WIDTH + WIDTH**2 + WIDTH * MODULATION)


def update_flops() -> float:
    """Those that one update of all models needs: solves of half of the rows, and gradients at all points."""
    solves = BATCH / 2 * (code_flops() + (2 * TARGETS + 1) * field_flops())
    gradients = 3 * BATCH * (code_flops() + TARGETS * field_flops())
    return MODELS * (solves + gradients)


def sample_flops(count: int) -> float:
    """The same for samples."""
    return count * (code_flops() + 2 * SAMPLER_STEPS * field_flops())


if __name__ == "__main__":
    compare("flow_speed", RECIPE, Theirs, update_flops(), sample_flops(4096), STATES)
