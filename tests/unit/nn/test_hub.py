"""Models of the Hub: a cache as the Hub's own tools lay it out, and a small Hub on this machine."""

import json
import shutil
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest
from huggingface_hub import constants

from strop.config.load import load_config
from strop.config.tree import Config
from strop.errors import ConfigError, InputError, RunError
from strop.nn.catalog import fetched, model_path
from strop.preflight import prepare

NAME, COMMIT = "some-org/small.model", "c0ffee" * 6 + "abcd"


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty cache, on a machine that may not look elsewhere."""
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def fill(cache: Path, model: Path, *, without: str = "") -> Path:
    """Put a model into the cache: blobs, links to them in a snapshot, and what `main` refers to."""
    repo = cache / "models--some-org--small.model"
    for part in ("blobs", "refs", f"snapshots/{COMMIT}"):
        (repo / part).mkdir(parents=True, exist_ok=True)
    (repo / "refs" / "main").write_text(COMMIT)
    snapshot = repo / "snapshots" / COMMIT
    for number, file in enumerate(model.iterdir()):
        if file.name != without:
            shutil.copyfile(file, repo / "blobs" / str(number))
            (snapshot / file.name).symlink_to(f"../../blobs/{number}")
    return snapshot


def refusal(name, error=ConfigError, of=model_path):
    with pytest.raises(error) as caught:
        of(name)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_a_model_in_the_cache_is_found_without_network(cache, tiny_dir):
    snapshot = fill(cache, tiny_dir)
    for name in (NAME, f"{NAME}@main", f"{NAME}@{COMMIT}"):
        assert model_path(name) == snapshot, name


@pytest.mark.parametrize("without", ["config.json", "model.safetensors", "tokenizer_config.json"])
def test_a_part_of_a_model_in_the_cache_is_not_the_model(cache, tiny_dir, without):
    fill(cache, tiny_dir, without=without)
    assert refusal(NAME) == (
        f'model = "{NAME}": no such directory, and as a model of the Hub it is not, or not whole, '
        f"in {cache}, while HF_HUB_OFFLINE forbids to fetch it; unset that, or name a directory"
    )


def test_a_model_in_the_cache_that_is_not_served_is_refused_by_its_name(cache, tiny_dir):
    snapshot = fill(cache, tiny_dir, without="config.json")
    (snapshot / "config.json").write_text('{"model_type": "mamba"}')
    assert refusal(NAME).startswith(f'model = "{NAME}" is of type "mamba", whose layers are not all softmax')


def test_a_directory_goes_before_the_hub(cache, tiny_dir, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    shutil.copytree(tiny_dir, tmp_path / NAME)
    assert model_path(NAME) == Path(NAME)


def test_what_has_not_the_shape_of_a_hub_name_is_a_path(cache):
    for name in ("a/b/c", "./a/b", "../a", "/a/b", "~/a", "a/b@"):
        assert "is not a directory, nor one of the known names" in refusal(name), name


def test_a_hub_name_in_a_run_file_is_no_path_unless_it_is_one(tmp_path):
    run = tmp_path / "run.toml"
    run.write_text(f'model = "{NAME}"\nprompts.source = "numbers"\nloop.steps = 1\n')
    assert load_config([run], []).config.model == NAME
    (tmp_path / NAME).mkdir(parents=True)
    assert load_config([run], []).config.model == str(tmp_path / NAME)


class Hub(BaseHTTPRequestHandler):
    """As much of the Hub as a download asks for. `files`: of its one repository; `asked`: those asked for."""

    files: dict[str, bytes]
    asked: list[str]

    def do_HEAD(self) -> None:
        self.answer()

    def do_GET(self) -> None:
        self.answer()

    def answer(self) -> None:
        path = self.path.partition("?")[0].lstrip("/").removeprefix("api/models/")
        rest = path.partition("/resolve/")[2]
        if "gated" in path:
            self.reply(403, {"X-Error-Code": "GatedRepo"})
        elif not path.startswith(NAME):
            self.reply(404, {"X-Error-Code": "RepoNotFound"})
        elif rest:
            name = rest.partition("/")[2]
            self.asked.append(name)
            self.reply(200, {"X-Repo-Commit": COMMIT, "ETag": f'"{name}"'}, self.files[name])
        elif "/tree/" in path:
            tree = [
                {"type": "file", "path": name, "size": len(content), "oid": name}
                for name, content in self.files.items()
            ]
            self.reply(200, {}, json.dumps(tree).encode())
        elif path.endswith("/revision/old"):
            self.reply(404, {"X-Error-Code": "RevisionNotFound"})
        else:
            self.reply(200, {}, json.dumps({"id": NAME, "sha": COMMIT, "siblings": []}).encode())

    def reply(self, status: int, headers: dict[str, str], content: bytes = b"") -> None:
        self.send_response(status)
        for name, value in {**headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture
def hub(cache, tiny_dir, monkeypatch):
    """The Hub, holding the tiny model and files that nobody wants."""
    files = {file.name: file.read_bytes() for file in tiny_dir.iterdir()}
    files |= dict.fromkeys(
        ["pytorch_model.bin", "code.py", "consolidated.safetensors", "onnx/model.json"], b"?"
    )
    handler = type("Handler", (Hub,), {"files": files, "asked": []})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(constants, "ENDPOINT", url)
    monkeypatch.setattr(
        constants, "HUGGINGFACE_CO_URL_TEMPLATE", url + "/{repo_id}/resolve/{revision}/{filename}"
    )
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    yield handler
    server.shutdown()
    server.server_close()


def test_a_model_of_the_hub_is_fetched_without_pickle_or_code_and_only_once(hub, tiny_dir):
    assert not model_path(NAME).is_dir()
    path = fetched(NAME)
    names = sorted(file.name for file in tiny_dir.iterdir())
    assert sorted(file.name for file in path.iterdir()) == names
    assert set(hub.asked) == set(names)
    assert model_path(NAME) == path


def test_a_model_that_is_not_served_is_refused_before_its_weights_are_fetched(hub):
    hub.files["config.json"] = b'{"model_type": "rwkv"}'
    assert refusal(NAME, of=fetched).startswith(f'model = "{NAME}" is of type "rwkv"')
    assert set(hub.asked) == {"config.json"}


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("no/such", "no such directory, and no such model on the Hub (a private one needs: hf auth login)"),
        (f"{NAME}@old", 'the Hub has no revision "old" of it'),
    ],
)
def test_a_name_that_the_hub_does_not_know(hub, name, line):
    assert refusal(name, of=fetched) == f'model = "{name.partition("@")[0]}": {line}'


def test_a_gated_model_says_how_to_get_it(hub):
    assert refusal("some-org/gated", of=fetched) == (
        'model = "some-org/gated" is gated on the Hub: accept its terms at '
        "https://huggingface.co/some-org/gated, then: hf auth login"
    )


def test_a_hub_that_cannot_be_reached(hub, monkeypatch):
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")
    assert refusal(NAME, error=RunError, of=fetched).startswith(
        f'model = "{NAME}": no such directory, and the Hub cannot be reached: '
    )


def config_of(*flags: str) -> Config:
    return load_config([], ["--model", NAME, "--loop.steps", "1", *flags]).config


def test_a_run_of_a_model_of_the_hub_is_prepared(hub, tmp_path):
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"prompt": "1 + 1", "label": "2"}\n')
    prepared = prepare(config_of("--prompts.files", json.dumps([str(rows)])))
    assert prepared.model.name == COMMIT


def test_nothing_is_fetched_for_a_run_that_has_another_mistake(hub):
    with pytest.raises(InputError, match=r"missing\.jsonl"):
        prepare(config_of("--prompts.files", '["missing.jsonl"]'))
    assert hub.asked == []
