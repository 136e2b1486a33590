"""A run with functions of slime's: its runtime over the tiny model, and a player that plays with them."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from scripted import Noise, finished_group, player_of

from strop.compat import functions
from strop.compat.runtime import Runtime
from strop.config.load import load_config
from strop.render.bytes import ByteRenderer

FLAGS = "--hf-checkpoint tiny --num-rollout 1 --rollout-max-response-len 40 --n-samples-per-prompt 2"


def runtime(model: Path, flags: str = "--prompt-data /data.jsonl", *, serves: bool = True) -> Runtime:
    return Runtime(load_config([], f"{FLAGS} {flags}".split()).config, model, serves=serves)


def generate_of(fn: Any, run: Runtime) -> functions.Generate:
    """As `functions.open_generate` makes it, of a function that a test holds."""
    forms = (functions.SAMPLE_FORM, functions.SAMPLES_FORM)
    return functions.Generate(fn, functions.form_of(fn, forms, key="rollout.generate"), run)


async def samples_of(fn: Any, run: Runtime, *, size: int = 1, step: int = 0, engine: Any = None, **keys: Any):
    """A group that the function played over HTTP; the server is closed behind it."""
    player = player_of(engine or Noise(), generate=generate_of(fn, run), reward=lambda _: 1.0, **keys)
    renderer = ByteRenderer(chat_template=run.config.prompts.chat_template)
    player = replace(player, parts=replace(player.parts, renderer=renderer))
    return await finished_group(player, size=size, max_tokens=40, step=step)
