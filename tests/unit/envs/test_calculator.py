"""The two-turn calculator, turn by turn."""

from strop.envs.base import Observation, Reply, Step
from strop.envs.calculator import Calculator

DONE = Step(Observation(), done=True)


async def answer(text, *, is_truncated=False, env=None):
    return await (env or Calculator()).step(Reply(text, is_truncated))


async def test_a_call_is_answered_with_its_value_or_its_fault():
    cases = [
        ("Let me see: <calc>6*7</calc>", "= 42"),
        ("<calc> 1/4 </calc> and more", "= 0.25"),
        ("<calc>6\n*7</calc>", "= 42"),
        ("<calc>1</calc><calc>2</calc>", "= 1"),
        ("<calc>1/0</calc>", "error: division by zero"),
        ("<calc>two</calc>", "error: cannot read 'two'"),
        ("<calc></calc>", "error: the expression is empty"),
        ("<calc>6*7", "error: </calc> is missing"),
        ("<calc>6*7<calc>1</calc>", "error: </calc> is missing"),
    ]
    for text, content in cases:
        reply = Observation(({"role": "tool", "content": content},))
        assert await answer(text) == Step(reply, done=False), text


async def test_the_role_of_the_answer_can_be_chosen():
    step = await answer("<calc>1</calc>", env=Calculator(role="user"))
    assert step.observation.messages[0]["role"] == "user"


async def test_a_reply_without_a_call_is_final():
    for text in ["42", "", "</calc>", "calc 6*7"]:
        assert await answer(text) == DONE, text


async def test_a_reply_cut_off_is_final():
    assert await answer("<calc>6*7</calc>", is_truncated=True) == DONE


async def test_the_second_reply_is_final_even_with_a_call():
    env = Calculator()
    await answer("<calc>6*7</calc>", env=env)
    assert await answer("<calc>1</calc>", env=env) == DONE
