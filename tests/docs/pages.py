"""The pages of the documentation, and the blocks of code in them."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "AGENTS.md", *sorted((ROOT / "docs").rglob("*.md"))]
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
NAMED = re.compile(r"# ([\w./-]+\.(?:py|toml))\n")


@dataclass(frozen=True)
class Block:
    """One fenced block."""

    page: Path
    line: int
    language: str
    text: str

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"

    @property
    def file(self) -> str | None:
        """The name in the comment that opens the block, if one does."""
        found = NAMED.match(self.text)
        return found[1] if found else None


def blocks(*languages: str) -> list[Block]:
    """Every block in one of `languages`, page by page."""
    return [block for page in PAGES for block in _blocks(page) if block.language in languages]


def _blocks(page: Path) -> Iterator[Block]:
    text = page.read_text()
    for found in FENCE.finditer(text):
        yield Block(page, text.count("\n", 0, found.start()) + 1, found[1], found[2])


def commands() -> list[tuple[str, str]]:
    """(where, command line) of every line that a reader is told to type."""
    lines = []
    for block in blocks("console", "sh"):
        for line in block.text.splitlines():
            typed = re.sub(r"\s+#.*", "", line.removeprefix("$ ")).removeprefix(".venv/bin/").strip()
            if typed and (block.language == "sh" or line.startswith("$ ")):
                lines.append((str(block), typed))
    return lines
