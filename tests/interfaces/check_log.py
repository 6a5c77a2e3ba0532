# SPDX-License-Identifier: Apache-2.0
"""The log as a user sees it: runs one_call under different environments and compares what stderr holds."""
import os
import re
import subprocess
import sys

failures = []


def log_of(**variables):
    environment = {k: v for k, v in os.environ.items() if not k.startswith("RETROGRAD_")}
    environment.update(variables)
    run = subprocess.run(sys.argv[1:], env=environment, capture_output=True, text=True, timeout=120)
    if run.returncode != 0 or run.stdout:
        failures.append(f"{variables}: exit code {run.returncode}, stdout {run.stdout!r}, stderr {run.stderr!r}")
    return run.stderr.splitlines()


def expect(what, condition, lines):
    if not condition:
        failures.append(what + ":\n  " + "\n  ".join(lines))


quiet = log_of()
expect("one warning by default, about biasSizes", len(quiet) == 1 and "biasSizes" in quiet[0], quiet)
silent = log_of(RETROGRAD_VERBOSE="none")
expect("nothing at all with none", silent == [], silent)

calls = [line for line in log_of(RETROGRAD_VERBOSE="call") if " call: " in line]
pattern = (r'retrograd: call: us=\d+\.\d+ op=aclnnConvolutionBackward device=cpu:0 steps="[^"]+" '
           r'problem="conv input=8x2x64x64 weight=2x2x1x1 grad_output=8x2x64x64 rules=aclnn"')
expect("one machine-readable line a call", len(calls) == 1 and re.fullmatch(pattern, calls[0]), calls)

story = [line for line in log_of(RETROGRAD_VERBOSE="dispatch") if " dispatch: " in line]
expect("each candidate's answer, with the reason of a refusal",
       any(re.search(r"pass=grad_bias candidate=cpu.chunked_bias chosen us=[0-9.]+$", line) for line in story)
       and any("pass=grad_bias candidate=cpu.dense_gather declined: computes forward and grad_input only" in line
               for line in story)
       and any(re.search(r"pass=grad_weight candidate=cpu.narrow_grad_weight (chosen|accepted) us=", line) for line in story), story)

story = [line for line in log_of(RETROGRAD_VERBOSE="dispatch", RETROGRAD_WORKSPACE_LIMIT="0") if " dispatch: " in line]
expect("whoever needs more than the limit is passed over, and the reference serves",
       any(re.search(r"declined: needs [1-9]\d* bytes of workspace, the limit is 0$", line) for line in story)
       and any("candidate=reference chosen us=" in line for line in story), story)

errors = [line for line in log_of(RETROGRAD_VERBOSE="error") if "161002" in line]
expect("the failing call's message", len(errors) == 1 and "groups is 7" in errors[0], errors)

for name, value, legal in (("RETROGRAD_VERBOSE", "loud", "dispatch"), ("RETROGRAD_NUM_THREADS", "many", "1"),
                           ("RETROGRAD_DEVICE", "tpu", "cuda"), ("RETROGRAD_HF32_BITS", "12", "11"),
                           ("RETROGRAD_WINOGRAD", "yes", "0 or 1"), ("RETROGRAD_CPU_ISA", "mmx", "avx2"),
                           ("RETROGRAD_BITS", "exact", "portable"),
                           ("RETROGRAD_RULES", "910", "910_95"), ("RETROGRAD_WORKSPACE_LIMIT", "1 GB", "bytes")):
    lines = [line for line in log_of(**{name: value}) if name in line]
    expect(f"{name}={value} is warned about once, with the legal values",
           len(lines) == 1 and value in lines[0] and legal in lines[0], lines)

print("\n".join(failures) or "the log is as documented")
sys.exit(1 if failures else 0)
