"""`strop config`: what a run file and flags come to, with the origin of every value."""

from strop.cli.arguments import parse_arguments
from strop.config.flags import split_arguments
from strop.config.load import load_config
from strop.config.show import keys_text, to_toml

USAGE = """usage: strop config RUN.toml [MORE.toml …] [--section.key value …]
       strop config --diff A [B]
       strop config --keys

Prints every key, its value and where the value comes from, as a run file.
--diff   only the keys in which two run files or run directories differ, or one from the defaults, with both
         values and their origins; exit 1 if there are any, else 0
--keys   every key with its type, default, help and slime's flag for it"""


def main(argv: list[str]) -> int:
    """The exit code; raises `ConfigError` when the input is wrong."""
    if "--help" in argv or "-h" in argv:
        print(USAGE)
    elif argv == ["--keys"]:
        print(keys_text(), end="")
    elif "--diff" in argv:
        from strop.cli.config_diff import print_differences

        return print_differences(parse_arguments(argv, "strop config --diff", switches=("--diff",)).names)
    else:
        files, flags = split_arguments(argv)
        print(to_toml(load_config(files, flags, also=["--keys", "--diff", "--help"])), end="")
    return 0
