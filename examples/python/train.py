#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains a small network twice, with PyTorch's backward passes and with Retrograd's, and compares losses and times.

    python examples/python/train.py [--steps 150] [--policy auto] [--device cpu] [--svg FILE]

Both begin with the same weights and see the same pictures. They take turns, ten steps each, so that whatever else the
machine does meets both. Exits 1 when the losses part."""

import argparse
import statistics
import sys
import time

import torch
from network import Network, draw, training_step

import retrograd.torch

BATCH, TURN = 16, 10
# Roundings differ in the last bits, and a training carries them on: 1 % of the first loss is far above what they become
# in a few hundred steps, and far below what a wrong gradient does.
APART = 0.01


class Training:
    def __init__(self, name, device):
        self.name, self.device = name, device
        torch.manual_seed(1)
        self.model = Network().to(device)
        self.optimiser = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.losses, self.seconds = [], []

    def run(self, batches):
        for pictures, directions in batches:
            begin = time.perf_counter()
            loss = training_step(self.model, self.optimiser, pictures, directions).item()  # waits for a GPU
            self.seconds.append(time.perf_counter() - begin)
            self.losses.append(loss)

    def report(self):
        tail = self.losses[-TURN:]
        print(f"{self.name:<15} {statistics.median(self.seconds) * 1e3:9.2f} ms a step {sum(self.seconds):8.2f} s   "
              f"loss {self.losses[0]:.4f} -> {statistics.mean(tail):.4f}")


def curves(trainings, width=720, height=360, left=56, bottom=40):
    """The losses as one SVG picture; later lines are thinner, so that lines that lie on each other are seen."""
    top = max(max(t.losses) for t in trainings) * 1.05
    steps = len(trainings[0].losses)
    across, up = width - left - 16, height - bottom - 16
    place = lambda i, loss: f"{left + across * i / max(1, steps - 1):.1f},{height - bottom - up * loss / top:.1f}"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for k in range(5):
        y = height - bottom - up * k / 4
        parts.append(f'<line x1="{left}" y1="{y:.1f}" x2="{width - 16}" y2="{y:.1f}" stroke="#ddd"/>'
                     f'<text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{top * k / 4:.2f}</text>')
    for k in range(5):
        x = left + across * k / 4
        parts.append(f'<text x="{x:.1f}" y="{height - bottom + 18}" text-anchor="middle">{round((steps - 1) * k / 4) + 1}</text>')
    parts.append(f'<text x="{left + across / 2}" y="{height - 6}" text-anchor="middle">step</text>')
    for i, (training, colour, stroke) in enumerate(zip(trainings, ("#e6a23c", "#1f5fa8"), (5, 1.6))):
        points = " ".join(place(step, loss) for step, loss in enumerate(training.losses))
        label = f"{training.name}: {sum(training.seconds):.1f} s"
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="{stroke}"/>'
                     f'<line x1="{width - 220}" y1="{30 + 20 * i}" x2="{width - 190}" y2="{30 + 20 * i}" stroke="{colour}" stroke-width="{stroke}"/>'
                     f'<text x="{width - 182}" y="{34 + 20 * i}">{label}</text>')
    return "\n".join([*parts, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--policy", default="auto", choices=("auto", "always", "depthwise"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--svg", metavar="FILE", help="draws both losses")
    options = parser.parse_args()
    if options.steps < 1:
        parser.error(f"--steps is {options.steps}, expected at least 1")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device is cuda, and this PyTorch finds no GPU")

    generator = torch.Generator().manual_seed(2)
    batches = [tuple(part.to(options.device) for part in draw(BATCH, generator)) for _ in range(options.steps)]
    stock, ours = Training("PyTorch", options.device), Training("with Retrograd", options.device)
    override = {"policy": options.policy, "devices": (options.device,)}
    with retrograd.torch.enable(**override):  # compiles its C++ part at the first use: not counted, nor is a first step
        Training("warm-up", options.device).run(batches[:1])
    Training("warm-up", options.device).run(batches[:1])
    retrograd.torch.reset_stats()
    for begin in range(0, options.steps, TURN):
        turn = batches[begin:begin + TURN]
        stock.run(turn)
        with retrograd.torch.enable(**override):
            ours.run(turn)

    print(f"torch {torch.__version__}, {options.device}, {torch.get_num_threads()} threads, {options.steps} steps of {BATCH} pictures, "
          f"policy {options.policy}")
    for training in (stock, ours):
        training.report()
    apart = max(abs(a - b) for a, b in zip(stock.losses, ours.losses))
    ratio = statistics.median(stock.seconds) / statistics.median(ours.seconds)
    print(f"a step is {ratio:.2f} times as fast; losses differ by {apart:.1e} at most")
    for operator, counts in retrograd.torch.stats().items():
        if isinstance(counts, dict) and (counts["taken"] or counts["fell_back"]):
            print(f"  {operator}: {counts['taken']} taken, {sum(counts['fell_back'].values())} left to PyTorch")
    if options.svg:
        with open(options.svg, "w", encoding="utf-8") as file:
            file.write(curves((stock, ours)))
    if not apart <= APART * stock.losses[0]:  # NaN is no agreement
        print(f"the losses part: {apart} is above {APART} of the first", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
