"""The kernels' tests once more, with kernels for processors that have no AVX-512, or no AVX: fewer
numbers at a time, and without AVX nothing but what any compiler makes of the source."""

import os
import platform
import subprocess
import sys
from pathlib import Path

import pytest

from transformer_plugin.kernels.cpu import library

HERE, TESTS = Path(__file__).parent, Path(__file__).parents[2]
NAMES = ("attention", "candidates", "decoder_cache", "packed_linear", "packed_numbers")
FILES = [
    *(HERE / f"test_{name}.py" for name in NAMES),
    TESTS / "search/test_candidates.py",
    TESTS / "modules/test_dropout.py",
]
LIMIT = 300  # seconds


@pytest.mark.slow
@pytest.mark.skipif(library.kernels() is None, reason="no C++ compiler")
@pytest.mark.skipif(platform.machine() != "x86_64", reason="that is the usual case here")
@pytest.mark.parametrize("missing", ["-mno-avx512f", "-mno-avx512f -mno-avx2 -mno-avx"])
def test_on_another_processor(tmp_path, missing):
    compiler = tmp_path / "compiler"
    command = f'{os.environ.get("CXX", "c++")} "$@" {missing} -Wno-psabi'
    compiler.write_text(f"#!/bin/sh\nexec {command}\n")
    compiler.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, FILES)],
        env=os.environ | {"CXX": str(compiler), "XDG_CACHE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert list(tmp_path.glob("transformer_plugin/kernels-*.so"))
