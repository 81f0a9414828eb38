"""The operators that are timed are ones that compile."""

from benchmarks import compare_operators
from sofie.emit.names import is_identifier
from sofie.testing.operators import compile_graph


def test_every_operator_compiles() -> None:
    operators = list(compare_operators.operators())
    assert len({operator.name for operator in operators}) == len(operators)
    for operator in operators:
        assert is_identifier(operator.model_name)
        assert compile_graph(operator.model()).steps, operator.name
        assert operator.feeds(operator.sizes([10_000])[0]).keys() == {
            value.name for value in operator.model().graph.input
        }
