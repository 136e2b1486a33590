"""`python -m strop.reference [DIRECTORY]`: write the generated pages, by default into docs."""

import sys
from pathlib import Path

from strop.reference import algorithms_index
from strop.reference.pages import PAGES


def main(docs: Path) -> None:
    """Write every page whose text has changed, and name it."""
    for name, render in PAGES.items():
        _write(docs / "reference" / name, render())
    folder = docs / "explanation/algorithms"
    _write(folder / algorithms_index.INDEX, algorithms_index.render(folder, docs.parent / "examples"))


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")
        sys.stdout.write(f"{path}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
