"""What the processor is, by what Linux says of it."""

import pytest

from transformer_plugin.kernels.cpu import processor

INTEL, AMD = "GenuineIntel", "AuthenticAMD"


@pytest.fixture
def cpuinfo(monkeypatch, tmp_path):
    """cpuinfo(maker, flags) writes what Linux would say."""

    def write(maker=None, flags=""):
        file = tmp_path / "cpuinfo"
        if maker is not None:
            file.write_text(f"processor\t: 0\nvendor_id\t: {maker}\nflags\t\t: {flags}\n\n" * 2)
        monkeypatch.setattr(processor, "Path", lambda path: file)
        processor.features.cache_clear()
        processor.is_amd.cache_clear()

    yield write
    processor.features.cache_clear()
    processor.is_amd.cache_clear()


@pytest.mark.parametrize(
    "maker, flags, fast",
    [
        (INTEL, "avx2 avx512f", False),
        (INTEL, "avx512f avx512_bf16", False),  # slower than float32
        (INTEL, "avx512f avx512_bf16 amx_bf16", True),
        (AMD, "avx512f avx512_bf16", True),
        (AMD, "avx2", False),
    ],
)
def test_what_it_is(cpuinfo, maker, flags, fast):
    cpuinfo(maker, flags)
    assert processor.is_amd() == (maker == AMD)
    assert processor.features().split(":")[1].split() == flags.split()
    assert processor.has_fast_bf16() == fast


def test_where_the_system_does_not_say(cpuinfo):
    cpuinfo()
    assert not processor.is_amd() and not processor.has_fast_bf16()
