"""A judge behind an OpenAI-compatible address: what is sent, what is tried again, and what is refused."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from judges import replied, scored

from strop.config.tree import Reward
from strop.errors import ConfigError, RewardFailed
from strop.rewards.open import open_rewards
from strop.rewards.select import Rewards

KEY = "sk-of-nobody"
Reply = web.Response | Callable[[], Awaitable[web.Response]]


def completion(content: object) -> web.Response:
    return web.json_response({"choices": [{"message": {"role": "assistant", "content": content}}]})


@asynccontextmanager
async def server(*replies: Reply, **keys: object) -> AsyncIterator[tuple[Rewards, list[dict]]]:
    """A judge that gives these replies in turn, the last for ever; and what it was asked."""
    asked: list[dict] = []

    async def handle(request: web.Request) -> web.Response:
        reply = replies[min(len(asked), len(replies) - 1)]
        asked.append({**json.loads(await request.text()), "key": request.headers.get("Authorization")})
        if callable(reply):
            return await reply()
        return web.Response(body=reply.body, status=reply.status)

    app = web.Application()
    app.router.add_post("/v1/chat/completions", handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    options = {"model": "large", "url": f"http://127.0.0.1:{runner.addresses[0][1]}/v1"}
    section = {"fn": "judge", "retries": 1, **keys, "options": {**options, **keys.get("options", {})}}
    rewards = open_rewards(Reward(**section), seed=3)
    try:
        yield rewards, asked
    finally:
        await rewards.close()
        await runner.cleanup()


async def test_a_question_is_a_chat_completion_with_the_key_of_the_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    options = {"api_key_env": "JUDGE_KEY", "samples": 2, "temperature": 0.5, "max_tokens": 64}
    async with server(completion(scored(10)), options=options) as (rewards, asked):
        assert (await rewards.score(replied("42")[0])).value == 1.0
        assert rewards.guests == []
    assert [each["key"] for each in asked] == [f"Bearer {KEY}"] * 2
    assert {(each["model"], each["temperature"], each["max_tokens"]) for each in asked} == {
        ("large", 0.5, 64)
    }
    assert len({each["seed"] for each in asked}) == 2
    ((message,),) = {tuple(map(str, each["messages"])) for each in asked}
    assert "What is 6 * 7?" in message


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (web.Response(text=f"wrong key: {KEY}", status=401), "HTTP 401: wrong key: …"),
        (web.json_response({"error": KEY}), "expected a chat completion, got \"{'error': '…'}\""),
        (web.Response(text=KEY), "expected a chat completion; got '…'"),
    ],
)
async def test_a_server_that_repeats_the_key_does_not_bring_it_into_the_record(
    monkeypatch: pytest.MonkeyPatch, reply: web.Response, message: str
) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    async with server(reply, options={"api_key_env": "JUDGE_KEY"}) as (rewards, _):
        with pytest.raises(RewardFailed) as caught:
            await rewards.score(replied("42")[0])
    assert str(caught.value).endswith(f"/v1/chat/completions: {message}")


def test_a_key_with_a_line_end_is_one_line_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", f"{KEY}\n")
    options = {"model": "m", "url": "http://localhost", "api_key_env": "JUDGE_KEY"}
    with pytest.raises(ConfigError, match="JUDGE_KEY has a line end or white space around it") as caught:
        open_rewards(Reward(fn="judge", options=options))
    assert KEY not in str(caught.value)


async def test_a_key_is_in_no_text_of_the_reward(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGE_KEY", KEY)
    async with server(web.Response(text="who?", status=401), options={"api_key_env": "JUDGE_KEY"}) as (
        rewards,
        _,
    ):
        with pytest.raises(RewardFailed, match=r"/v1/chat/completions: HTTP 401: who\?$") as caught:
            await rewards.score(replied("42")[0])
    assert KEY not in str(caught.value) + repr(rewards.__dict__)


async def test_each_question_is_tried_again_by_itself() -> None:
    options = {"samples": 2}
    async with server(web.Response(status=503), completion(scored(4)), options=options) as (rewards, asked):
        scores = await rewards.score(replied("42")[0])
    assert scores.named["judge_failed"] == 0.0
    assert len(asked) == 3


async def test_a_server_that_stays_down_fails_the_sample() -> None:
    async with server(web.Response(text="busy", status=503)) as (rewards, asked):
        with pytest.raises(RewardFailed, match=r"HTTP 503: busy \(calls: 2\)$"):
            await rewards.score(replied("42")[0])
    assert len(asked) == 2


@pytest.mark.parametrize("reply", [web.json_response({"error": "x"}), completion(7), completion([])])
async def test_what_is_no_chat_completion_is_refused(reply: web.Response) -> None:
    async with server(reply) as (rewards, asked):
        with pytest.raises(
            RewardFailed, match=r"expected (a chat completion|text as the content), got|of a mess"
        ):
            await rewards.score(replied("42")[0])
    assert len(asked) == 1


async def test_a_judge_that_declines_to_answer_has_no_vote() -> None:
    async with server(completion(None), completion(scored(1)), options={"samples": 2}) as (rewards, _):
        assert (await rewards.score(replied("42")[0])).named["judge_failed"] == 0.5


async def test_a_slow_answer_is_past_the_deadline_of_one_question() -> None:
    given_up = asyncio.Event()

    async def slow() -> web.Response:
        await given_up.wait()
        return completion(scored(5))

    async with server(slow, timeout_s=0.02, retries=0) as (rewards, _):
        with pytest.raises(RewardFailed, match=r"judge large: no answer after 0\.02 s \(reward\.timeout_s\)"):
            await rewards.score(replied("42")[0])
        given_up.set()


async def test_no_more_questions_at_once_than_calls_are_allowed() -> None:
    at_once = most = 0

    async def reply() -> web.Response:
        nonlocal at_once, most
        at_once, most = at_once + 1, max(most, at_once + 1)
        await asyncio.sleep(0.001)
        at_once -= 1
        return completion(scored(5))

    async with server(reply, options={"samples": 9}, concurrency=3) as (rewards, asked):
        await rewards.score(replied("42")[0])
    assert len(asked) == 9
    assert most == 3
