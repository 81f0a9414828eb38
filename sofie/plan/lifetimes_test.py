"""Buffers live as long as a launch needs them, through all iterations where need be."""

import sympy

from sofie.ir import dims
from sofie.ir.builder import Builder
from sofie.ir.dtype import FLOAT32
from sofie.ir.expr import Call, Load
from sofie.ir.program import Buffer, BufferKind, Output, Pointwise, Program, Repeat, Store
from sofie.plan.lifetimes import lifetimes


def _buffer(name: str, kind: BufferKind = BufferKind.TEMPORARY) -> Buffer:
    return Buffer(name, FLOAT32, (sympy.Integer(4),), (0,), kind)


def _step(target: Buffer, *sources: Buffer) -> Pointwise:
    loads = tuple(Load(FLOAT32, source, dims.ZERO) for source in sources)
    return Pointwise((), (), Store(target, dims.ZERO, Call(FLOAT32, "f({0})", loads)))


def _repeat(*steps: Pointwise | Repeat, number: int = 0) -> Repeat:
    builder = Builder()
    with builder.repeat(sympy.Integer(3)):
        builder.steps.extend(steps)
    (made,) = builder.steps
    assert isinstance(made, Repeat)
    return made


def _spans(result: Buffer, *steps: Pointwise | Repeat) -> dict[str, tuple[int, int]]:
    program = Program((), (), (Output(result, result.shape),), steps, ())
    return {life.buffer.name: (life.first, life.last) for life in lifetimes(program)}


def test_what_an_iteration_makes_for_itself_is_short_lived() -> None:
    a, b, state = _buffer("a"), _buffer("b"), _buffer("state")
    y = _buffer("y", BufferKind.OUTPUT)
    body = _repeat(_step(a, state), _step(b, a), _step(state, b))
    assert _spans(y, _step(state), body, _step(y, state)) == {
        "a": (1, 2),
        "b": (2, 3),
        "state": (0, 4),
        "y": (4, 4),
    }


def test_what_an_iteration_reads_before_it_writes_lasts() -> None:
    a, carried = _buffer("a"), _buffer("carried")
    y = _buffer("y", BufferKind.OUTPUT)
    spans = _spans(y, _repeat(_step(a, carried), _step(carried, a), _step(y, a)))
    assert spans == {"a": (0, 2), "carried": (0, 2), "y": (0, 2)}


def test_what_is_made_before_lasts_through_all_iterations() -> None:
    x, a = _buffer("x"), _buffer("a")
    y = _buffer("y", BufferKind.OUTPUT)
    spans = _spans(y, _step(x), _repeat(_step(a, x), _step(y, a)))
    assert spans == {"x": (0, 2), "a": (1, 2), "y": (1, 2)}


def test_an_inner_repetition_reaches_into_the_outer_one() -> None:
    x, a, b = _buffer("x"), _buffer("a"), _buffer("b")
    y = _buffer("y", BufferKind.OUTPUT)
    inner = _repeat(_step(b, x), _step(a, b))
    spans = _spans(y, _step(x), _repeat(inner, _step(y, a)))
    # a is made inside of the inner one and read after it; b is not.
    assert spans == {"x": (0, 3), "a": (1, 3), "b": (1, 2), "y": (1, 3)}
