"""Models of the Hugging Face Hub: from its cache on this machine if they are there whole, else from the net.

Only weights in safetensors, configurations, tokenizers and licences are fetched: no pickle, no code.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from strop.config.hub_names import HubName
from strop.errors import ConfigError, RunError, first_line
from strop.nn.families import check_family
from strop.nn.weight_files import are_weights_there, read_object

_FETCHED = ("*.safetensors", "*.json", "*.jinja", "*.txt", "*.model", "*.tiktoken", "LICENSE*", "NOTICE*")
_LEFT = ("*/*", "consolidated*")
"""Other forms of the same weights, which some repositories hold too."""
_TOKENIZERS = ("tokenizer_config.json", "tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")


def cached(name: HubName) -> Path | None:
    """The model's directory in the cache, None if it or a part of it is not there.

    Raises ConfigError for a model that is not served, if its config.json is there.
    """
    from huggingface_hub import constants, try_to_load_from_cache

    cache, revision = constants.HF_HUB_CACHE, name.revision
    config = try_to_load_from_cache(name.repo, "config.json", cache_dir=cache, revision=revision)
    if not isinstance(config, str):
        return None
    path = Path(config).parent
    check_family(read_object(path / "config.json"), Path(name.repo))
    is_whole = are_weights_there(path) and any((path / file).is_file() for file in _TOKENIZERS)
    return path if is_whole else None


def place(name: HubName) -> Path:
    """A directory that is not there, for a model that `download` has yet to bring. Raises ConfigError when it
    may not be brought."""
    from huggingface_hub.constants import HF_HUB_CACHE, HF_HUB_OFFLINE

    if HF_HUB_OFFLINE:
        raise ConfigError(
            f'model = "{name.repo}": no such directory, and as a model of the Hub it is not, or not whole, '
            f"in {HF_HUB_CACHE}, while HF_HUB_OFFLINE forbids to fetch it; unset that, or name a directory"
        )
    return Path(HF_HUB_CACHE) / name.repo / "not fetched"


def download(name: HubName) -> Path:
    """Fetch the model and return its directory in the cache; progress goes to standard error.

    Its configuration comes first, so that a model that is not served is refused before its weights are
    fetched. Raises ConfigError for what the name or the login is to blame for, else RunError.
    """
    with _told(name):
        _bring(name, ["config.json"])
        cached(name)  # for its check
        return _bring(name, list(_FETCHED))


def _bring(name: HubName, files: list[str]) -> Path:
    from huggingface_hub import snapshot_download

    return Path(
        snapshot_download(
            name.repo, revision=name.revision, allow_patterns=files, ignore_patterns=list(_LEFT)
        )
    )


@contextmanager
def _told(name: HubName) -> Iterator[None]:
    from huggingface_hub import errors

    where = f'model = "{name.repo}"'
    try:
        yield
    except errors.GatedRepoError as caught:
        raise ConfigError(
            f"{where} is gated on the Hub: accept its terms at https://huggingface.co/{name.repo}, then: "
            "hf auth login"
        ) from caught
    except errors.RepositoryNotFoundError as caught:
        raise ConfigError(
            f"{where}: no such directory, and no such model on the Hub (a private one needs: hf auth login)"
        ) from caught
    except errors.RevisionNotFoundError as caught:
        raise ConfigError(f'{where}: the Hub has no revision "{name.revision}" of it') from caught
    except errors.EntryNotFoundError as caught:
        if isinstance(caught, errors.LocalEntryNotFoundError):
            raise RunError(
                f"{where}: no such directory, and the Hub cannot be reached: {first_line(str(caught))}"
            ) from caught
        raise ConfigError(f"{where}: the Hub's copy has no config.json; name a model") from caught
    except (OSError, errors.HTTPError) as caught:  # type: ignore[attr-defined] # of whichever client it uses
        raise RunError(f"{where}: cannot be fetched: {first_line(str(caught))}") from caught
