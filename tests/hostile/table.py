"""The table, printed as it comes, and the same as JSON."""

import json
import math

HEADINGS = ("case", "connections", "p99 without", "p99", "ratio", "errors", "/livez", "MiB", "")
WIDTHS = (26, 11, 11, 9, 6, 6, 8, 6, 11)


def aligned(cells):
    first, *others = zip(cells, WIDTHS)
    return f"{first[0]:<{first[1]}}" + "".join(f" {cell:>{width}}" for cell, width in others)


def heading():
    print(aligned(HEADINGS), flush=True)


def seconds(value):
    return "none" if not math.isfinite(value) else f"{value:.2f} s" if value >= 1 else f"{value * 1e3:.0f} ms"


def show(row):
    """A line, and below it what was not as it must be and what the hostile clients got."""
    cells = (
        row.case.name,
        row.connections,
        seconds(row.undisturbed),
        seconds(row.p99),
        f"{row.ratio:.1f}" if math.isfinite(row.ratio) else "none",
        row.errors,
        seconds(row.livez),
        f"{row.mib:.0f}",
        "falls short" if row.faults else "holds",
    )
    print(aligned(cells), flush=True)
    for fault in row.faults:
        print(f"    {fault}", flush=True)
    print(f"    ({outcomes(row.hostile)})", flush=True)


def outcomes(tally):
    most = tally.most_common(6)
    return "the hostile clients: " + (", ".join(f"{count} x {outcome}" for outcome, count in most) or "nothing")


def write(rows, file):
    """All rows, times in seconds."""
    lines = [
        {
            "case": row.case.name,
            "what": row.case.what,
            "connections": row.connections,
            "p99_without_s": finite(row.undisturbed),
            "p99_s": finite(row.p99),
            "errors": row.errors,
            "livez_s": finite(row.livez),
            "mib": round(row.mib, 1),
            "faults": row.faults,
            "hostile": dict(row.hostile),
        }
        for row in rows
    ]
    file.write_text(json.dumps(lines, indent=1) + "\n")


def finite(value):
    """JSON has no infinity."""
    return round(value, 4) if math.isfinite(value) else None
