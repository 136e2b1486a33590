"""What `strop doctor` says of an installation."""

import shutil

import pytest
from packaging.requirements import Requirement

from strop.cli.main import main
from strop.doctor.install import disk_findings, extra_finding, install_findings, package_finding
from strop.finding import Level
from strop.nn.tiny import make_tiny

pytestmark = pytest.mark.slow


def test_this_installation_is_well():
    found = list(install_findings({}))
    assert [f.line for f in found if f.level is Level.FAIL] == []
    assert {"python", "torch", "transformers", "threads", "memory", "models"} <= {f.about for f in found}


@pytest.mark.parametrize(
    ("need", "level", "text"),
    [
        ("numpy>=1.0", Level.OK, "(needs >=1.0)"),
        ("numpy<1.0", Level.FAIL, "but strop needs <1.0: pip install 'numpy<1.0'"),
        (
            "strop-no-such-package>=2",
            Level.FAIL,
            "is missing (needs >=2): pip install 'strop-no-such-package>=2'",
        ),
    ],
)
def test_a_package_is_there_in_a_version_that_suits_or_the_way_out_is_told(need, level, text):
    found = package_finding(Requirement(need))
    assert found.level is level
    assert text in found.text


def test_a_missing_extra_is_no_fault_and_has_its_command():
    found = extra_finding("math", [Requirement("strop-no-such-package")])
    assert found.level is Level.OK
    assert "pip install 'strop[math]'" in found.text
    assert extra_finding("math", [Requirement("numpy")]).text == "installed"


def test_too_many_threads_are_warned_of():
    warned = [f.text for f in install_findings({"OMP_NUM_THREADS": "4096"}) if f.about == "threads"]
    assert warned[0].startswith("OMP_NUM_THREADS = 4096 on ")


def test_models_of_this_machine_are_whole_or_named(tmp_path, monkeypatch, tiny_dir, capsys):
    monkeypatch.setenv("STROP_HOME", str(tmp_path))
    shutil.copytree(tiny_dir, tmp_path / "models/good")
    broken = make_tiny(tmp_path / "models/broken")
    weights = broken / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-8])
    assert main(["doctor"]) == 1
    out = capsys.readouterr().out
    assert "good is whole" in out
    assert "it was cut short" in out
    assert "strop model pull smollm2-135m" in out
    assert "(STROP_HOME)" in " ".join(f.text for f in disk_findings({"STROP_HOME": str(tmp_path)}))


def test_flags_of_another_question_are_refused(capsys):
    assert main(["doctor", "--n", "4"]) == 2
    assert "--n: is not for the installation" in capsys.readouterr().err
