"""Which functors are one."""

from sofie.emit.functor import Functor, Method, Parameter
from sofie.emit.sharing import Functors


def _functor(
    name: str, members: tuple[str, str, str], *, statement: str = "{2}[i0 * {0}] = {1}[i0];"
) -> Functor:
    size, source, target = members
    return Functor(
        name,
        (),
        (
            Parameter("I", size, f"static_cast<I>({size}_value)"),
            Parameter("const float*", source, f"{source}_buffer"),
            Parameter("float*", target, f"{target}_buffer"),
        ),
        (Method("void operator()(I i0) const", (statement.format(size, source, target),)),),
    )


def test_members_of_other_names() -> None:
    functors = Functors()
    first = functors.shared(_functor("Copy_0", ("s0", "in_x", "t0")))
    second = functors.shared(_functor("Copy_3", ("s1", "t0", "out_y")))
    assert first.name == second.name == "Copy_0"
    assert [p.name for p in second.parameters] == ["s0", "in_x", "t0"]
    assert [p.value for p in second.parameters] == [
        "static_cast<I>(s1_value)",
        "t0_buffer",
        "out_y_buffer",
    ]
    assert second.methods == first.methods


def test_other_code_or_types() -> None:
    functors = Functors()
    names = ("s0", "x", "y")
    made = [
        _functor("A", names),
        _functor("B", names, statement="{2}[i0] = {1}[i0];"),
        # The members change places.
        _functor("C", names, statement="{2}[i0 * {0}] = {2}[i0];"),
    ]
    assert [functors.shared(f).name for f in made] == ["A", "B", "C"]
    wider = _functor("D", names)
    changed = (Parameter("int64_t", "s0", "s0"), *wider.parameters[1:])
    assert functors.shared(Functor("D", (), changed, wider.methods)).name == "D"


def test_parts_of_words_are_no_members() -> None:
    functors = Functors()
    one = _functor("A", ("s0", "x", "y"), statement="{2}[i0 * {0}] = Max({1}[i0], x_2);")
    two = _functor("B", ("s0", "z", "y"), statement="{2}[i0 * {0}] = Max({1}[i0], x_2);")
    three = _functor("C", ("s0", "z", "y"), statement="{2}[i0 * {0}] = Max({1}[i0], z_2);")
    assert [functors.shared(f).name for f in (one, two, three)] == ["A", "A", "C"]
