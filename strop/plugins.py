"""Functions and classes that the user names: import paths, short names and entry points become objects.

Every mistake is one line that names the key, its value and the nearest right thing, before anything runs.
"""

import difflib
import functools
import hashlib
import importlib.util
import inspect
import operator
import os
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.metadata import entry_points
from pathlib import Path
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from strop.errors import InputError, PluginError, Recorded, StropError, boundary, first_line


def resolve(spec: object, *, key: str, names: Mapping[str, object], group: str) -> Any:
    """The callable that `spec` names; anything but text is the callable itself.

    Text is `file.py:attr` (absolute, or relative to the working directory), `package.module:attr`, a key of
    `names` (whose values are `module:attr`, imported when asked for, or objects), or an entry point of
    `group`. `key` is the key of the run that held it, for messages. Raises PluginError.

    >>> resolve("math:hypot", key="reward.fn", names={}, group="strop.rewards")(3, 4)
    5.0
    """
    where = f"{key} = {spec!r}" if isinstance(spec, str) else key
    found = _look_up(spec, where=where, names=names, group=group) if isinstance(spec, str) else spec
    if not callable(found):
        raise PluginError(f"{where}: expected a function or a class, got {_shown(found)}")
    return found


def check_options(
    fn: Callable[..., Any], options: Mapping[str, Any], *, key: str, num_given: int = 0
) -> None:
    """Refuse, by name, options that `fn` does not take and options that it misses.

    `num_given`: arguments that strop itself passes first, by position. Works on functions, classes, partials
    and callable objects. Raises PluginError.

    >>> check_options(round, {"ndigit": 2}, key="reward.options", num_given=1)
    Traceback (most recent call last):
    strop.errors.PluginError: reward.options.ndigit: round takes no such option; did you mean 'ndigits'?
    """
    name = name_of(fn)
    try:
        parameters = list(inspect.signature(fn).parameters.values())
    except ValueError as caught:  # some C functions have no signature
        raise PluginError(f"{key}: {name} does not tell what it takes; wrap it in a def") from caught
    given, rest = _split_given(parameters, num_given)
    if len(given) < num_given:
        raise PluginError(
            f"{key}: {name} must take {num_given} argument(s) before its options, takes {len(given)}"
        )
    takes = [p for p in rest if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if not any(p.kind is p.VAR_KEYWORD for p in rest):
        _refuse_unknown(options, [p.name for p in takes], name=name, key=key)
    missing = [p.name for p in takes if p.default is p.empty and p.name not in options]
    if missing:
        raise PluginError(f"{key}: {name} needs {', '.join(map(repr, missing))}; add {key}.{missing[0]} = …")


def check_methods(made: object, methods: Iterable[str], *, key: str, seam: str) -> None:
    """Raise PluginError unless `made` has these methods, each `async def`."""
    members = dict(inspect.getmembers(made, callable))
    for method in methods:
        if method not in members:
            raise PluginError(f"{key}: {name_of(type(made))} has no method {method!r}, which {seam} needs")
        if not inspect.iscoroutinefunction(members[method]):
            raise PluginError(
                f"{key}: {name_of(type(made))}.{method} must be `async def`, as {seam} is awaited"
            )


def check_call(fn: Callable[..., Any], takes: Sequence[str], *, key: str, awaited: bool) -> None:
    """Raise PluginError unless `fn` can be called with just these arguments, by position, and is `async def`
    if and only if it is `awaited`."""
    name, listed = name_of(fn), ", ".join(takes)
    try:
        inspect.signature(fn).bind(*takes)
    except (TypeError, ValueError) as caught:
        raise PluginError(f"{key}: {name} must take ({listed}): {caught}") from caught
    if is_async(fn) != awaited:
        form = "`async def`, as it is awaited" if awaited else "a plain `def`, as it is not awaited"
        raise PluginError(f"{key}: {name} must be {form}")


def is_async(fn: Callable[..., Any]) -> bool:
    """Whether a call of `fn` is awaited: of a coroutine function, of a partial or an object of one."""
    if isinstance(fn, functools.partial):
        return is_async(fn.func)
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(type(fn).__call__)


@contextmanager
def user_code(error: type[InputError], what: str) -> Iterator[None]:
    """Turn whatever the user's code raises while a run is set up into `error`, with its file and line."""
    try:
        with boundary(Recorded, what):
            yield
    except (Recorded, SystemExit) as caught:
        cause = caught.__cause__ or caught
        raise error(f"{what}: {_place(cause)}{type(cause).__name__}: {first_line(str(cause))}") from cause


def name_of(fn: object) -> str:
    """What to call `fn` in a message; a partial has no name of its own, nor has a callable object."""
    if isinstance(fn, functools.partial):
        return name_of(fn.func)
    if isinstance(fn, FunctionType | BuiltinFunctionType | MethodType | type):
        return fn.__name__
    return type(fn).__name__


def nearest(word: str, known: Iterable[str]) -> str:
    """The end of a message: `; did you mean 'x'?`, or nothing when nothing is near."""
    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f"; did you mean {close[0]!r}?" if close else ""


def _look_up(spec: str, *, where: str, names: Mapping[str, object], group: str) -> object:
    module, colon, attribute = spec.rpartition(":")
    if not colon or spec in names:
        return _by_name(spec, where=where, names=names, group=group)
    if not module or not attribute:
        raise PluginError(f"{where}: expected file.py:name or package.module:name")
    if module.endswith(".py"):
        return _attribute(_load_file(Path(module), where=where), attribute, where=where, source=module)
    if "/" in module or os.sep in module:
        raise PluginError(f"{where}: a file is named with its ending: {module}.py:{attribute}")
    return _attribute(_load_module(module, where=where), attribute, where=where, source=module)


def _by_name(spec: str, *, where: str, names: Mapping[str, object], group: str) -> object:
    if spec in names:
        target = names[spec]
        return _look_up(target, where=where, names={}, group=group) if isinstance(target, str) else target
    found = {point.value: point for point in entry_points(group=group, name=spec)}
    if len(found) > 1:
        raise PluginError(
            f"{where}: several installed packages have it: {', '.join(found)}; use one of these"
        )
    for value, point in found.items():
        with user_code(PluginError, f"{where}: entry point {value}"):
            return point.load()
    raise PluginError(f"{where}: {_unknown(spec, names, group)}")


def _unknown(spec: str, names: Mapping[str, object], group: str) -> str:
    if spec.endswith(".py"):
        return f"a file needs the name of a function in it: {spec}:name"
    known = sorted({*names, *(point.name for point in entry_points(group=group))})
    module, dot, attribute = spec.rpartition(".")
    hint = f"; did you mean {f'{module}:{attribute}'!r}?" if dot else nearest(spec, known)
    forms = ", ".join([*known, "file.py:name", "package.module:name"])
    return f"no such name{hint} ({forms})" if hint else f"no such name; expected one of {forms}"


def _load_file(path: Path, *, where: str) -> ModuleType:
    if not path.is_file():
        near = sorted(p.name for p in path.parent.glob("*.py")) if path.parent.is_dir() else []
        raise PluginError(f"{where}: no file {str(path)!r}{nearest(path.name, near)}")
    path = path.resolve()
    # The content is part of the name: an edited file is another module, an unchanged one is loaded once.
    digest = hashlib.blake2b(str(path).encode() + b"\0" + path.read_bytes(), digest_size=8).hexdigest()
    name = f"strop_file_{path.stem}_{digest}"
    if name in sys.modules:
        return sys.modules[name]
    _importable(path.parent)
    loader = _FromSource(name, str(path))
    found = ModuleSpec(name, loader, origin=str(path))
    found.has_location = True
    module = importlib.util.module_from_spec(found)
    sys.modules[name] = module  # before it runs: dataclasses and pickle look modules up by name
    try:
        with user_code(PluginError, where):
            loader.exec_module(module)
    except StropError:
        del sys.modules[name]
        raise
    return module


class _FromSource(SourceFileLoader):
    """Compiles the file as it is. A compiled one beside it would be taken for it when both are of one second
    and one length, as they are while someone tries things out; and nothing is written beside it."""

    def get_code(self, fullname: str) -> CodeType:
        path = self.get_filename(fullname)
        return self.source_to_code(self.get_data(path), path)


def _load_module(name: str, *, where: str) -> ModuleType:
    _importable(Path.cwd())  # the `strop` command, unlike `python -m`, does not look there
    try:
        with user_code(PluginError, where):
            return importlib.import_module(name)
    except PluginError as caught:
        missing = caught.__cause__
        if (
            isinstance(missing, ModuleNotFoundError)
            and missing.name
            and f"{name}.".startswith(f"{missing.name}.")
        ):
            raise PluginError(f"{where}: no module {missing.name!r} here or installed") from missing
        raise


def _importable(directory: Path) -> None:
    # At the end, so that no file of the user's takes the place of an installed package in the whole process.
    if str(directory) not in sys.path:
        sys.path.append(str(directory))


def _attribute(module: ModuleType, attribute: str, *, where: str, source: str) -> object:
    try:
        return operator.attrgetter(attribute)(module)
    except AttributeError as caught:
        public = [name for name, value in vars(module).items() if callable(value) and name[0] != "_"]
        raise PluginError(f"{where}: {source} has no {attribute!r}{nearest(attribute, public)}") from caught


def _split_given(
    parameters: list[inspect.Parameter], num_given: int
) -> tuple[list[inspect.Parameter], list[inspect.Parameter]]:
    """The parameters that take strop's own arguments, and the others."""
    given = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)][:num_given]
    gathers = [p for p in parameters if p.kind is p.VAR_POSITIONAL]
    rest = [p for p in parameters if p not in given]
    return given + gathers * (num_given - len(given)), rest


def _refuse_unknown(options: Mapping[str, Any], takes: list[str], *, name: str, key: str) -> None:
    for option in options:
        if option not in takes:
            hint = nearest(option, takes) or f"; it takes {', '.join(takes) or 'none'}"
            raise PluginError(f"{key}.{option}: {name} takes no such option{hint}")


def _place(cause: BaseException) -> str:
    """`file.py:12: ` of where the user's code failed."""
    if isinstance(cause, SyntaxError) and cause.filename:
        return f"{cause.filename}:{cause.lineno}: "
    frames = traceback.extract_tb(cause.__traceback__)
    libraries = (str(Path(__file__).parent), *sysconfig.get_paths().values(), "<frozen", "<string>")
    own = [f for f in frames if not f.filename.startswith(libraries)]
    return f"{own[-1].filename}:{own[-1].lineno}: " if own else ""


def _shown(value: object) -> str:
    return f"{type(value).__name__} {first_line(repr(value), 60)}"
