"""Tests how commands share GPUs, with a stand-in for nvidia-smi."""

import os
import subprocess
import time
from pathlib import Path

import pytest

_SCRIPT = Path(__file__).with_name("gpu_lock.sh")
_LISTING = "GPU 0: NVIDIA H200 (UUID: GPU-a)\nGPU 1: NVIDIA H200 (UUID: GPU-b)\n"
# Notes its GPU's name and when it began and ended.
_NOTE = 'b=$(date +%s.%N); sleep 0.3; echo "$CUDA_VISIBLE_DEVICES $b $(date +%s.%N)" > "$0"'


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """A machine with two GPUs, with locks of its own."""
    (tmp_path / "listing").write_text(_LISTING)
    smi = tmp_path / "bin" / "nvidia-smi"
    smi.parent.mkdir()
    smi.write_text(f'#!/bin/sh\n[ "$*" = -L ] && cat {tmp_path}/listing\n')
    smi.chmod(0o755)
    (tmp_path / "locks").mkdir()
    return {"PATH": f"{smi.parent}:/usr/bin:/bin", "SOFIE_GPU_LOCKS": str(tmp_path / "locks")}


def _start(environment: dict[str, str], note: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [_SCRIPT, "sh", "-c", _NOTE, note], env=environment, stderr=subprocess.PIPE, text=True
    )


def _gpu(environment: dict[str, str]) -> str:
    command = [str(_SCRIPT), "sh", "-c", 'echo "$CUDA_VISIBLE_DEVICES"']
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return done.stdout.strip()


def test_no_two_on_one_gpu(tmp_path: Path, environment: dict[str, str]) -> None:
    running = [_start(environment, tmp_path / f"note{i}") for i in range(6)]
    said = [process.communicate()[1] for process in running]
    assert [process.returncode for process in running] == [0] * 6
    assert any("waiting for a free GPU" in text for text in said)
    notes = [(tmp_path / f"note{i}").read_text().split() for i in range(6)]
    assert {gpu for gpu, _, _ in notes} == {"GPU-a", "GPU-b"}
    for name in ("GPU-a", "GPU-b"):
        spans = sorted((float(begin), float(end)) for gpu, begin, end in notes if gpu == name)
        assert all(end <= begin for (_, end), (begin, _) in zip(spans, spans[1:], strict=False)), (
            spans
        )


def test_a_killed_command_gives_its_gpu_back(environment: dict[str, str]) -> None:
    environment["CUDA_VISIBLE_DEVICES"] = "1"
    with subprocess.Popen([_SCRIPT, "sleep", "60"], env=environment) as holder:
        time.sleep(0.5)
        command = [str(_SCRIPT), "true"]
        with pytest.raises(subprocess.TimeoutExpired):
            subprocess.run(command, env=environment, check=False, timeout=1)
        holder.kill()
    assert _gpu(environment) == "GPU-b"


def test_visible_devices_are_respected(environment: dict[str, str]) -> None:
    assert _gpu({**environment, "CUDA_VISIBLE_DEVICES": "1,0"}) == "GPU-b"
    assert _gpu({**environment, "CUDA_VISIBLE_DEVICES": "GPU-b"}) == "GPU-b"


def test_parts_of_gpus(tmp_path: Path, environment: dict[str, str]) -> None:
    parts = "  MIG 1g.18gb Device 0: (UUID: MIG-c)\n  MIG 1g.18gb Device 1: (UUID: MIG-d)\n"
    (tmp_path / "listing").write_text(_LISTING + parts)
    assert _gpu(environment) == "MIG-c"


def test_without_a_gpu_the_command_runs_and_its_status_counts(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    (tmp_path / "listing").write_text("No devices were found\n")
    assert _gpu(environment) == ""
    done = subprocess.run([_SCRIPT, "sh", "-c", "exit 3"], env=environment, check=False)
    assert done.returncode == 3
    assert not os.listdir(environment["SOFIE_GPU_LOCKS"])
