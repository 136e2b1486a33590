"""Every environment keeps the seam's promises."""

from pathlib import Path

import pytest

from strop.config.tree import Env
from strop.envs.base import Observation, Reply, Step
from strop.envs.open import open_env
from strop.render.bytes import ByteRenderer
from strop.sample import Prompt

PATH = str(Path(__file__).with_name("plugins_sample.py"))
SECTIONS = [
    Env(type="single_turn"),
    Env(type="calculator"),
    Env(type="calculator", options={"role": "user"}),
    Env(type=f"{PATH}:Echo"),
    Env(type="plugins_sample:Echo", options={"role": "user"}),
]
PROMPT = Prompt(id="p", messages="What is 6 * 7?", label=42)
TEXTS = ["42", "", "<calc>6*7</calc>", "<calc>", "\ufffd\x00", "x" * 10_000]


@pytest.fixture(params=SECTIONS, ids=lambda section: section.type)
def factory(request):
    return open_env(request.param)


async def episode(env, text):
    """All that it showed the model, over at most ten turns of the same reply."""
    shown = [await env.start(PROMPT)]
    for _ in range(10):
        step = await env.step(Reply(text, is_truncated=False))
        assert isinstance(step, Step)
        shown.append(step.observation)
        if step.done:
            return shown
    raise AssertionError("no end after ten turns")


@pytest.mark.parametrize("text", TEXTS)
async def test_an_episode_ends_whatever_the_model_says(factory, text):
    env = factory()
    await episode(env, text)
    await env.close()


@pytest.mark.parametrize("text", TEXTS)
async def test_what_the_model_is_shown_can_be_rendered(factory, text):
    for observation in await episode(factory(), text):
        assert isinstance(observation, Observation)
        assert ByteRenderer().follow_up([], observation.messages, last_id=256)


async def test_episodes_do_not_share_anything(factory):
    first = await episode(factory(), TEXTS[2])
    assert await episode(factory(), TEXTS[2]) == first


async def test_closing_before_the_start_is_allowed(factory):
    await factory().close()
