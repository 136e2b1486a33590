"""SGLang's `/generate` on this machine's loopback, over the run's own engine.

Functions written against slime post there with `input_ids` and `sampling_params`. Only addresses of this
machine reach it, on a port of its own for each run; it is closed with the run.
"""

import asyncio
import hashlib
import socket
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import msgspec
import numpy as np
from aiohttp import web

from strop.engines.base import Completion, Engine, Request
from strop.errors import EngineFailed, TooLong
from strop.plugins import nearest
from strop.randomness import derive
from strop.render.base import Renderer
from strop.rollout.hooks import Occasion
from strop.sample import Sampling
from strop.tokens import Tokens

HOST = "127.0.0.1"
SEED = "sampling_seed"
FORM = {"skip_special_tokens": False, "spaces_between_special_tokens": False, "no_stop_trim": True}
"""About the text alone, as slime sends them; the text of a reply is a view, so they change nothing."""
_DRAWS: dict[str, Any] = {
    "temperature": Annotated[float, msgspec.Meta(ge=0)],
    "top_p": Annotated[float, msgspec.Meta(gt=0, le=1)],
    "top_k": Annotated[int, msgspec.Meta(ge=-1)],
    "min_p": Annotated[float, msgspec.Meta(ge=0, lt=1)],
    "ignore_eos": bool,
}
_PARAMETERS: dict[str, Any] = {
    **_DRAWS,
    "max_new_tokens": int,
    "stop": str | list[str],
    "stop_token_ids": list[int],
    SEED: int,
    **dict.fromkeys(FORM, bool),
    "custom_params": Any,
    "n": int,
}
"""What may be in `sampling_params`, and of which type; None is as if it were not there."""
_MAX_ID = np.iinfo(np.int32).max


@dataclass(frozen=True, slots=True)
class Turn:
    """Whom the endpoint answers for, until the next one begins."""

    engine: Engine
    renderer: Renderer
    sampling: Sampling
    """Of the run, or of the held-out set."""
    occasion: Occasion


class Endpoint:
    """`begin` before the first request; `close` with the run."""

    def __init__(self, *, seed: int, encode: Callable[[str], list[int]]) -> None:
        self._seed, self._encode = seed, encode
        self._socket = socket.create_server((HOST, 0))
        self.address: tuple[str, int] = (HOST, self._socket.getsockname()[1])
        self.version: int | None = None
        """Of the weights that answered last."""
        self._turn: Turn | None = None
        self._runner: web.AppRunner | None = None
        self._starting = asyncio.Lock()
        self._asked: Counter[tuple[int, bytes]] = Counter()
        self._drawn: set[tuple[int, float]] = set()
        """Every token that was given out on this occasion, with its log-prob."""
        self._count = 0

    async def begin(self, turn: Turn) -> None:
        """Answer for this turn from now on; the first one starts the server."""
        async with self._starting:
            if self._turn is None or self._turn.occasion != turn.occasion:
                self._asked.clear()
                self._drawn.clear()
            self._turn = turn
            if self._runner is None:
                await self._start()

    async def _start(self) -> None:
        app = web.Application(client_max_size=2**28)
        app.add_routes([web.post("/generate", self._generate), web.get("/health", self._health)])
        self._runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1, access_log=None)
        await self._runner.setup()
        await web.SockSite(self._runner, self._socket).start()

    def refuse_what_was_not_drawn(self, tokens: Tokens) -> None:
        """ValueError for a sampled token that was never given out with this log-prob."""
        for place in np.flatnonzero(tokens.sampled).tolist():
            id, logp = int(tokens.ids[place]), float(tokens.behavior[place])
            if (id, logp) not in self._drawn:
                raise ValueError(
                    f"token {place} of sample.tokens is {id}, with the log-prob {logp:.4f}, which the engine "
                    "did not draw; keep what /generate gave, or set loss_mask and log-prob of others to 0"
                )

    async def close(self) -> None:
        """More than once is harmless."""
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        self._socket.close()

    async def _health(self, _: web.Request) -> web.Response:
        return web.Response(text="ok")

    async def _generate(self, http: web.Request) -> web.Response:
        assert self._turn is not None
        try:
            asked = await http.json()
            if not isinstance(asked, dict):
                raise ValueError("expected an object with input_ids and sampling_params")
            request = self._request(asked, self._turn)
            completion = await self._turn.engine.generate(request)
        except (ValueError, TooLong) as error:
            raise web.HTTPBadRequest(text=f"/generate: {error}") from error
        except EngineFailed as error:  # which ends the run by itself
            raise web.HTTPServiceUnavailable(text=f"/generate: {error}") from error
        if len(completion.versions):
            self.version = int(completion.versions[-1])
        self._drawn.update(zip(completion.ids.tolist(), completion.logp.tolist(), strict=True))
        return web.json_response(_reply(request, completion, asked, self._turn.renderer))

    def _request(self, asked: dict[str, Any], turn: Turn) -> Request:
        ids = asked.get("input_ids")
        if ids is None:
            ids = self._encode(asked["text"]) if isinstance(asked.get("text"), str) else None
        if not isinstance(ids, list) or not ids or not all(map(_is_id, ids)):
            raise ValueError("expected input_ids, a list of ids, or text; of one prompt")
        params = _checked(asked.get("sampling_params") or {})
        sampling = _sampling(params, turn.sampling, is_recorded=bool(asked.get("return_logprob")))
        array = np.asarray(ids, np.int32)
        self._count += 1
        return Request(
            id=f"endpoint/{self._count}", ids=array, sampling=sampling, seed=self._noise(params, array, turn)
        )

    def _noise(self, params: dict[str, Any], ids: Any, turn: Turn) -> int:
        """A function of the sample, of the ids, and of how often the same was asked: a second draw for one
        prompt is another one, and a resumed run repeats both."""
        kind = "eval" if turn.occasion.is_eval else "sample"
        base = params.get(SEED)
        if base is None:
            base = derive(self._seed, "endpoint", kind, turn.occasion.step)
        digest = hashlib.blake2b(ids.tobytes(), digest_size=16)
        self._asked[base, digest.digest()] += 1
        return derive(base, "call", digest.hexdigest(), self._asked[base, digest.digest()])


def parameters(sampling: Sampling, *, seed: int) -> dict[str, Any]:
    """What functions are given as `sampling_params`, and pass on."""
    given = {
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "max_new_tokens": sampling.max_tokens,
        "stop": list(sampling.stop) or None,
        "stop_token_ids": list(sampling.stop_token_ids) or None,
        **FORM,
        SEED: seed,
    }
    rare = {"min_p": sampling.min_p, "ignore_eos": sampling.ignore_eos}
    return given | {name: value for name, value in rare.items() if value}


def _is_id(value: object) -> bool:
    return isinstance(value, int) and 0 <= value <= _MAX_ID


def _checked(params: object) -> dict[str, Any]:
    """`sampling_params` without what is None. ValueError for names and types that are none of SGLang's."""
    if not isinstance(params, dict):
        raise ValueError(f"expected sampling_params, an object, got {params!r:.60}")
    given = {name: value for name, value in params.items() if value is not None}
    for name, value in given.items():
        if name not in _PARAMETERS:
            raise ValueError(f"sampling_params.{name} is not supported{nearest(name, _PARAMETERS)}")
        try:
            msgspec.convert(value, _PARAMETERS[name])
        except msgspec.ValidationError as error:
            raise ValueError(f"sampling_params.{name} = {value!r}: {error}") from error
    if given.get("n", 1) != 1:
        raise ValueError("sampling_params.n: one completion a request")
    return given


def _sampling(params: dict[str, Any], run: Sampling, *, is_recorded: bool) -> Sampling:
    """The run's sampling, as far as the request does not say otherwise. ValueError for tokens with log-probs
    that would be of another distribution than the one that is trained."""
    given = {name: params[name] for name in _DRAWS if name in params}
    for name, value in given.items():
        if is_recorded and value != run_value(run, name):
            raise ValueError(
                f"sampling_params.{name} = {value}, but the run has {run_value(run, name)}, and tokens are "
                "trained as drawn; pass sampling_params on as they came, or ask for no log-probs"
            )
    return replace(
        run,
        **given,
        max_tokens=params.get("max_new_tokens", run.max_tokens),
        stop=_texts(params.get("stop", run.stop)),
        stop_token_ids=tuple(params.get("stop_token_ids", run.stop_token_ids)),
    )


def run_value(run: Sampling, name: str) -> Any:
    """A value of the run's sampling, by its name there and in SGLang."""
    return {
        "temperature": run.temperature,
        "top_p": run.top_p,
        "top_k": run.top_k,
        "min_p": run.min_p,
        "ignore_eos": run.ignore_eos,
    }[name]


def _texts(given: str | Sequence[str]) -> tuple[str, ...]:
    return (given,) if isinstance(given, str) else tuple(given)


def _reply(
    request: Request, completion: Completion, asked: dict[str, Any], renderer: Renderer
) -> dict[str, Any]:
    """As SGLang answers."""
    ids = completion.ids.tolist()
    meta: dict[str, Any] = {
        "id": asked.get("rid") or request.id,
        "finish_reason": {"type": completion.finish},
        "prompt_tokens": len(request.ids),
        "completion_tokens": len(ids),
        "cached_tokens": 0,
    }
    if len(completion.versions):
        meta["weight_version"] = str(int(completion.versions[-1]))
    if asked.get("return_logprob"):
        pairs = zip(completion.logp.tolist(), ids, strict=True)
        meta["output_token_logprobs"] = [[logp, id, None] for logp, id in pairs]
    for name, array in completion.extras.items():
        meta[name] = array.tolist()
    return {"text": renderer.decode(ids), "output_ids": ids, "meta_info": meta}
