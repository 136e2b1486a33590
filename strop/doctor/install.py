"""Is strop installed well, and what does this machine have: versions, extras, memory, disk, models."""

import os
import platform
import shutil
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet

from strop.config.home import models_dir
from strop.errors import ConfigError
from strop.finding import Finding, Level
from strop.nn.catalog import WHEELS, model_path
from strop.runtime.machine import Machine
from strop.runtime.memory import GIB, MachineMemory

_PYTHON = SpecifierSet(">=3.11")
_LITTLE_MEMORY, _LITTLE_DISK, _NO_DISK = 4 * GIB, 5 * GIB, GIB // 4
"""A run of the example takes 4.3 GiB; its run directory, with a checkpoint, 1.6 GB."""


def install_findings(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Line by line; `environment`: the variables of the process, of which OMP_NUM_THREADS and STROP_HOME
    count."""
    yield from python_and_packages()
    yield from _torch_build()
    yield from _extras()
    yield from _machine(environment)
    yield from disk_findings(environment)
    yield from _models()


def python_and_packages() -> Iterator[Finding]:
    """Python and what strop cannot do without, against what its own metadata asks for."""
    python = platform.python_version()
    level = Level.OK if python in _PYTHON else Level.FAIL
    yield Finding(level, "python", f"{python} (needs {_PYTHON}), {sys.executable}")
    for need in _needs(extra=None):
        yield package_finding(need)


def package_finding(need: Requirement) -> Finding:
    """Whether one package is there, in a version that suits."""
    wanted = f"needs {need.specifier}" if need.specifier else "any version"
    try:
        found = version(need.name)
    except PackageNotFoundError:
        return Finding(
            Level.FAIL, need.name, f"is missing ({wanted}): pip install '{need.name}{need.specifier}'"
        )
    if need.specifier.contains(found, prereleases=True):
        return Finding(Level.OK, need.name, f"{found} ({wanted})")
    text = f"{found}, but strop {wanted}: pip install '{need.name}{need.specifier}'"
    return Finding(Level.FAIL, need.name, text)


def _needs(extra: str | None) -> list[Requirement]:
    """Of strop itself, or of one of its extras alone."""
    every = [Requirement(text) for text in requires("strop") or []]
    own = [need for need in every if need.marker is None or need.marker.evaluate({"extra": ""})]
    if extra is None:
        return own
    return [n for n in every if n not in own and n.marker is not None and n.marker.evaluate({"extra": extra})]


def _extras() -> Iterator[Finding]:
    for name in sorted(metadata("strop").get_all("Provides-Extra") or []):
        if name != "dev":
            yield extra_finding(name, _needs(name))


def extra_finding(name: str, needs: list[Requirement]) -> Finding:
    """Whether what an extra adds is there; it is no fault if not."""
    missing = [need.name for need in needs if package_finding(need).level is not Level.OK]
    if missing:
        text = f"not installed ({', '.join(missing)}); only for what needs it: pip install 'strop[{name}]'"
        return Finding(Level.OK, f"extra {name}", text)
    return Finding(Level.OK, f"extra {name}", "installed")


def _torch_build() -> Iterator[Finding]:
    import torch

    if torch.version.cuda is None:
        yield Finding(Level.OK, "torch build", "for processors")
    elif not torch.cuda.is_available():
        text = (
            f"for CUDA {torch.version.cuda}, but no GPU is seen here: gigabytes that nothing uses; "
            "pip install torch --index-url https://download.pytorch.org/whl/cpu"
        )
        yield Finding(Level.WARN, "torch build", text)
    else:
        yield Finding(Level.OK, "torch build", f"for CUDA {torch.version.cuda}, with a GPU")


def _machine(environment: Mapping[str, str]) -> Iterator[Finding]:
    here = Machine.here()
    given = environment.get("OMP_NUM_THREADS", "")
    text = f"{here.cores} compute threads on {here.processor}"
    if given.isdecimal() and int(given) > here.cores:
        text = f"OMP_NUM_THREADS = {given} on {here.cores} cores: more threads than cores wait for each other"
        yield Finding(Level.WARN, "threads", f"{text}; unset it")
    else:
        yield Finding(Level.OK, "threads", text)
    if not here.instruction_set:
        yield Finding(Level.WARN, "processor", "has neither AVX2 nor SVE: products will be slow")
    memory = MachineMemory.here()
    free = f"{memory.available / GIB:.1f} of {memory.total / GIB:.1f} GiB free"
    if memory.available < _LITTLE_MEMORY:
        text = f"{free}: little for a model of any size; see what a run takes: strop plan RUN.toml"
        yield Finding(Level.WARN, "memory", text)
    else:
        yield Finding(Level.OK, "memory", free)


def disk_findings(environment: Mapping[str, str]) -> Iterator[Finding]:
    """Where models and runs go: is there room, and may we write?"""
    models = models_dir()
    origin = "STROP_HOME" if environment.get("STROP_HOME") else "by default"
    for about, path, said in (
        ("models", models, f"{models} ({origin})"),
        ("here", Path.cwd(), f"{Path.cwd()}"),
    ):
        existing = next(each for each in (path, *path.parents) if each.exists())
        free = shutil.disk_usage(existing).free
        text = f"{said}, {free / GIB:.1f} GiB free"
        if not os.access(existing, os.W_OK):
            yield Finding(
                Level.FAIL, about, f"{existing} cannot be written; choose another place with STROP_HOME"
            )
        elif free < _NO_DISK:
            yield Finding(Level.FAIL, about, f"{text}: too little for a checkpoint")
        else:
            yield Finding(Level.WARN if free < _LITTLE_DISK else Level.OK, about, text)


def _models() -> Iterator[Finding]:
    home = models_dir()
    found = (
        sorted(path.name for path in home.iterdir() if path.is_dir() and path.name[0] != ".")
        if home.is_dir()
        else []
    )
    for name in found:
        try:
            model_path(name if name in WHEELS else str(home / name))
        except ConfigError as wrong:
            yield Finding(Level.FAIL, "model", str(wrong))
        else:
            yield Finding(Level.OK, "model", f"{name} is whole")
    for name in sorted(set(WHEELS) - set(found)):
        yield Finding(Level.OK, "model", f"{name} is not here; get it with: strop model pull {name}")
