"""`SingleTurn`: one prompt, one reply."""

from strop.envs.base import Observation, Reply, Step
from strop.sample import Prompt


class SingleTurn:
    """Done after the first reply; whether it is right is for the reward to say."""

    async def start(self, prompt: Prompt) -> Observation:  # noqa: ARG002 - the seam passes it
        """Nothing to add to the prompt."""
        return Observation()

    async def step(self, reply: Reply) -> Step:  # noqa: ARG002 - the seam passes it
        """Done."""
        return Step(Observation(), done=True)

    async def close(self) -> None:
        """Holds nothing."""
