"""Put deliberate faults into the package, one at a time, and print which of them the tests find.

``python -m spec_tests.labs.faults --depth=quick [NAME …]`` runs the tests that concern each fault up to the first
failure, and runs the test that failed once more without the fault, where it must pass.
"""

import argparse
import sys

from spec_tests.labs.faults import running
from spec_tests.labs.faults.faults import FAULTS


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="which faults (default: all)")
    parser.add_argument("--depth", choices=["quick", "full"], default="quick")
    parser.add_argument("--seed", type=int, metavar="N", help="for pytest (default: today's)")
    parser.add_argument("--jobs", type=int, metavar="N", default=running.cores(), help="processes (default: cores)")
    parser.add_argument("--list", action="store_true", help="print the faults and their seams")
    arguments = parser.parse_args()
    unknown = set(arguments.names) - FAULTS.keys()
    if unknown:
        parser.error(f"no such faults: {', '.join(sorted(unknown))}")
    chosen = [fault for name, fault in FAULTS.items() if not arguments.names or name in arguments.names]
    if arguments.list:
        sys.stdout.writelines(f"{fault.name}: {fault.seam}\n" for fault in chosen)
        return
    options = [f"--depth={arguments.depth}", *([] if arguments.seed is None else [f"--seed={arguments.seed}"])]
    outcomes = []
    for fault, outcome in running.outcomes(chosen, options, arguments.jobs):
        outcomes.append(outcome)
        sys.stdout.write(f"{fault.name}: {outcome}\n")
        sys.stdout.flush()
    found = sum(outcome.is_found for outcome in outcomes)
    sys.stdout.write(f"{found} of {len(chosen)} found\n")
    sys.exit(found < len(chosen))


if __name__ == "__main__":
    main()
