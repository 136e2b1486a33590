"""Scenes of prompts as text: the prompt, then its samples at each step, one under the other."""

from collections.abc import Callable

from rich.console import Console as Terminal
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from strop.cli.before_after import Scene, View
from strop.cli.shading import coloured, marked, needs_decoding, pieces
from strop.render.token_texts import Decode
from strop.sample import STEP_REWARDS, Message, Sample
from strop.telemetry.printable import one_line, printable

_SAMPLES = 4
"""Samples of a prompt shown at one step."""


def print_view(out: Terminal, view: View, *, open_decoder: Callable[[], Decode | None]) -> None:
    """Print every scene on `out`, with colours if it has any.

    `open_decoder` is called only when token texts are needed: loading a tokenizer takes seconds.
    """
    scenes = [scene for prompt in view.prompts for scene in prompt]
    shown = [(sample, scene.advantages.get(sample.index)) for scene in scenes for sample in _few(scene)]
    decode = open_decoder() if any(needs_decoding(*pair) for pair in shown) else None
    scale = max((float(abs(a).max(initial=0)) for _, a in shown if a is not None), default=0.0)
    if view.note:
        out.print(Text(f"({view.note})\n", "italic"))
    for prompt in view.prompts:
        _print_prompt(out, prompt[0].samples[0])
        for scene in prompt:
            out.print(_heading(scene))
            out.print(Padding(_table(out, scene, decode, scale), (0, 0, 0, 4), expand=False))
            out.print()


def _print_prompt(out: Terminal, sample: Sample) -> None:
    label = "" if sample.label is None else f" · label {one_line(str(sample.label), 60)}"
    out.print(Text.assemble((f"prompt {printable(sample.prompt_id)}", "bold"), (label, "dim")))
    out.print(Padding(Text(printable(_prompt_text(sample.prompt))), (0, 0, 0, 2), expand=False))
    out.print()


def _heading(scene: Scene) -> Text:
    rewards = [sample.reward for sample in scene.samples if sample.reward is not None]
    mean = f"mean reward {sum(rewards) / len(rewards):.3f}" if rewards else "no rewards"
    hidden = len(scene.samples) - len(_few(scene))
    count = f"{len(scene.samples)} sample{'s' if len(scene.samples) > 1 else ''}"
    more = f", {hidden} not shown" if hidden else ""
    return Text.assemble("  ", (scene.when, "bold cyan"), (f"  {mean} of {count}{more}", "dim"))


def _table(out: Terminal, scene: Scene, decode: Decode | None, scale: float) -> Table:
    rows = Table.grid(padding=(0, 2))
    rows.add_column(justify="right", no_wrap=True)
    rows.add_column(overflow="fold")
    for sample in _few(scene):
        parts = pieces(sample, scene.advantages.get(sample.index), decode)
        text = coloured(parts, scale) if out.color_system else marked(parts)
        text = text if sample.response else Text("(empty)", "dim")
        rows.add_row(_reward(sample), Text.assemble(text, _steps(sample)))
    return rows


def _reward(sample: Sample) -> Text:
    """Of a sample that data gives also what it is in its group."""
    if sample.reward is None:
        return Text(sample.role or sample.status.value, "yellow")
    return Text(f"{sample.role} {sample.reward:.3g}".lstrip(), "bold")


def _steps(sample: Sample) -> Text:
    """What its steps or turns were worth, on a line of its own."""
    if STEP_REWARDS not in sample.extras:
        return Text()
    worth = ", ".join(f"{reward:.3g}" for reward in sample.extras[STEP_REWARDS])
    return Text(f"\n(steps: {worth or 'none'})", "dim")


def _few(scene: Scene) -> list[Sample]:
    return scene.samples[:_SAMPLES]


def _prompt_text(prompt: str | list[Message]) -> str:
    if isinstance(prompt, str):
        return prompt
    return "\n".join(f"{message['role']}: {_content(message['content'])}" for message in prompt)


def _content(content: object) -> str:
    if isinstance(content, list):
        return " ".join(str(part.get("text", f"({part.get('type')})")) for part in content)
    return str(content)
