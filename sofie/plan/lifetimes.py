"""When each buffer's contents are needed: what lets buffers share memory."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator

from sofie.ir.program import Buffer, Program, Repeat, Step, launches


@dataclasses.dataclass(frozen=True)
class Lifetime:
    """A buffer and the launches from whose start to whose end it holds something.

    Attributes:
      buffer: the buffer.
      first: the launch that writes it; 0 for inputs, which are there before the first one.
      last: the last launch that reads it; the program's last one for outputs.
    """

    buffer: Buffer
    first: int
    last: int


def lifetimes(program: Program) -> list[Lifetime]:
    """Lifetimes of inputs, outputs and temporaries, in this order."""
    end = max(sum(1 for _ in launches(program.steps)) - 1, 0)
    spans: dict[int, tuple[int, int]] = {}
    for position, step in enumerate(launches(program.steps)):
        for buffer in (*step.reads(), *step.writes()):
            _extend(spans, buffer, position, position)
    for segment in program.segments():
        for read in segment.reads:
            # The host is done with it before the next launch, which may be one that is not there.
            _extend(spans, read.buffer, segment.first, segment.first)
    outer = [*program.inputs, *(o.buffer for o in program.outputs)]
    # From the innermost repetition outwards: a longer life may reach into the next one.
    for repeat, first, last in reversed(list(_repetitions(program.steps, 0))):
        kept = {id(buffer) for buffer in (*outer, *outlasting(repeat))}
        for buffer in (*repeat.reads(), *repeat.writes()):
            known = spans[id(buffer)]
            if id(buffer) in kept or known[0] < first or known[1] > last:
                _extend(spans, buffer, first, last)
    result = [Lifetime(b, 0, spans.get(id(b), (0, 0))[1]) for b in program.inputs]
    for output in program.outputs:
        result.append(Lifetime(output.buffer, spans.get(id(output.buffer), (0, 0))[0], end))
    for buffer in program.temporaries():
        result.append(Lifetime(buffer, *spans[id(buffer)]))
    return result


def outlasting(repeat: Repeat) -> list[Buffer]:
    """Buffers that an iteration reads before it writes them: they come from the one before."""
    written: set[int] = set()
    found: dict[int, Buffer] = {}
    for step in launches(repeat.steps):
        for buffer in step.reads():
            if id(buffer) not in written:
                found.setdefault(id(buffer), buffer)
        written.update(id(buffer) for buffer in step.writes())
    return list(found.values())


def _repetitions(steps: Iterable[Step], position: int) -> Iterator[tuple[Repeat, int, int]]:
    """Every repetition with its first and last launch, outer ones before those inside of them."""
    for step in steps:
        count = sum(1 for _ in launches([step]))
        if isinstance(step, Repeat):
            yield step, position, position + count - 1
            yield from _repetitions(step.steps, position)
        position += count


def _extend(spans: dict[int, tuple[int, int]], buffer: Buffer, first: int, last: int) -> None:
    known = spans.get(id(buffer), (first, last))
    spans[id(buffer)] = (min(known[0], first), max(known[1], last))
