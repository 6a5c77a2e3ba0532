# SPDX-License-Identifier: Apache-2.0
"""Small networks of the usual kinds, written for measuring: one constructor each, and the input it takes."""

import torch
from torch import nn
from torch.nn import functional


class BasicBlock(nn.Module):
    def __init__(self, c_in, c_out, stride):
        super().__init__()
        self.first, self.second = nn.Conv2d(c_in, c_out, 3, stride, 1, bias=False), nn.Conv2d(c_out, c_out, 3, 1, 1, bias=False)
        self.norms = nn.ModuleList([nn.BatchNorm2d(c_out), nn.BatchNorm2d(c_out)])
        same = stride == 1 and c_in == c_out
        self.short = nn.Identity() if same else nn.Sequential(nn.Conv2d(c_in, c_out, 1, stride, bias=False), nn.BatchNorm2d(c_out))

    def forward(self, x):
        y = functional.relu(self.norms[0](self.first(x)))
        return functional.relu(self.norms[1](self.second(y)) + self.short(x))


def resnet():
    """Eight convolutions of 3 x 3 in two sizes, as in the stages of a ResNet-18."""
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.AvgPool2d(3, 2, 1)]
    blocks = [BasicBlock(64, 64, 1), BasicBlock(64, 128, 2), BasicBlock(128, 256, 2)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 100)), (4, 3, 112, 112)


class InvertedResidual(nn.Module):
    def __init__(self, c_in, c_out, stride, expansion=4):
        super().__init__()
        wide = c_in * expansion
        self.body = nn.Sequential(
            nn.Conv2d(c_in, wide, 1, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, wide, 3, stride, 1, groups=wide, bias=False), nn.BatchNorm2d(wide), nn.ReLU6(),
            nn.Conv2d(wide, c_out, 1, bias=False), nn.BatchNorm2d(c_out))
        self.adds = stride == 1 and c_in == c_out

    def forward(self, x):
        return x + self.body(x) if self.adds else self.body(x)


def mobilenet():
    """Inverted residuals of a MobileNet: 1 x 1, depthwise 3 x 3, 1 x 1."""
    stem = [nn.Conv2d(3, 24, 3, 2, 1, bias=False), nn.BatchNorm2d(24), nn.ReLU6()]
    blocks = [InvertedResidual(24, 24, 1), InvertedResidual(24, 48, 2), InvertedResidual(48, 48, 1), InvertedResidual(48, 96, 2),
              InvertedResidual(96, 96, 1)]
    return nn.Sequential(*stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, 100)), (4, 3, 112, 112)


class ConvNeXtBlock(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.depthwise = nn.Conv2d(channels, channels, 7, padding=3, groups=channels)
        self.norm = nn.LayerNorm(channels)
        self.wide, self.narrow = nn.Linear(channels, 4 * channels), nn.Linear(4 * channels, channels)

    def forward(self, x):
        y = self.norm(self.depthwise(x).permute(0, 2, 3, 1))
        return x + self.narrow(functional.gelu(self.wide(y))).permute(0, 3, 1, 2)


def convnext():
    """Patches of 4 x 4, depthwise 7 x 7, patches of 2 x 2 between the stages."""
    layers = [nn.Conv2d(3, 64, 4, 4), ConvNeXtBlock(64), ConvNeXtBlock(64), nn.Conv2d(64, 128, 2, 2), ConvNeXtBlock(128),
              ConvNeXtBlock(128)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(128, 100)), (2, 3, 112, 112)


class ConformerConvolution(nn.Module):
    def __init__(self, channels):
        super().__init__()
        self.norm = nn.LayerNorm(channels)
        self.gate = nn.Conv1d(channels, 2 * channels, 1)
        self.depthwise = nn.Conv1d(channels, channels, 31, padding=15, groups=channels)
        self.batch_norm = nn.BatchNorm1d(channels)
        self.out = nn.Conv1d(channels, channels, 1)

    def forward(self, x):  # (N, C, T)
        y = functional.glu(self.gate(self.norm(x.transpose(1, 2)).transpose(1, 2)), dim=1)
        return x + self.out(functional.silu(self.batch_norm(self.depthwise(y))))


def conformer():
    """The convolution modules of a Conformer, with a strided 1-D stem."""
    stem = [nn.Conv1d(80, 144, 3, 2, 1), nn.ReLU()]
    return nn.Sequential(*stem, *[ConformerConvolution(144) for _ in range(4)]), (4, 80, 800)


class Unet3d(nn.Module):
    def __init__(self, channels=16):
        super().__init__()
        def pair(c_in, c_out):
            return nn.Sequential(nn.Conv3d(c_in, c_out, 3, padding=1), nn.ReLU(), nn.Conv3d(c_out, c_out, 3, padding=1), nn.ReLU())
        self.down, self.bottom, self.up = pair(1, channels), pair(channels, 2 * channels), pair(2 * channels, channels)
        self.widen = nn.ConvTranspose3d(2 * channels, channels, 2, stride=2)
        self.head = nn.Conv3d(channels, 2, 1)

    def forward(self, x):
        fine = self.down(x)
        coarse = self.bottom(functional.max_pool3d(fine, 2))
        return self.head(self.up(torch.cat([fine, self.widen(coarse)], 1)))


def unet3d():
    """One level of a 3-D U-Net."""
    return Unet3d(), (1, 1, 32, 32, 32)


MODELS = {model.__name__: model for model in (resnet, mobilenet, convnext, conformer, unet3d)}
