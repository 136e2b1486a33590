"""Links lead somewhere."""

import re
from pathlib import Path

from pages import PAGES, ROOT

LINK = re.compile(r"(?<!`)\[[^\]\n]*\]\(([^)\s]+)\)")


def without_code(text: str) -> str:
    return re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """Of the headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.+)$", without_code(page.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_links_within_the_repository_lead_somewhere() -> None:
    broken = []
    for page in PAGES:
        for link in LINK.findall(without_code(page.read_text())):
            path, _, anchor = link.partition("#")
            target = (page.parent / path).resolve() if path else page
            is_there = "://" in link or (target.exists() and (not anchor or anchor in anchors(target)))
            broken += [] if is_there else [(page.relative_to(ROOT).as_posix(), link)]
    assert broken == []


def test_every_page_can_be_reached_from_the_first() -> None:
    linked = {
        (page.parent / link.split("#")[0]).resolve()
        for page in PAGES
        for link in LINK.findall(page.read_text())
        if "://" not in link
    }
    assert [page for page in PAGES if page.is_relative_to(ROOT / "docs") and page not in linked] == []
