"""`Calculator`: the model may ask for one calculation, sees the result, and answers."""

import re
from typing import Literal

from strop.envs.arithmetic import NotArithmetic, evaluate, shown
from strop.envs.base import Observation, Reply, Step
from strop.sample import Prompt

_CALL = re.compile(r"<calc>(.*?)(</calc>|<calc>|$)", re.DOTALL)


class Calculator:
    """Two turns at most. A first reply with `<calc>17 * 3</calc>` is answered `= 51`; what cannot be
    calculated is answered `error: …`, and the model goes on from there. Any other reply is final.

    `role` of the answer: "user" suits chat templates that know no tool messages.
    """

    def __init__(self, *, role: Literal["tool", "user"] = "tool") -> None:
        if role not in ("tool", "user"):
            raise ValueError(f"role must be 'tool' or 'user', got {role!r}")
        self._role = role
        self._has_answered = False

    async def start(self, prompt: Prompt) -> Observation:  # noqa: ARG002 - the seam passes it
        """Nothing to add: the prompt tells the model of `<calc>`."""
        return Observation()

    async def step(self, reply: Reply) -> Step:
        """The result of the first call in the reply, or done."""
        call = _CALL.search(reply.text)
        if call is None or self._has_answered or reply.is_truncated:
            return Step(Observation(), done=True)
        self._has_answered = True
        message = {"role": self._role, "content": _answer(call[1], is_closed=call[2] == "</calc>")}
        return Step(Observation((message,)), done=False)

    async def close(self) -> None:
        """Holds nothing."""


def _answer(expression: str, *, is_closed: bool) -> str:
    if not is_closed:
        return "error: </calc> is missing"
    try:
        return f"= {shown(evaluate(expression))}"
    except NotArithmetic as problem:
        return f"error: {problem}"
