# SPDX-License-Identifier: Apache-2.0
"""What both trainings share: pictures that are made, not loaded, and a small network of depthwise blocks."""

import math

import torch
from torch import nn

CLASSES, SIDE = 8, 32


def draw(count, generator):
    """Gratings in eight directions, of any wavelength and phase, in three colours, in noise: (pictures, directions)."""
    label = torch.randint(CLASSES, (count,), generator=generator)
    wavelength = 4 + 6 * torch.rand(count, 1, 1, generator=generator)
    phase = 2 * math.pi * torch.rand(count, 1, 1, generator=generator)
    colour = torch.randn(count, 3, 1, 1, generator=generator)
    angle = (math.pi * label / CLASSES).view(-1, 1, 1)
    y, x = torch.meshgrid(torch.arange(SIDE), torch.arange(SIDE), indexing="ij")
    along = x * torch.cos(angle) + y * torch.sin(angle)
    wave = torch.sin(2 * math.pi * along / wavelength + phase)
    return colour * wave.unsqueeze(1) + 0.8 * torch.randn(count, 3, SIDE, SIDE, generator=generator), label


class Block(nn.Module):
    """Depthwise 7 x 7, then a mix of channels, around a skip."""

    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.GroupNorm(1, channels)
        self.mix = nn.Sequential(nn.Conv2d(channels, 2 * channels, 1), nn.GELU(), nn.Conv2d(2 * channels, channels, 1))

    def forward(self, x):
        return x + self.mix(self.norm(self.depthwise(x)))


class Network(nn.Module):
    def __init__(self, channels=24):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(3, channels, 3, padding=1), Block(channels), nn.AvgPool2d(2),
            nn.Conv2d(channels, 2 * channels, 3, padding=1), Block(2 * channels), nn.AvgPool2d(2), Block(2 * channels),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2 * channels, CLASSES))

    def forward(self, x):
        return self.layers(x)


def training_step(model, optimiser, pictures, directions):
    optimiser.zero_grad(set_to_none=True)
    loss = nn.functional.cross_entropy(model(pictures), directions)
    loss.backward()
    optimiser.step()
    return loss.detach()
