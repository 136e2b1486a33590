"""`strop config --diff A [B]`: where two configurations differ."""

from pathlib import Path

from strop.config.differences import Setting, defaults, differences, settings_of
from strop.config.load import Loaded, load_config
from strop.config.show import from_json
from strop.config.toml_text import write_value
from strop.errors import ConfigError


def print_differences(names: list[str]) -> int:
    """Only keys that differ, with both values and origins; 0 when there are none, else 1.

    One name is compared with the defaults. Raises ConfigError for what is no run file or run directory.
    """
    if len(names) not in (1, 2):
        raise ConfigError(
            f"strop config --diff: expected one or two run files or run directories, got {len(names)}"
        )
    sides = [settings_of(_open(Path(name))) for name in names]
    left, right = sides if len(sides) == 2 else (*sides, defaults())
    titles = (names[0], names[1] if len(names) == 2 else "default")
    found = differences(left, right)
    for difference in found:
        print(difference.key)
        for title, setting in zip(titles, (difference.left, difference.right), strict=True):
            print(f"  {title:<{max(map(len, titles))}}  {_said(setting)}")
    if not found:
        print(f"no difference between {names[0]} and {names[1] if len(names) == 2 else 'the defaults'}")
    return 1 if found else 0


def _open(path: Path) -> Loaded:
    if not path.is_dir():
        return load_config([path])
    from strop.store.reader import RunReader

    return from_json(RunReader(path).config(), str(path / "config.json"))


def _said(setting: Setting | None) -> str:
    if setting is None:
        return "–"
    value = "unset" if setting.value is None else write_value(setting.value)
    return value if setting.origin == "default" else f"{value}  # {setting.origin}"
