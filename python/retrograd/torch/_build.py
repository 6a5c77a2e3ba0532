# SPDX-License-Identifier: Apache-2.0
"""Builds libretrograd_torch.so, the C++ part of retrograd.torch.

It needs PyTorch's headers, which the package itself does not: PyTorch is no requirement of `pip install retrograd`. So
`enable()` builds it once, in some seconds, into a cache folder, unless the package already holds one. A packager, or an
administrator of machines without a compiler, puts it into the package:

    python -m retrograd.torch.build

It is built on PyTorch's stable ABI for 2.10 and runs on that version and later ones.
"""

import concurrent.futures
import ctypes
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
import tempfile

PACKAGE = os.path.dirname(os.path.abspath(__file__))
NAME = "libretrograd_torch.so"
FLAGS = ["-std=c++17", "-O2", "-fPIC", "-fvisibility=hidden", "-pthread", "-DTORCH_TARGET_VERSION=0x020a000000000000ULL"]

# csrc/control.cpp: the result, then the arguments.
FUNCTIONS = {
    "install": (ctypes.c_char_p, ctypes.c_uint32, ctypes.c_uint32),
    "why_no_gpu": (ctypes.c_char_p,),
    "tf32": (ctypes.c_uint32, ctypes.c_uint32),
    "uninstall": (ctypes.c_char_p,),
    "set_policy": (None, ctypes.c_uint32),
    "counts": (ctypes.c_char_p,),
    "reset_counts": (None,),
    "begin_probe": (None,),
    "end_probe": (ctypes.c_uint64,),
    "plans": (ctypes.c_uint64,),
    "kept_bytes": (ctypes.c_uint64,),
    "note_error": (None, ctypes.c_char_p),
}


class BuildError(RuntimeError):
    """libretrograd_torch.so cannot be built; the message says why and what to do."""


def sources():
    folder = os.path.join(PACKAGE, "csrc")
    names = sorted(os.listdir(folder)) if os.path.isdir(folder) else []
    files = [os.path.join(folder, name) for name in names if name.endswith((".cpp", ".h"))]
    if not files:
        raise BuildError(f"retrograd.torch: the C++ sources are missing from {folder}: install the package again")
    return files


def headers():
    """The folder that holds retrograd/retrograd.h: of the package, or of the checkout it is used from."""
    for folder in (os.path.join(PACKAGE, "..", "include"), os.path.join(PACKAGE, "..", "..", "..", "include")):
        if os.path.exists(os.path.join(folder, "retrograd", "retrograd.h")):
            return os.path.realpath(folder)
    raise BuildError("retrograd.torch: retrograd/retrograd.h is missing from the package: install it again")


def library():
    """The file of the libretrograd that this process uses."""
    import retrograd  # loads it  # noqa: F401

    with open("/proc/self/maps", encoding="utf-8", errors="replace") as maps:
        for line in maps:
            path = line.rstrip("\n").partition("/")
            if os.path.basename(path[2]).startswith("libretrograd.so"):
                return "/" + path[2]
    raise BuildError("retrograd.torch: this process has no libretrograd.so, which `import retrograd` should have loaded")


def compiler():
    named = os.environ.get("CXX")
    if named:
        command = shlex.split(named)
        if command and shutil.which(command[0]):
            return command
        raise BuildError(f"retrograd.torch: there is no compiler {named!r}, which the variable CXX names")
    for name in ("c++", "g++", "clang++"):
        if shutil.which(name):
            return [name]
    raise BuildError(
        "retrograd.torch needs a C++17 compiler once, to build its part that is made for this PyTorch, and there is none: "
        "install g++ or clang++, or name one by the variable CXX, or run `python -m retrograd.torch.build` where there is "
        f"one and copy {NAME} into {PACKAGE}"
    )


def cache_folder():
    named = os.environ.get("RETROGRAD_CACHE_DIR")
    if named:
        return named
    return os.path.join(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "retrograd")


def _run(command):
    result = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if result.returncode != 0:
        lines = [line for line in result.stderr.splitlines() if "error" in line] or result.stderr.splitlines()
        raise BuildError("retrograd.torch: building {} failed: {}\nThe command was: {}".format(
            NAME, "\n".join(lines[:10]), shlex.join(command)))


def _build(output, torch_folders, runpath):
    """Compiles and links next to `output`, and moves the result there in one step."""
    include, lib = torch_folders
    if not os.path.exists(os.path.join(include, "torch", "csrc", "stable", "library.h")):
        raise BuildError(f"retrograd.torch: PyTorch's headers are missing from {include}: install torch from a wheel")
    command, ours = compiler(), library()
    flags = FLAGS + ["-isystem", include, "-I", headers()]
    folder = os.path.dirname(output)
    try:
        os.makedirs(folder, mode=0o700, exist_ok=True)
        work = tempfile.mkdtemp(prefix="build-", dir=folder)
    except OSError as error:
        raise BuildError(
            f"retrograd.torch: {folder} cannot be written ({error.strerror}); name another folder by RETROGRAD_CACHE_DIR"
        ) from error
    try:
        files = [file for file in sources() if file.endswith(".cpp")]
        objects = [os.path.join(work, os.path.basename(file) + ".o") for file in files]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count() or 1) as pool:
            list(pool.map(_run, [[*command, *flags, "-c", file, "-o", made] for file, made in zip(files, objects)]))
        made = os.path.join(work, NAME)
        _run([*command, "-shared", "-o", made, *objects, ours, "-L", lib, "-ltorch_cpu", f"-Wl,-rpath,{runpath}", "-Wl,-z,defs",
              "-Wl,--as-needed", "-Wl,--allow-shlib-undefined", "-ldl"])
        os.replace(made, output)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    return output


def _key(torch_version):
    digest = hashlib.sha256()
    ours = library()
    for text in (torch_version, ours, " ".join(compiler()), " ".join(FLAGS)):
        digest.update(text.encode() + b"\0")
    for file in [*sources(), os.path.join(headers(), "retrograd", "retrograd.h"), os.path.join(headers(), "retrograd", "export.h")]:
        with open(file, "rb") as stream:
            digest.update(stream.read() + b"\0")
    return digest.hexdigest()[:16]


def build_into_cache(torch_version, torch_folders):
    """The file for this PyTorch, this libretrograd and this compiler; built where it is not there yet."""
    output = os.path.join(cache_folder(), "torch-" + _key(torch_version), NAME)
    if not os.path.exists(output):
        print(f"retrograd.torch: building {output} for PyTorch {torch_version}, once", file=sys.stderr, flush=True)
        _build(output, torch_folders, os.path.dirname(library()))
    return output


def build_into_package(torch_folders, folder=None):
    folder = os.path.abspath(folder or PACKAGE)
    return _build(os.path.join(folder, NAME), torch_folders, "$ORIGIN/" + os.path.relpath(os.path.dirname(library()), folder))


def load(torch_version, torch_folders):
    """The shared object, of the package or of the cache, with its functions declared."""
    path = os.path.join(PACKAGE, NAME)
    if not os.path.exists(path):
        path = build_into_cache(torch_version, torch_folders)
    try:
        shared = ctypes.CDLL(path)
        for name, (result, *arguments) in FUNCTIONS.items():
            function = getattr(shared, "retrograd_torch_" + name)
            function.argtypes, function.restype = arguments, result
    except (OSError, AttributeError) as error:
        raise BuildError(f"retrograd.torch: {path} does not fit this PyTorch {torch_version} or this Retrograd: {error}") from error
    return shared
