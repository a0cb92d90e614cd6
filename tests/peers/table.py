"""The table of what was measured."""

from statistics import median

from measure import AGREEMENT, FIGURES, LATE, PREFILL


def spread(numbers, digits=1):
    """The median of all repeats, and the least and the largest."""
    least, middle, most = (f"{of(numbers):,.{digits}f}" for of in (min, median, max))
    return f"{middle} ({least} to {most})"


def drafted(measured, name, figure):
    same, answers = measured.kept(name, figure)
    cell = f"{spread(measured.numbers[name][figure])}, {measured.ratio(name, figure):.2f} times"
    return (
        cell if same == answers else f"{cell}; {answers - same} of {answers} answers differ from those without drafts"
    )


def cell(measured, name, figure):
    if figure in measured.cannot[name]:
        return f"none: {measured.cannot[name][figure]}"
    if figure.baseline:
        return drafted(measured, name, figure)
    return spread(measured.numbers[name][figure])


def agreement(measured, name):
    """How many of the first tokens of each greedy answer are Outrider's."""
    counts = []
    for ours, theirs in zip(measured.tokens["outrider"][AGREEMENT], measured.tokens[name][AGREEMENT], strict=True):
        same = next((at for at, pair in enumerate(zip(ours, theirs, strict=True)) if pair[0] != pair[1]), len(ours))
        counts.append(f"{same} of {len(ours)}")
    return ", ".join(counts)


def markdown(measured, told):
    """One column a peer."""
    names = list(told)
    size, prompts = measured.size, measured.prompts
    rows = [["", *names]]
    for what in ("version", "command", "weights"):
        rows.append([what, *(told[name][what] for name in names)])
    rows += [[figure.name, *(cell(measured, name, figure) for name in names)] for figure in FIGURES]
    for what, figure in (("prefill of", PREFILL), ("decode after", LATE)):
        name_of_row = f"{what} {size.long_tokens:,} tokens, tokens/s"
        rows.append([name_of_row, *(cell(measured, name, figure) for name in names)])
    length = len(prompts["story"][0])
    rows.append(
        [f"first token after a prompt of {length}, ms", *(spread(measured.numbers[name]["first"]) for name in names)]
    )
    rows.append(["peak memory, MiB", *(f"{measured.memory_mib[name]:,.0f}" for name in names)])
    rows.append(
        ["first tokens of the repeated passages that are Outrider's", *(agreement(measured, name) for name in names)]
    )
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])
