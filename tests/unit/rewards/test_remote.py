"""A reward on another machine: what is sent, what is tried again, and what is refused."""

import asyncio
import gzip
import json
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from cases import case

from strop.config.tree import Reward
from strop.errors import PluginError, RewardFailed
from strop.rewards.open import open_rewards
from strop.sample import Sample, Scores

SAMPLE = Sample(
    index=0, group_id=0, prompt=[{"role": "user", "content": "6 * 7?"}], response="\ud800 42", label=42
)


@asynccontextmanager
async def judge(*replies, **keys):
    """Rewards of a server that gives these replies in turn, and the questions it was asked."""
    asked, left = [], list(replies)

    async def handle(request):
        asked.append(json.loads(await request.text()))
        reply = left.pop(0) if len(left) > 1 else left[0]
        return await reply(request) if callable(reply) else reply

    app = web.Application()
    app.router.add_post("/judge", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    port = site._server.sockets[0].getsockname()[1]
    rewards = open_rewards(Reward(fn="remote", options={"url": f"http://127.0.0.1:{port}/judge"}, **keys))
    try:
        yield rewards, asked
    finally:
        await rewards.close()
        await runner.cleanup()


def said(value, status=200):
    return web.Response(text=value, status=status)


async def test_prompt_response_and_label_are_sent_and_a_number_comes_back():
    async with judge(said("0.5")) as (rewards, asked):
        assert await rewards.score(SAMPLE) == Scores(0.5)
    assert asked == [{"prompt": SAMPLE.prompt, "response": "\ud800 42", "label": 42}]


async def test_of_a_table_one_score_is_the_reward():
    async with judge(said('{"style": 0.5, "truth": 1, "why": "x"}'), score_key="truth") as (rewards, _):
        assert await rewards.score(SAMPLE) == Scores(1.0, {"style": 0.5, "truth": 1.0})


async def test_a_server_that_is_down_or_busy_is_asked_again():
    async def asked_of(status):
        with case(status):
            async with judge(said("busy", status), said("1")) as (rewards, asked):
                assert await rewards.score(SAMPLE) == Scores(1.0)
            assert len(asked) == 2

    await asyncio.gather(*map(asked_of, (500, 503, 429, 408)))


async def test_a_server_that_refuses_is_not_asked_again():
    for status in [400, 401, 404, 413, 302]:
        with case(status):
            async with judge(said("what?\nthat", status)) as (rewards, asked):
                with pytest.raises(RewardFailed, match=rf"/judge: HTTP {status}: what\?$"):
                    await rewards.score(SAMPLE)
            assert len(asked) == 1


async def test_what_is_no_reward_is_a_failure_and_says_what_it_was():
    cases = [
        ("fine", "expected JSON, a number or a table of scores; got 'fine'"),
        ("x" * (1 << 20) + "x", "the reply is longer than 1 MiB"),
        ("null", "returned NoneType None; expected a finite number"),
        ("NaN", "returned nan; expected a finite number"),
        ('{"a": 1}', "name the one to train on in reward.score_key (a)"),
    ]
    for reply, message in cases:
        with case(reply):
            async with judge(said(reply), retries=0) as (rewards, _):
                with pytest.raises(RewardFailed) as caught:
                    await rewards.score(SAMPLE)
            assert message in str(caught.value)


async def test_a_small_reply_that_would_unpack_to_a_huge_one_is_not_unpacked():
    async def bomb(request):
        assert request.headers["Accept-Encoding"] == "identity"
        body = gzip.compress(b" " * (2 << 20))
        return web.Response(body=body, headers={"Content-Encoding": "gzip"})

    async with judge(bomb) as (rewards, _):
        with pytest.raises(RewardFailed, match="/judge: expected JSON, a number or a table of scores; got "):
            await rewards.score(SAMPLE)


async def test_a_server_that_hangs_is_given_up_in_time():
    async def hangs(request):
        await asyncio.sleep(0.1)

    async with judge(hangs, timeout_s=0.05, retries=0) as (rewards, _):
        with pytest.raises(RewardFailed, match=r"no answer after 0.05 s"):
            await rewards.score(SAMPLE)


async def test_nobody_there_is_a_failure():
    rewards = open_rewards(Reward(fn="remote", options={"url": "http://127.0.0.1:9/judge"}, retries=0))
    with pytest.raises(RewardFailed, match=r"http://127.0.0.1:9/judge: ClientConnectorError"):
        await rewards.score(SAMPLE)
    await rewards.close()
    await rewards.close()


async def test_a_label_that_has_no_json_form_is_a_failure():
    async with judge(said("1")) as (rewards, asked):
        with pytest.raises(RewardFailed, match="prompt 'p' cannot be sent"):
            await rewards.score(Sample(index=0, group_id=0, prompt_id="p", label={1, 2}))
    assert asked == []


def test_only_http_is_spoken():
    cases = ["file:///etc/passwd", "ftp://host/x", "host/x", "http://", ""]
    for url in cases:
        with case(url), pytest.raises(PluginError, match="expected http://host… or https://host…"):
            open_rewards(Reward(fn="remote", options={"url": url}))


def test_slimes_name_is_known():
    assert open_rewards(Reward(fn="remote_rm", options={"url": "http://host/x"}))
