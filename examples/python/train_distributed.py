#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Data-parallel training: every rank takes its part of each batch, and gradients are averaged over all.

    torchrun --nproc-per-node 2 examples/python/train_distributed.py [--steps 40] [--bucket-mb 25] [--policy always]

gloo on CPUs, NCCL where every rank has a GPU. At the end all ranks compare their weights; exits 1 when a bit differs."""

import argparse
import hashlib
import os
import sys
import time

import torch
import torch.distributed as dist
from network import Network, draw, training_step
from torch.nn.parallel import DistributedDataParallel

import retrograd.torch

BATCH = 32  # of all ranks together


def weights_digest(model):
    whole = hashlib.sha256()
    for parameter in model.parameters():
        whole.update(parameter.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()


def train(options, device):
    rank, ranks = dist.get_rank(), dist.get_world_size()
    torch.manual_seed(1)
    model = DistributedDataParallel(Network().to(device), bucket_cap_mb=options.bucket_mb)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(2)  # the same pictures everywhere; each rank keeps its part
    mine = slice(rank * BATCH // ranks, (rank + 1) * BATCH // ranks)
    losses, seconds = [], 0.0
    for _ in range(options.steps):
        pictures, directions = draw(BATCH, generator)
        begin = time.perf_counter()
        loss = training_step(model, optimiser, pictures[mine].to(device), directions[mine].to(device))
        dist.all_reduce(loss)
        losses.append(loss.item() / ranks)
        seconds += time.perf_counter() - begin
    digests = [None] * ranks
    dist.all_gather_object(digests, weights_digest(model.module))
    same = len(set(digests)) == 1
    if rank == 0:
        print(f"{ranks} ranks, {dist.get_backend()}, buckets of {options.bucket_mb:g} MB, {options.steps} steps of {BATCH} pictures, {seconds:.1f} s")
        print(f"loss {losses[0]:.6f} -> {losses[-1]:.6f}")
        print(f"weights {digests[0][:16]}, {'the same' if same else 'NOT the same'} on every rank")
    return same


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=40)
    parser.add_argument("--bucket-mb", type=float, default=25, help="gradients that are reduced in one go (%(default)s)")
    parser.add_argument("--policy", default="always", choices=("auto", "always", "depthwise"))
    parser.add_argument("--device", default="cpu", choices=("cpu", "cuda"))
    parser.add_argument("--without", action="store_true", help="PyTorch's own backward passes, to compare with")
    options = parser.parse_args()
    if "RANK" not in os.environ:
        parser.error("start it with torchrun, which numbers the processes")
    ranks = int(os.environ["WORLD_SIZE"])
    if BATCH % ranks:
        parser.error(f"{ranks} ranks, expected a divisor of {BATCH}: the mean of equal parts is that of the batch")
    if options.device == "cuda" and not torch.cuda.is_available():
        parser.error("--device is cuda, and this PyTorch finds no GPU")

    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if options.device == "cuda" else torch.device("cpu")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    if not options.without:
        retrograd.torch.enable(policy=options.policy, devices=(device.type,))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        same = train(options, device)
        dist.barrier()  # nobody closes a connection that another rank still reads from
    finally:
        dist.destroy_process_group()
    return 0 if same else 1


if __name__ == "__main__":
    code = main()
    # A thread of gloo lets go of the tensors of a call a moment after the call is done, and aborts the process where the
    # interpreter is gone by then. So the process ends without taking the interpreter down.
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
