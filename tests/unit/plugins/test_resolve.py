"""Naming a function: every form, and every mistake as one line."""

import functools
import sys

import pytest
from cases import case

from strop.errors import PluginError
from strop.plugins import check_methods, name_of, resolve

NAMES = {"hypot": "math:hypot", "length": len}


def find(spec, **changes):
    return resolve(spec, **{"key": "reward.fn", "names": NAMES, "group": "strop.test", **changes})


@pytest.fixture
def file(tmp_path):
    """Writes a plug-in file and gives its path."""

    def write(text, name="mine.py"):
        (tmp_path / name).write_text(text)
        return str(tmp_path / name)

    return write


def test_file_relative_to_the_working_directory(file, monkeypatch, tmp_path):
    file("def f(): return 1")
    monkeypatch.chdir(tmp_path)
    assert find("mine.py:f")() == 1


def test_module_in_the_working_directory_is_found(file, monkeypatch, tmp_path):
    file("def f(): return 2", name="module_of_mine.py")
    monkeypatch.chdir(tmp_path)
    assert find("module_of_mine:f")() == 2


def test_file_imports_its_neighbours(file):
    file("VALUE = 3", name="neighbour_of_mine.py")
    assert find(file("import neighbour_of_mine\ndef f(): return neighbour_of_mine.VALUE") + ":f")() == 3


def test_two_files_of_one_name_do_not_meet(tmp_path):
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "task.py").write_text(f"def f(): return {folder!r}")
    assert [find(f"{tmp_path}/{folder}/task.py:f")() for folder in ("a", "b")] == ["a", "b"]


def test_one_file_is_loaded_once_and_again_after_an_edit(file):
    path = file("def f(): return 1")
    assert find(f"{path}:f") is find(f"{path}:f")
    assert find(file("def f(): return 2") + ":f")() == 2


def test_attribute_may_be_inside_a_class(file):
    assert find(file("class A:\n    def f(): return 4") + ":A.f")() == 4


def test_an_object_passes_through():
    assert find(len) is len


def test_what_cannot_be_found_is_one_line():
    cases = [
        (
            "hypott",
            "reward.fn = 'hypott': no such name; did you mean 'hypot'? "
            "(hypot, length, file.py:name, package.module:name)",
        ),
        (
            "zzz",
            "reward.fn = 'zzz': no such name; "
            "expected one of hypot, length, file.py:name, package.module:name",
        ),
        (
            "math.hypott",
            "reward.fn = 'math.hypott': no such name; did you mean 'math:hypott'? "
            "(hypot, length, file.py:name, package.module:name)",
        ),
        ("task.py", "reward.fn = 'task.py': a file needs the name of a function in it: task.py:name"),
        ("nowhere.py:f", "reward.fn = 'nowhere.py:f': no file 'nowhere.py'"),
        ("no/where:f", "reward.fn = 'no/where:f': a file is named with its ending: no/where.py:f"),
        ("nowhere_at_all:f", "reward.fn = 'nowhere_at_all:f': no module 'nowhere_at_all' here or installed"),
        ("json.nowhere:f", "reward.fn = 'json.nowhere:f': no module 'json.nowhere' here or installed"),
        ("math:hypo", "reward.fn = 'math:hypo': math has no 'hypo'; did you mean 'hypot'?"),
        ("math:pi", "reward.fn = 'math:pi': expected a function or a class, got float 3.141592653589793"),
        ("math:", "reward.fn = 'math:': expected file.py:name or package.module:name"),
        (7, "reward.fn: expected a function or a class, got int 7"),
    ]
    for spec, message in cases:
        with case(spec):
            with pytest.raises(PluginError) as caught:
                find(spec)
            assert str(caught.value) == message


def test_a_file_nearby_is_offered(file):
    path = file("")
    with pytest.raises(PluginError, match=r"no file .*; did you mean 'mine.py'\?"):
        find(path.replace("mine", "mien") + ":f")


def test_a_file_that_fails_on_import_is_named_with_its_line(file):
    cases = [
        ("x = 1\nraise KeyError('no')", 2, "KeyError: 'no'"),
        ("x = 1\n\ndef f(:", 3, "SyntaxError: invalid syntax"),
        ("import nowhere_at_all", 1, "ModuleNotFoundError: No module named 'nowhere_at_all'"),
        ("import json\njson.loads('{')", 2, "JSONDecodeError: Expecting property name"),
        ("import sys\nsys.exit(0)", 2, "SystemExit: 0"),
    ]
    for text, line, message in cases:
        with case(text, line):
            path = file(text)
            with pytest.raises(PluginError) as caught:
                find(f"{path}:f")
            assert str(caught.value).startswith(f"reward.fn = '{path}:f': {path}:{line}: {message}")
            assert "\n" not in str(caught.value)


def test_a_file_that_failed_is_tried_again(file):
    path = file("raise KeyError")
    before = set(sys.modules)
    with pytest.raises(PluginError):
        find(f"{path}:f")
    assert {name for name in set(sys.modules) - before if name.startswith("strop_file")} == set()


class Callable:
    async def start(self): ...

    def step(self): ...

    def __call__(self): ...


def test_everything_callable_has_a_name():
    cases = [
        (find, "find"),
        (functools.partial(functools.partial(find, 1), names={}), "find"),
        (Callable, "Callable"),
        (Callable(), "Callable"),
        (len, "len"),
        (Callable().step, "step"),
    ]
    for fn, name in cases:
        assert name_of(fn) == name, fn


def test_methods_of_a_seam_are_looked_for_by_name():
    with pytest.raises(PluginError, match=r"env: Callable has no method 'close', which an Environment needs"):
        check_methods(Callable(), ("start", "close"), key="env", seam="an Environment")
    with pytest.raises(PluginError, match=r"Callable.step must be `async def`"):
        check_methods(Callable(), ("start", "step"), key="env", seam="an Environment")
