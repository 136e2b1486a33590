"""Every environment keeps the seam's promises."""

from itertools import product
from pathlib import Path

from cases import case

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


def factories():
    """(type and options, what makes a new one) of each."""
    return [((section.type, section.options), open_env(section)) for section in SECTIONS]


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


async def test_an_episode_ends_whatever_the_model_says():
    for (name, factory), text in product(factories(), TEXTS):
        with case(name, text[:20]):
            env = factory()
            await episode(env, text)
            await env.close()


async def test_what_the_model_is_shown_can_be_rendered():
    for (name, factory), text in product(factories(), TEXTS):
        with case(name, text[:20]):
            for observation in await episode(factory(), text):
                assert isinstance(observation, Observation)
                assert ByteRenderer().follow_up([], observation.messages, last_id=256)


async def test_episodes_do_not_share_anything():
    for name, factory in factories():
        with case(name):
            first = await episode(factory(), TEXTS[2])
            assert await episode(factory(), TEXTS[2]) == first


async def test_closing_before_the_start_is_allowed():
    for name, factory in factories():
        with case(name):
            await factory().close()
