"""When each buffer's contents are needed: what lets buffers share memory."""

from __future__ import annotations

import dataclasses

from sofie.ir.program import Buffer, Program


@dataclasses.dataclass(frozen=True)
class Lifetime:
    """A buffer and the steps from whose start to whose end it holds something.

    Attributes:
      buffer: the buffer.
      first: the step that writes it; 0 for inputs, which are there before the first step.
      last: the last step that reads it; the program's last step for outputs.
    """

    buffer: Buffer
    first: int
    last: int


def lifetimes(program: Program) -> list[Lifetime]:
    """Lifetimes of inputs, outputs and temporaries, in this order."""
    end = max(len(program.steps) - 1, 0)
    first: dict[int, int] = {}
    last: dict[int, int] = {}
    for position, step in enumerate(program.steps):
        for buffer in step.writes():
            first.setdefault(id(buffer), position)
            last[id(buffer)] = position
        for buffer in step.reads():
            last[id(buffer)] = position
    result = [Lifetime(b, 0, last.get(id(b), 0)) for b in program.inputs]
    for output in program.outputs:
        result.append(Lifetime(output.buffer, first.get(id(output.buffer), 0), end))
    for buffer in program.temporaries():
        result.append(Lifetime(buffer, first[id(buffer)], last[id(buffer)]))
    return result
