#!/usr/bin/env python3
"""Runs the cases, inside the cluster's namespaces: tests/cluster/run does that.

    run_cases.py PROGRAM SCRATCH [--quick] [--only WORD] [--table PAGE]

A case that fails is told and the next one begins; the end names those that failed.
"""

import argparse
import subprocess
import sys
import time
import traceback
from pathlib import Path

# Nothing is left behind in the repository.
sys.dont_write_bytecode = True
HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

from cases import installs, removal, replacements, scaling, security, two_nodes, upgrades  # noqa: E402
from chart import Chart  # noqa: E402
from load import Expected  # noqa: E402
from rows import Failed, Rows, heading, put_into  # noqa: E402
from trial import Trial  # noqa: E402

# In this order; those of --quick first.
QUICK = [
    replacements.defaults,
    replacements.restarts_of_one,
    replacements.losses,
    replacements.coordinator_killed,
]
LONG = [
    replacements.restarts_of_pairs,
    replacements.drain,
    upgrades.to_what_never_serves,
    upgrades.of_one_role,
    installs.ci_values,
    security.network_policies,
    security.tls_and_tokens,
    scaling.autoscaling,
    two_nodes.two_nodes,
]
LAST = [removal.uninstall]
# Tokens of each answer.
MAX_TOKENS = 300


def run(case, trial):
    """Whether a case came out as it should."""
    began = time.monotonic()
    try:
        case(trial)
    except (Failed, subprocess.SubprocessError, OSError, ValueError, KeyError) as error:
        print(f"cluster: {case.__name__} FAILED: {error}", flush=True)
        if not isinstance(error, Failed):
            traceback.print_exc()
        for what in (["get", "pods"], ["get", "events", "--sort-by", ".lastTimestamp"]):
            said = trial.chart.kubectl(*what, check=False).stdout
            print("\n".join(said.splitlines()[-25:]), flush=True)
        return False
    print(f"   -- {case.__name__}: {time.monotonic() - began:.0f} s", flush=True)
    return True


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=Path)
    parser.add_argument("scratch", type=Path)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--table", type=Path)
    args = parser.parse_args()
    began = time.monotonic()
    chart = Chart(ROOT / "helm" / "outrider")
    trial = Trial(chart, Expected(str(args.binary), MAX_TOKENS), Rows(), str(args.binary), ROOT, args.scratch)
    chart.kubectl("create", "namespace", chart.namespace, check=False)
    heading()
    cases = [case for case in [*QUICK, *([] if args.quick else LONG), *LAST] if args.only in case.__name__]
    if not cases:
        sys.exit(f"cluster: no case has {args.only} in its name")
    failed = [case.__name__ for case in cases if not run(case, trial)]
    table = trial.rows.markdown()
    print(f"\n{table}")
    if failed:
        sys.exit(f"cluster: {len(cases) - len(failed)} passed, {len(failed)} FAILED: {', '.join(failed)}")
    if args.table:
        put_into(args.table, table)
    print(f"cluster: {len(cases)} passed in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    main()
