# SPDX-License-Identifier: Apache-2.0
"""A small network and a training loop. Besides convolutions and pooling there are element-wise steps only, whose results
depend on no order. PyTorch's own forward pass of a 1 x 1 convolution does depend on the number of threads (2.15, oneDNN), so
that it is one of the layers on request only, and `forward_threads` can be kept the same."""

import hashlib

import torch
from torch import nn


class Network(nn.Module):
    def __init__(self, pointwise=False):
        super().__init__()
        self.stem = nn.Conv2d(3, 16, 3, stride=2, padding=1)
        self.depthwise = nn.Conv2d(16, 16, 5, padding=2, groups=16)
        self.dense = nn.Conv2d(16, 32, 3, padding=1)
        self.narrow = nn.Conv2d(32, 16, 1) if pointwise else nn.Conv2d(32, 16, 3, padding=1)
        self.up = nn.ConvTranspose2d(16, 4, 2, stride=2)

    def forward(self, x):
        x = torch.relu(self.stem(x))
        x = torch.relu(self.depthwise(x))
        x = nn.functional.avg_pool2d(torch.relu(self.dense(x)), 2)
        return self.up(torch.relu(self.narrow(x)))


def train(steps, dtype=torch.float32, pointwise=False, forward_threads=None):
    threads = torch.get_num_threads()
    torch.manual_seed(3)
    model = Network(pointwise).to(dtype)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, foreach=False)
    x = torch.randn(4, 3, 24, 24).to(dtype)
    target = torch.randn(4, 4, 12, 12).to(dtype)
    for _ in range(steps):
        optimiser.zero_grad()
        torch.set_num_threads(forward_threads or threads)
        output = model(x)
        torch.set_num_threads(threads)
        output.backward((output - target).detach() / output.numel())  # the gradient of half the mean square
        optimiser.step()
    return model


def digest(model):
    whole = hashlib.sha256()
    for parameter in model.parameters():
        whole.update(parameter.detach().contiguous().view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()
