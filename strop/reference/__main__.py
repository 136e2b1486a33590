"""`python -m strop.reference [DIRECTORY]`: write the generated pages, by default into docs/reference."""

import sys
from pathlib import Path

from strop.reference.pages import PAGES


def main(directory: Path) -> None:
    """Write every page whose text has changed, and name it."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, render in PAGES.items():
        path, text = directory / name, render()
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/reference"))
