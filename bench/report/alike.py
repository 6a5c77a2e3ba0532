# SPDX-License-Identifier: Apache-2.0
"""Problems that are alike: a row of the suite, and the same sizes with a dilation, transposed, and with channels-last
strides. What counts is the time an operation takes, against the row itself."""
import json
import math
import pathlib

# How much longer an operation may take, and the rows that are tried: every kind of kernel, one or two of each.
LIMITS = {"dilated": 1.3, "transposed": 1.3, "channels-last": 1.5}
ROWS = ("rn50_3x3_28", "rn50_3x3_14", "rn50_3x3s2_14", "rn50_1x1_28_512_128", "r3d_3x3x3_8x28x28_c64", "w2v_k3s2_512",
        "tcn_k3_d1_c128", "rn50_stem_7x7s2", "mbv2_dw3_28_c192", "mbv2_dw3s2_28_c192", "effnet_dw5_28_c240",
        "convnext_dw7_14_c384", "dw1d_k7_c256", "x3d_dw3x3x3_8x28x28_c54", "rnxt_g32_3x3_28_c256", "rnxt_g32_3x3_56_c128")


def by_x(values):
    return "x".join(map(str, values))


def channels_last(shape):
    """SHAPE@STRIDES with the channels, which are the second axis, moving fastest."""
    space = [shape[1] * math.prod(shape[axis + 1:]) for axis in range(2, len(shape))]
    return f"{by_x(shape)}@{by_x([math.prod(shape[1:]), 1, *space])}"


class Sizes:
    """One row of the suite, with whatever is changed about it."""

    def __init__(self, row):
        def axes(key):
            return [int(word) for word in row[key].split("x")]

        self.groups = int(row["groups"])
        self.space, self.kernel = axes("spatial_in"), axes("kernel")
        self.stride, self.pad, self.dilation = axes("stride"), axes("pad"), axes("dilation")
        self.x = [int(row["N"]), int(row["Cin"]), *self.space]
        self.weight = [int(row["Cout"]), int(row["Cin"]) // self.groups, *self.kernel]
        self.y = [int(row["N"]), int(row["Cout"]), *self.results()]

    def results(self):
        return [(size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1 for size, kernel, stride, pad, dilation in
                zip(self.space, self.kernel, self.stride, self.pad, self.dilation)]

    def text(self, written=by_x, transposed=False):
        """As a convolution from x to y; transposed, from y to x, which the same weights do."""
        operands = {"input": self.x, "grad_output": self.y, "weight": self.weight, "grad_input": self.x,
                    "grad_weight": self.weight}
        if transposed:
            operands |= {"input": self.y, "grad_output": self.x, "grad_input": self.y}
        words = [f"{name}={written(shape)}" for name, shape in operands.items()]
        words += [f"stride={by_x(self.stride)}", f"padding={by_x(self.pad)}", f"dilation={by_x(self.dilation)}",
                  f"groups={self.groups}"]
        if transposed:
            beyond = [size - ((result - 1) * stride - 2 * pad + dilation * (kernel - 1) + 1) for
                      size, result, kernel, stride, pad, dilation in
                      zip(self.space, self.y[2:], self.kernel, self.stride, self.pad, self.dilation)]
            words += ["transposed=1", f"output_padding={by_x(beyond)}"]
        return " ".join(["conv", *words])


def problems(row):
    """Names of what is tried, the row itself first, and their one-line texts."""
    plain = Sizes(row)
    found = {"plain": plain.text(), "transposed": plain.text(transposed=True),
             "channels-last": plain.text(channels_last)}
    if math.prod(plain.kernel) > 1 and max(plain.dilation) == 1:
        apart = Sizes(row)
        apart.dilation = [2 if kernel > 1 else 1 for kernel in apart.kernel]
        apart.pad = [pad + (kernel - 1) // 2 for pad, kernel in zip(plain.pad, plain.kernel)]
        apart.y[2:] = apart.results()
        found["dilated"] = apart.text()
    return found


def figures(folder):
    """(row, gradient, {variant: time an operation takes over the row's own}) of every stored run."""
    out = []
    for file in sorted(pathlib.Path(folder).glob("*.json"), key=lambda file: file.stat().st_mtime_ns):
        rows = json.loads(file.read_text(encoding="utf-8"))["rows"]
        names = file.stem.split("~")[1:]
        for at, gradient in enumerate(("i", "w")):
            speeds = {name: rows[2 * number + at]["gflops"] for number, name in enumerate(names)}
            out.append((file.stem.split("~")[0], gradient,
                        {name: speeds["plain"] / speed for name, speed in speeds.items() if name != "plain"}))
    return out
