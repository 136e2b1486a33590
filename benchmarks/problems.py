"""Problems of grade-school mathematics as text, for benchmarks that play whole steps."""

import json
from pathlib import Path

INSTRUCTION = "\nReason in one or two short lines, then end with #### and the number."
"""That of `examples/gsm8k`. Without it nearly every response of SmolLM2 is as long as its cap."""


def problems(data: str | None, num: int) -> list[dict[str, str]]:
    """Prompts and labels: GSM8K's first where `data`, a folder, has them, else word problems of its kind.

    All prompts end with the instruction.
    """
    file = Path(data or "/nowhere") / "gsm8k" / "train.jsonl"
    if not file.is_file():
        return [_made(n) for n in range(num)]
    read = [json.loads(line) for line in file.read_text().splitlines()[:num]]
    return [{"prompt": row["question"] + INSTRUCTION, "label": row["answer"]} for row in read]


def _made(n: int) -> dict[str, str]:
    per_box, boxes, gone = 3 + n % 7, 5 + n % 11, 2 + n % 5
    question = (
        f"A baker packs {per_box} rolls into every box and fills {boxes} boxes before the shop opens. During "
        f"the morning {gone} of the rolls are given away to children, and all the others are sold for 2 "
        "dollars each. How many dollars does the baker take in altogether by the end of the morning?"
    )
    return {"prompt": question + INSTRUCTION, "label": str(2 * (per_box * boxes - gone))}
