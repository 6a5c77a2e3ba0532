# SPDX-License-Identifier: Apache-2.0
"""python -m retrograd.torch.build: puts libretrograd_torch.so into the package, so that `enable` need not build it."""

import argparse
import sys

from . import _build, _pytorch


def main():
    parser = argparse.ArgumentParser(prog="python -m retrograd.torch.build", description=__doc__.split("\n")[0])
    parser.add_argument("--into", metavar="FOLDER", help="a folder other than that of the package")
    arguments = parser.parse_args()
    try:
        _pytorch.check_version()
        print(_build.build_into_package(_pytorch.folders(), arguments.into))
    except RuntimeError as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
