#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the seeds in corpus/: typical problems, in the order in which the fuzz targets decode them."""
import pathlib

CORPUS = pathlib.Path(__file__).with_name("corpus")
LIVE, OWN_SHAPE, STRIDED, OFFSET = 0x04, 0x08, 0x10, 0x20
DTYPES = {"f32": 0, "f16": 1, "bf16": 2, "hif8": 3, "e4m3": 4}
ND, NCL, NCHW, NCDHW = range(4)
FORMATS = {1: ND, 3: NCL, 4: NCHW, 5: NCDHW}


# ByteReader::number() reads these from the bytes 240 and up.
ODD = [-1, -2, -7, 255, 256, 65535, 65536, 2**31, 2**32 + 1, 2**40, 2**61, 2**62, 2**63 - 2, 2**63 - 1, -2**63]


def numbers(values):
    return bytes(v if 0 <= v < 240 else 240 + ODD.index(v) for v in values)


def int_array(values):
    return bytes([LIVE, len(values)]) + numbers(values)


def acl_tensor(shape=None, dtype="f32", form=ND, strides=None, offset=None):
    mode = LIVE | (OWN_SHAPE if shape else 0) | (STRIDED if strides else 0) | (OFFSET if offset is not None else 0)
    data = bytes([mode]) + (bytes([len(shape)]) + numbers(shape) if shape else b"")
    data += bytes([DTYPES[dtype], form]) + numbers(strides or [])
    return data + (numbers([offset]) if offset is not None else b"")


def conv(x, w, stride, padding, dilation, groups=1, transposed=False, output_padding=None, dtype="f32", mask=7, math=0,
         bias_channels=None, x_strides=None, x_offset=None):
    axes, form = len(x) - 2, FORMATS[len(x)]
    data = bytes([transposed]) + numbers([groups]) + bytes([math, LIVE, mask])
    for values in (stride, padding, dilation, output_padding or [0] * axes, [bias_channels or w[0]]):
        data += int_array(values)
    wide = "f32" if dtype in ("hif8", "e4m3") else dtype
    data += acl_tensor(x, dtype, form, x_strides, x_offset) + acl_tensor(w, dtype, form) + acl_tensor(None, dtype, form)
    data += acl_tensor(None, wide, form) + acl_tensor(None, wide, form) + acl_tensor(None, wide, ND)
    return data + bytes([0, 1])


def tbc(x, w, pad, dtype="f32", math=0):
    tensors = [x, w, None, None, None, None, None]
    return numbers([pad]) + bytes([math]) + b"".join(acl_tensor(t, dtype) for t in tensors) + bytes([0, 0])


def infini_tensor(shape=None, dtype="f32", strides=None):
    mode = LIVE | (OWN_SHAPE if shape else 0) | (STRIDED if strides else 0)
    data = bytes([mode]) + (bytes([len(shape)]) + numbers(shape) if shape else b"")
    return data + bytes([DTYPES[dtype]]) + numbers(strides or [])


def arrays(*lists, wide=False):
    null = sum(2 << i for i, values in enumerate(lists) if values is None)
    return bytes([wide | null]) + b"".join(numbers(values) for values in lists if values is not None)


def infini_conv(x, w, pads, strides, dilations, groups=1, dtype="f32", wide=False, x_strides=None):
    data = bytes([LIVE]) + numbers([groups]) + infini_tensor(x, dtype, x_strides) + infini_tensor(w, dtype)
    data += arrays(pads, strides, dilations, wide=wide)
    return data + infini_tensor(None, dtype) + infini_tensor(None, dtype) + bytes([0])


def pool(x, kernel, strides, pads, ceil=False, dtype="f32", wide=True):
    data = bytes([LIVE, ceil]) + infini_tensor(x, dtype) + arrays(kernel, strides, pads, wide=wide)
    return data + infini_tensor(None, dtype) + infini_tensor(None, dtype) + bytes([0])


SEEDS = {
    "conv_backward": {
        "1d": conv([2, 4, 16], [8, 4, 5], [1], [0], [1]),
        "2d_strided_padded": conv([2, 3, 10, 10], [6, 3, 3, 3], [1, 2], [0, 1], [2, 2]),
        "2d_asymmetric": conv([1, 2, 7, 6], [3, 2, 3, 3], [2, 2], [1, 0, 2, 1], [1, 1], dtype="bf16"),
        "3d": conv([1, 2, 5, 5, 5], [4, 2, 2, 2, 2], [1, 1, 1], [0, 1, 1], [1, 1, 1], dtype="f16"),
        "grouped": conv([2, 4, 6, 6], [4, 2, 3, 3], [1, 1], [1, 1], [1, 1], groups=2, math=3),
        "depthwise": conv([1, 6, 5, 5], [6, 1, 3, 3], [1, 1], [1, 1], [1, 1], groups=6, math=2),
        "transposed": conv([1, 4, 5, 4], [4, 3, 3, 2], [2, 3], [1, 0], [1, 2], transposed=True, output_padding=[1, 2],
                           bias_channels=3),
        "eight_bit": conv([1, 2, 4, 4], [2, 2, 2, 2], [1, 1], [0, 0], [1, 1], dtype="hif8"),
        "empty_batch": conv([0, 2, 4, 4], [2, 2, 2, 2], [1, 1], [0, 0], [1, 1]),
        "empty_with_enormous_kernel": conv([2, 3, 2**40], [0, 3, 2**40], [1], [0], [1], mask=3),
        "input_gradient_only": conv([1, 2, 8], [2, 2, 3], [1], [1], [1], mask=1, dtype="e4m3"),
        "far_stride_of_one_channel": conv([1, 1, 9, 8], [2, 1, 3, 3], [2, 1], [1, 1], [1, 1],
                                          x_strides=[2**61, 2**62, 8, 1], x_offset=0),
        "reversed_input": conv([1, 2, 4, 4], [2, 2, 2, 2], [1, 1], [0, 0], [1, 1], x_strides=[32, 16, 4, -1],
                               x_offset=3),
    },
    "conv_tbc_backward": {
        "plain": tbc([5, 1, 2], [1, 2, 2], 0),
        "padded": tbc([7, 2, 3], [3, 3, 4], 1, dtype="f16"),
        "rounded": tbc([6, 2, 2], [2, 2, 3], 2, math=3),
        "empty": tbc([0, 2, 2], [1, 2, 2], 0, dtype="bf16"),
        "empty_with_enormous_batch": tbc([0, 2**61, 2], [1, 2, 41], 0),
    },
    "infiniop_conv_backward": {
        "1d": infini_conv([2, 4, 16], [8, 4, 5], [0], [1], [1]),
        "2d_int32": infini_conv([1, 2, 28, 14], [4, 2, 5, 3], [1, 2], [3, 2], [1, 1]),
        "2d_int64": infini_conv([2, 3, 10, 10], [6, 3, 3, 3], [0, 1], [1, 2], [2, 2], dtype="f16", wide=True),
        "3d": infini_conv([1, 2, 5, 5, 5], [4, 2, 2, 2, 2], [0, 1, 1], [1, 1, 1], [1, 1, 1], dtype="bf16"),
        "grouped": infini_conv([2, 4, 16], [4, 2, 3], [1], [1], [1], groups=2),
        "null_attributes": infini_conv([1, 1, 4, 4], [2, 1, 3, 3], None, None, None),
        "far_stride_of_one_channel": infini_conv([1, 1, 9, 8], [2, 1, 3, 3], [1, 1], [2, 1], [1, 1], dtype="bf16",
                                                 x_strides=[2**61, 2**62, 8, 1]),
        "channels_last": infini_conv([1, 2, 4, 4], [2, 2, 2, 2], [0, 0], [1, 1], [1, 1], x_strides=[32, 1, 8, 2]),
    },
    "infiniop_avgpool_backward": {
        "1d_ceil": pool([1, 3, 99], [4], [3], [1], ceil=True),
        "2d": pool([2, 4, 16, 15], [3, 5], [1, 2], [1, 2]),
        "2d_int32": pool([1, 1, 33, 33], [4, 4], [3, 3], [1, 1], ceil=True, dtype="f16", wide=False),
        "3d": pool([1, 1, 9, 9, 9], [4, 4, 4], [3, 3, 3], [1, 1, 1], ceil=True, dtype="bf16"),
        "default_stride": pool([1, 2, 6, 6], [2, 2], None, None),
        "overhanging": pool([1, 1, 5], [2], [2], [0], ceil=True),
    },
}

for target, seeds in SEEDS.items():
    (CORPUS / target).mkdir(parents=True, exist_ok=True)
    for name, data in seeds.items():
        (CORPUS / target / name).write_bytes(data)
