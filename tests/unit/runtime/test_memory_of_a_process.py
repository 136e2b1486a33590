"""Memory of this process, by itself."""

import subprocess
import sys

from strop.runtime.memory import peak_bytes, resident_bytes

MIB = 2**20


def test_a_process_has_been_at_least_as_large_as_it_is():
    assert 10 * MIB < resident_bytes() <= peak_bytes() + MIB < 64 * 2**30


def test_the_peak_of_a_run_is_not_that_of_the_large_process_that_started_it():
    ballast = bytearray(300 * MIB)
    ballast[::4096] = b"x" * len(ballast[::4096])
    code = "from strop.runtime.memory import peak_bytes; print(peak_bytes())"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert int(told) < 200 * MIB < len(ballast) <= peak_bytes()
