"""Small models with random weights, trained by `torch.compile` and by eager; a program of its own,
as `torch_compile_cases`. Prints one line of JSON for each model that is named.
"""

# pyright: reportMissingImports=false

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch._inductor.config as inductor
from torch import Tensor, nn

from tests.kernels.torch_eager import settle_eager

F = torch.nn.functional
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
STEPS = 50
WORDS = 61


class Block(nn.Module):
    """Of a transformer: attention and two layers, each behind a norm."""

    def __init__(self, width: int, heads: int, causal: bool) -> None:
        super().__init__()
        self.heads, self.causal = heads, causal
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        qkv = self.qkv(self.before(x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = qkv.permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5
        if self.causal:
            later = torch.ones(scores.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
            scores = scores.masked_fill(later, float("-inf"))
        x = x + self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.between(x))))


class Decoder(nn.Module):
    """Predicts the next word."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(WORDS, 48), nn.Embedding(20, 48)
        self.blocks = nn.Sequential(*(Block(48, 3, causal=True) for _ in range(2)))
        self.norm, self.head = nn.LayerNorm(48), nn.Linear(48, WORDS, bias=False)

    def forward(self, words: Tensor) -> Tensor:
        x = self.words(words[:, :-1]) + self.places.weight[: words.shape[1] - 1]
        found = self.head(self.norm(self.blocks(x)))
        return F.cross_entropy(found.flatten(0, 1), words[:, 1:].flatten())


class Encoder(nn.Module):
    """Classifies sequences of numbers, as vision transformers do patches."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Linear(12, 48)
        self.blocks = nn.Sequential(*(Block(48, 4, causal=False) for _ in range(2)))
        self.head = nn.Linear(48, 10)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        return F.cross_entropy(self.head(self.blocks(self.patches(x)).mean(1)), labels)


class Residual(nn.Module):
    """Of a ResNet."""

    def __init__(self, channels: int, more: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, more, 3, 2, 1, bias=False)
        self.second = nn.Conv2d(more, more, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(more) for _ in range(2))
        self.straight = nn.Conv2d(channels, more, 1, 2, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        inside = F.relu(self.norms[0](self.first(x)))
        return F.relu(self.norms[1](self.second(inside)) + self.straight(x))


class ResNet(nn.Module):
    """Classifies images."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Residual(8, 12), Residual(12, 16))
        self.head = nn.Linear(16, 10)

    def forward(self, x: Tensor, labels: Tensor) -> Tensor:
        x = self.blocks(F.max_pool2d(F.relu(self.stem(x)), 3, 2, 1))
        return F.cross_entropy(self.head(x.mean((2, 3))), labels)


class Denoiser(nn.Module):
    """A block of a diffusion model's UNet: down and up again, with the noise's level."""

    def __init__(self) -> None:
        super().__init__()
        self.level = nn.Linear(16, 16)
        self.norms = nn.ModuleList(nn.GroupNorm(4, n) for n in (8, 16, 24))
        self.inner = nn.ModuleList(
            nn.Conv2d(i, o, 3, padding=1) for i, o in ((8, 16), (16, 16), (24, 8))
        )
        self.into, self.out = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(8, 3, 3, padding=1)

    def forward(self, x: Tensor, level: Tensor, noise: Tensor) -> Tensor:
        angles = level[:, None] * 2.0 ** torch.arange(8, device=x.device)
        told = self.level(torch.cat([angles.sin(), angles.cos()], -1))
        high = self.into(x)
        low = self.inner[0](F.avg_pool2d(F.silu(self.norms[0](high)), 2)) + told[..., None, None]
        low = self.inner[1](F.silu(self.norms[1](low)))
        both = torch.cat([high, F.interpolate(low, scale_factor=2.0)], 1)
        return F.mse_loss(self.out(F.silu(self.inner[2](self.norms[2](both)))), noise)


def normal(*shape: int) -> Tensor:
    return torch.randn(shape, device=DEVICE)


def labels(end: int, *shape: int) -> Tensor:
    return torch.randint(0, end, shape, device=DEVICE)


MODELS: dict[str, tuple[type[nn.Module], Callable[[], Sequence[Tensor]]]] = {
    "decoder": (Decoder, lambda: [labels(WORDS, 4, 21)]),
    "resnet": (ResNet, lambda: [normal(8, 3, 24, 24), labels(10, 8)]),
    "denoiser": (Denoiser, lambda: [normal(4, 3, 16, 16), normal(4), normal(4, 3, 16, 16)]),
    "encoder": (Encoder, lambda: [normal(8, 16, 12), labels(10, 8)]),
}


def trained(model: nn.Module, run: Callable[..., Tensor], batch: Sequence[Tensor]) -> list[float]:
    """The losses of the steps."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    losses: list[float] = []
    for _ in range(STEPS):
        optimizer.zero_grad()
        loss = run(*batch)
        loss.backward()
        optimizer.step()
        losses.append(float(loss.detach()))
    return losses


def gradients(model: nn.Module, run: Callable[..., Tensor], batch: Sequence[Tensor]) -> Any:
    return torch.autograd.grad(run(*batch), list(model.parameters()))


def outcome(name: str) -> dict[str, Any]:
    """error: the largest of a gradient, over its largest number; losses: ours and eager's."""
    kind, make = MODELS[name]
    torch.manual_seed(0)
    ours, batch = kind().to(DEVICE), make()
    eager = copy.deepcopy(ours)
    compiled = torch.compile(ours)
    pairs = zip(gradients(ours, compiled, batch), gradients(eager, eager, batch), strict=True)
    errors = [float((a - b).abs().max() / b.abs().max().clamp(min=1e-3)) for a, b in pairs]
    return {
        "name": name,
        "error": max(errors),
        "losses": [trained(ours, compiled, batch), trained(eager, eager, batch)],
    }


if __name__ == "__main__":
    settle_eager()
    inductor.cpu_backend, inductor.compile_threads = "triton", 1
    for model in sys.argv[1:] or MODELS:
        print(json.dumps(outcome(model)), flush=True)
