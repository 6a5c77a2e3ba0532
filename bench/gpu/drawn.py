# SPDX-License-Identifier: Apache-2.0
"""Rows for against_pytorch.py that are drawn as networks have them, in the form of suite.py's, with windows by axis.

Ranks 2 : 1 : 3 as 65 : 20 : 15; dense 40 %, depthwise 19, groups 12, stems and patches 10, transposed 8, tiny 5, pooling 6.
At most `gflop` 10^9 products a gradient and `elements` elements in all tensors.
"""
import math
import random


def weighted(rng, *pairs):
    return rng.choices([value for value, _ in pairs], [weight for _, weight in pairs])[0]


def log_number(rng, low, high):
    return min(high, int(math.exp(rng.uniform(math.log(low), math.log(high + 1)))))


def channels(rng, low, high):
    drawn = log_number(rng, low, high)
    return drawn if rng.random() < 0.07 else max(8, (drawn + 4) // 8 * 8)


def rank(rng):
    return weighted(rng, (2, 65), (1, 20), (3, 15))


def largest(ndim):
    return {1: 16384, 2: 512, 3: 64}[ndim]


def axis(rng, ndim):
    """(size, kernel, stride, pad, dilation)"""
    size = log_number(rng, 4, largest(ndim))
    kernel = weighted(rng, (1, 30), (3, 45), (5, 8), (7, 6), (2, 4), (4, 3), (0, 4)) or rng.randint(9, 31)
    stride = weighted(rng, (1, 70), (2, 25), (3, 3), (4, 2))
    dilation = 1 if rng.random() < 0.88 else rng.choice((2, 2, 3, 4, 6, 12))
    reach = dilation * (kernel - 1)
    pad = max(0, (reach - size + 2) // 2, reach // 2 if rng.random() < 0.8 else 0)
    return size, kernel, stride, pad, dilation


def axes(rng, ndim, one):
    """Mostly alike; one axis in six is another."""
    return [axis(rng, ndim) if ndim > 1 and rng.randint(1, 6) == 1 else one for _ in range(ndim)]


def dense(rng):
    ndim = rank(rng)
    cin = channels(rng, 8, 1024)
    cout = cin if rng.random() < 0.5 else channels(rng, 8, 1024)
    return cin, cout, 1, axes(rng, ndim, axis(rng, ndim)), False


def depthwise(rng):
    ndim = rank(rng)
    groups = channels(rng, 8, 1024)
    multiplier = 1 if rng.random() < 0.9 else rng.randint(2, 4)
    size, kernel, stride, pad, dilation = axis(rng, ndim)
    if kernel == 1:
        kernel, pad = 3, dilation
    return groups, groups * multiplier, groups, axes(rng, ndim, (size, kernel, stride, pad, dilation)), False


def grouped(rng):
    ndim = rank(rng)
    inputs = log_number(rng, 1, 14) * 8 if rng.random() < 0.8 else rng.randint(4, 112)
    outputs = inputs if rng.random() < 0.8 else rng.randint(4, 112)
    groups = log_number(rng, 2, 64)
    return inputs * groups, outputs * groups, groups, axes(rng, ndim, axis(rng, ndim)), False


def stem_or_patches(rng):
    ndim = rank(rng)
    cin = rng.randint(1, 4)
    if rng.random() < 0.5:
        cout, kernel, stride = channels(rng, 16, 128), rng.choice((3, 5, 6, 7, 7, 8, 9, 11)), rng.choice((1, 2, 2, 2, 4))
        one = (log_number(rng, 28, largest(ndim)), kernel, stride, kernel // 2, 1)
    else:
        cout, kernel = channels(rng, 64, 1024), rng.choice((2, 4, 8, 14, 16, 16))
        if rng.random() < 0.25:
            cin = channels(rng, 32, 256)
        one = (kernel * log_number(rng, 1, max(1, largest(ndim) // kernel)), kernel, kernel, 0, 1)
    return cin, cout, 1, [one] * ndim, False


def transposed(rng):
    ndim = rank(rng)
    cin = channels(rng, 8, 512)
    cout = max(1, cin // 2) if rng.random() < 0.5 else channels(rng, 8, 512)
    stride = rng.choice((1, 2, 2, 2, 2, 4))
    kernel = rng.choice((stride, 2 * stride, 3, 5))
    one = (log_number(rng, 4, largest(ndim) // 2), kernel, stride, max(0, kernel - stride) // 2, 1)
    return cin, cout, 1, [one] * ndim, True


def tiny(rng):
    ndim = rank(rng)
    kernel = rng.choice((1, 2, 3, 3))
    one = (rng.randint(kernel, 8), kernel, 1, kernel // 2, 1)
    return channels(rng, 1, 64), channels(rng, 1, 64), 1, [one] * ndim, False


def out_size(size, kernel, stride, pad, dilation, is_transposed):
    reach = dilation * (kernel - 1) + 1
    return (size - 1) * stride - 2 * pad + reach if is_transposed else (size + 2 * pad - reach) // stride + 1


def convolution(rng, family, draw, gflop, elements):
    while True:
        cin, cout, groups, window, is_transposed = draw(rng)
        out = [out_size(*one, is_transposed) for one in window]
        if min(out) < 1:
            continue
        x, y = cin * math.prod(one[0] for one in window), cout * math.prod(out)
        taps = math.prod(one[1] for one in window)
        products = (x * cout if is_transposed else y * cin) * taps / groups
        weights = cin * cout // groups * taps
        most = min(gflop * 1e9 / products, (elements - weights) / (x + y), 256)
        if most < 1:
            continue
        n = log_number(rng, 1, int(most))
        size, kernel, stride, pad, dilation = zip(*window)
        return (family, len(window), n, cin, cout, groups, size, kernel, stride, pad, dilation, is_transposed)


def pooling(rng, elements):
    while True:
        ndim = rank(rng)
        size, kernel = log_number(rng, 4, largest(ndim)), rng.choice((2, 2, 3, 3, 3, 4, 5, 7))
        if rng.random() < 0.1:
            kernel = size
        stride = rng.choice((1, 2, kernel, kernel))
        pad = kernel // 2 if kernel % 2 and stride < kernel else 0
        c = channels(rng, 16, 1024)
        if kernel > size or c * size ** ndim > elements / 2:
            continue
        n = log_number(rng, 1, min(256, int(elements / 2 / (c * size ** ndim))))
        return ("pool", ndim, n, c, (size,) * ndim, kernel, stride, pad)


FAMILIES = ((dense, 40), (depthwise, 19), (grouped, 12), (stem_or_patches, 10), (transposed, 8), (tiny, 5), (None, 6))


def rows(seed, count, gflop=20, elements=1e8):
    """(convolutions, poolings)"""
    rng = random.Random(seed)
    convolutions, poolings = [], []
    for _ in range(count):
        family = weighted(rng, *FAMILIES)
        if family is None:
            poolings.append(pooling(rng, elements))
        else:
            convolutions.append(convolution(rng, family.__name__, family, gflop, elements))
    return convolutions, poolings
