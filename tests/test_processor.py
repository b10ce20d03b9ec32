"""The processor's name and features are read from /proc/cpuinfo."""

import platform

import pytest

from transformer_plugin import processor

INTEL, AMD = "GenuineIntel", "AuthenticAMD"


@pytest.fixture
def cpuinfo(monkeypatch, tmp_path):
    """cpuinfo(maker, flags) replaces /proc/cpuinfo."""

    def write(maker=None, flags=""):
        file = tmp_path / "cpuinfo"
        if maker is not None:
            each = f"processor\t: 0\nvendor_id\t: {maker}\nmodel name\t: {maker} 7: x\n"
            file.write_text(f"{each}flags\t\t: {flags}\n\n" * 2)
        monkeypatch.setattr(processor, "Path", lambda path: file)
        forget()

    yield write
    forget()


def forget():
    for cached in (
        processor.features,
        processor.is_amd,
        processor.has_slow_mkl,
        processor.has_fast_bf16,
    ):
        cached.cache_clear()


@pytest.mark.parametrize(
    "maker, flags, fast, slow_mkl",
    [
        (INTEL, "avx2 avx512f", False, False),
        (INTEL, "avx512f avx512_bf16", False, False),  # slower than float32
        (INTEL, "avx512f avx512_bf16 amx_bf16", True, False),
        (AMD, "avx512f avx512_bf16", True, True),
        (AMD, "avx2", False, False),
    ],
)
def test_what_it_is(cpuinfo, maker, flags, fast, slow_mkl):
    cpuinfo(maker, flags)
    assert processor.is_amd() == (maker == AMD)
    assert processor.features() == flags
    assert processor.model_name() == f"{maker} 7: x"
    assert processor.has_fast_bf16() == fast
    assert processor.has_slow_mkl() == slow_mkl


def test_where_the_system_does_not_say(cpuinfo):
    cpuinfo()
    assert not processor.is_amd() and not processor.has_fast_bf16()
    assert processor.model_name() == platform.machine()
