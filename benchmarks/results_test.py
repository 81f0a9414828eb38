"""Results of benchmarks are written as they come."""

import pathlib
from collections.abc import Iterator

import pytest

from benchmarks import results


def test_what_was_measured_before_a_failure_is_kept(
    tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def rows() -> Iterator[results.Row]:
        yield {"case": "a", "time": 1.23456}
        yield {"case": "b"}
        raise RuntimeError("the third one fails")

    path = tmp_path / "results.csv"
    with pytest.raises(RuntimeError, match="third"):
        results.collect(rows(), ["case", "time"], path)
    assert path.read_text().splitlines() == ["case,time", "a,1.23456", "b,"]
    assert capsys.readouterr().out.splitlines() == ["a,1.235", "b,"]


def test_all_rows_come_back(tmp_path: pathlib.Path) -> None:
    rows = [{"case": "a"}, {"case": "b"}]
    assert results.collect(iter(rows), ["case"], tmp_path / "results.csv") == rows
