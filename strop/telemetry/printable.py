"""Model output made fit for a terminal: it may hold escape sequences, and must not be obeyed."""

_PICTURES = {code: 0x2400 + code for code in range(0x20)} | {0x7F: 0x2421, 0x0A: 0x0A}
_REPLACED = dict.fromkeys([*range(0x80, 0xA0), *range(0x202A, 0x202F), *range(0x2066, 0x206A)], 0xFFFD)
"""C1 controls, and the marks that turn the direction of writing around."""


def printable(text: str) -> str:
    """`text` with every control character but the line feed replaced by a visible sign."""
    return text.translate(_PICTURES | _REPLACED)


def one_line(text: str, limit: int) -> str:
    """Printable text on one line of at most `limit` characters; line feeds are shown as ⏎."""
    line = printable(text).strip().replace("\n", " ⏎ ")
    return line if len(line) <= limit else line[: limit - 1] + "…"
