"""The keys of training a reward model: what its scores should say of responses that people compared."""

from typing import Annotated

from pydantic import Field

from strop.config.keys import Section, key

Text = Annotated[str, Field(min_length=1)]


class RewardModel(Section):
    """A scalar head on the model's trunk, trained with it; its score is of the last token of a response."""

    centering: float = key(0.0, ge=0)
    """Of `bradley_terry`: weight of (chosen + rejected)², which draws scores to a mean of 0
    (arXiv:2312.09244); 0: only differences are determined."""
    margin_field: Text | None = key(None)
    """Of `bradley_terry`: field of a row's metadata that says by how much the chosen response is better, in
    units of score (arXiv:2307.09288 eq. 2)."""
    per_token: bool = key(False)
    """Of `bradley_terry`: compare the scores of every token behind the first that differs, not only of the
    last; the score to use is that of the last all the same."""
