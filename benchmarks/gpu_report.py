"""Tables and plots of what `compare_gpu.py` measured."""

from __future__ import annotations

import json
import pathlib
from collections.abc import Iterator, Mapping, Sequence

Row = Mapping[str, object]
# Model, sizes and precision: what programs are compared at.
_Key = tuple[str, str, str]

OURS = "sofie"
# Of results in a precision, from float64: much more than rounding gives. Two neighbours of a jet
# may be equally far to the last bit, so that rounding decides which one ParticleNet takes.
_LARGEST_ERRORS = {"fp32": 1e-3, "tf32": 2e-2, "bf16": 1e-1, "fp16": 1e-1}


def _wall(row: Row) -> float:
    return float(str(row["wall_us"]))


def _comparisons(rows: Sequence[Row]) -> dict[_Key, dict[str, Row]]:
    """For each case and precision, the rows of the programs."""
    found: dict[_Key, dict[str, Row]] = {}
    for row in rows:
        key = str(row["model"]), str(row["sizes"]), str(row["precision"])
        found.setdefault(key, {})[str(row["program"])] = row
    return found


def _peers(programs: Mapping[str, Row]) -> list[Row]:
    """The rows of others, the fastest first."""
    others = (row for name, row in programs.items() if not name.startswith(OURS))
    return sorted(others, key=_wall)


def table(rows: Sequence[Row]) -> str:
    """Wall time and error of every program, a line for each case and precision, in Markdown.

    The ratio is the fastest peer's time by sofie's.
    """
    names = list(dict.fromkeys(str(row["program"]) for row in rows))
    lines = [
        "| model | sizes | precision | "
        + " | ".join(f"{name} µs (error)" for name in names)
        + " | ratio |",
        "| --- | --- | --- |" + " --- |" * (len(names) + 1),
    ]
    for key, programs in _comparisons(rows).items():
        cells = [
            f"{_wall(programs[name]):.0f} ({programs[name]['error']:.1e})"
            if name in programs
            else ""
            for name in names
        ]
        peers = _peers(programs)
        ratio = f"{_wall(peers[0]) / _wall(programs[OURS]):.2f}" if peers else ""
        lines.append(f"| {' | '.join([*key, *cells, ratio])} |")
    return "\n".join(lines) + "\n"


def slower(rows: Sequence[Row]) -> list[str]:
    """Every case in which a peer is faster than sofie."""
    return [
        f"{model} {sizes} {precision}: {peer['program']} {_wall(peer):.0f} µs, sofie "
        f"{_wall(programs[OURS]):.0f} µs ({_wall(peer) / _wall(programs[OURS]):.2f})"
        for (model, sizes, precision), programs in _comparisons(rows).items()
        for peer in _peers(programs)
        if _wall(peer) < _wall(programs[OURS])
    ]


def wrong(rows: Sequence[Row]) -> list[str]:
    """Every result that is too far from float64 for its precision."""
    return [
        f"{row['program']}, {row['model']} {row['sizes']} {row['precision']}: {row['error']:.1e}"
        for row in rows
        if not float(str(row["error"])) <= _LARGEST_ERRORS[str(row["precision"])]
    ]


def text(rows: Sequence[Row]) -> str:
    """The table, and in words what is amiss."""
    lost, bad = slower(rows), wrong(rows)
    lines = ["sofie is slower than a peer here:" if lost else "No peer is faster than sofie."]
    lines += [f"- {line}" for line in lost]
    if bad:
        lines += ["", "Wrong results, with their distance from float64:"]
        lines += [f"- {line}" for line in bad]
    return "\n".join([table(rows), *lines]) + "\n"


def _extents(row: Row) -> dict[str, int]:
    pairs = (part.split("=") for part in str(row["sizes"]).split(","))
    return {symbol: int(extent) for symbol, extent in pairs}


def axes(rows: Sequence[Row]) -> Iterator[tuple[str, list[Row]]]:
    """The symbols to plot a model's times against, and its rows at sizes that only differ in that.

    Where all sizes of a model grow together, that is its first symbol and every row.
    """
    symbols = list(_extents(rows[0]))
    found = False
    for symbol in symbols:
        groups: dict[tuple[int, ...], list[Row]] = {}
        for row in rows:
            others = tuple(extent for name, extent in _extents(row).items() if name != symbol)
            groups.setdefault(others, []).append(row)
        longest = max(groups.values(), key=lambda group: len({_extents(r)[symbol] for r in group}))
        if len({_extents(row)[symbol] for row in longest}) > 2:
            found = True
            yield symbol, longest
    if not found:
        yield symbols[0], list(rows)


def plot(rows: Sequence[Row], folder: pathlib.Path) -> None:
    """Wall time against sizes, to `model`_`symbol`.png for every model."""
    from matplotlib import pyplot

    for model in dict.fromkeys(str(row["model"]) for row in rows):
        for symbol, group in axes([row for row in rows if row["model"] == model]):
            figure, area = pyplot.subplots(figsize=(7, 5))
            for program in dict.fromkeys((row["program"], row["precision"]) for row in group):
                mine = [row for row in group if (row["program"], row["precision"]) == program]
                points = sorted((_extents(row)[symbol], _wall(row)) for row in mine)
                x, y = zip(*points, strict=True)
                area.plot(x, y, marker="o", label=" ".join(map(str, program)))
            area.set(xscale="log", yscale="log", xlabel=symbol, ylabel="µs per call", title=model)
            area.grid(True, which="both", alpha=0.3)
            area.legend(fontsize=7)
            figure.savefig(folder / f"{model}_{symbol}.png", dpi=120, bbox_inches="tight")
            pyplot.close(figure)


def plot_steps(trace: pathlib.Path, path: pathlib.Path) -> None:
    """Bars of the time of every step, from a trace."""
    from matplotlib import pyplot

    events = json.loads(trace.read_text())["traceEvents"]
    figure, area = pyplot.subplots(figsize=(9, 0.25 * len(events) + 1))
    names = [f"{i} {event['name'].rsplit('/', 1)[-1][:40]}" for i, event in enumerate(events)]
    area.barh(names, [event["dur"] for event in events])
    area.invert_yaxis()
    area.set(xlabel="µs", title=trace.name.removesuffix(".trace.json"))
    figure.savefig(path, dpi=120, bbox_inches="tight")
    pyplot.close(figure)
