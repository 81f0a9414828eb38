"""Writes the files that npz_test.cc reads.

npz_testdata.py DIRECTORY
"""

from __future__ import annotations

import pathlib
import sys

import numpy as np


def main() -> None:
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    np.savez(
        folder / "several.npz",
        floats=np.array([[0, 1, 2], [3, 4, -5.5]], np.float32),
        integers=np.array([-1, 0, 2**40], np.int64),
        flags=np.array([True, False]),
        scalar=np.float64(0.25),
        empty=np.zeros((0, 4), np.float32),
    )
    np.save(folder / "halves.npy", np.array([1, -2], np.float16))
    np.savez_compressed(folder / "compressed.npz", x=np.zeros(100))
    np.save(folder / "fortran.npy", np.zeros((2, 3), order="F"))
    np.save(folder / "big_endian.npy", np.zeros(3, ">f4"))
    np.save(folder / "text.npy", np.array(["ab"]))


if __name__ == "__main__":
    main()
