"""transformer-plugin serve: what it answers, and what it refuses."""

import argparse
import asyncio
import json
import sys
from concurrent.futures import ThreadPoolExecutor
from types import SimpleNamespace

import pytest
import torch
from running_service import JSON, arguments
from starlette.exceptions import HTTPException

from transformer_plugin import cli
from transformer_plugin.translation import web
from transformer_plugin.translation.alignment import mean_attention
from transformer_plugin.translation.arguments import add_model_arguments, add_search_arguments
from transformer_plugin.translation.loading import load_translator

pytest.importorskip("uvicorn")
SENTENCES = [
    "the cat sees the dog's “house”",
    "the quick cat",
    "slowly and slowly and slowly",
    "naïve (so) . and the cat",
    "unknown words ☃",
    "",
]


@pytest.fixture(scope="module")
def translator(prepared):
    parser = argparse.ArgumentParser()
    add_model_arguments(parser)
    add_search_arguments(parser)
    return load_translator(parser.parse_args(arguments(prepared("sentencepiece"))[1:]))


def test_80_requests_of_8_clients_are_answered(service, translator):
    expected = [t.text for t in translator.translate(SENTENCES)]

    def ask(i):
        i %= len(SENTENCES)
        status, answer = service.translate({"text": SENTENCES[i]})
        return status == 200 and answer["translations"][0]["translation"] == expected[i]

    with ThreadPoolExecutor(8) as clients:
        assert all(clients.map(ask, range(80)))


@pytest.mark.parametrize(
    "body, status, message",
    [
        (b"x" * 1_000_000, 413, "at most 32,768 bytes"),
        ({"text": "cat\n" * 101}, 413, "at most 100 lines"),
        (b'{"text": ', 400, "not JSON"),
        (b"\xff\xfe", 400, "not JSON"),
        (b"[" * 30_000, 400, "not JSON"),
        (b'["text"]', 400, "expected {"),
        ({"text": 3}, 400, "expected {"),
        ({"text": "cat", "attention": "yes"}, 400, "true or false"),
        ({"text": "cat", "nbest": 5}, 400, "from 1 to 4"),
        ({"text": "cat", "n_best": 2}, 400, "unknown: n_best; known: text, attention, nbest"),
        ({"text": "cat", "nbest": True}, 400, "from 1 to 4"),
        (b'{"text": "\\ud800"}', 400, "surrogate"),
        (b'{"text": "cat", "\\ud800": 1}', 400, "unknown: ?; known"),
        ({"text": "cat", "": 1}, 400, "unknown: ; known"),
    ],
)
def test_what_it_refuses(service, body, status, message):
    found, answer = service.translate(body)
    assert found == status and message in answer["error"]
    assert service.translate({"text": "the cat"})[0] == 200  # and it stays up


def test_lines_may_end_as_on_windows(service):
    status, answer = service.translate({"text": "the cat\r\nthe quick cat\r\n"})
    assert status == 200
    assert [each["source"] for each in answer["translations"]] == ["the cat", "the quick cat"]


def test_a_body_that_never_says_its_size_is_bounded(service):
    found, answer, _ = service.request("POST", "/translate", iter([b"x" * 10_000] * 100), **JSON)
    assert found == 413 and b"at most" in answer


@pytest.mark.parametrize(
    "headers, status",
    [
        (JSON, 200),
        ({"Content-Type": "Application/JSON; charset=utf-8"}, 200),
        (JSON | {"Origin": "http://127.0.0.1:PORT"}, 200),
        ({}, 415),
        ({"Content-Type": "text/plain"}, 415),
        ({"Content-Type": "application/x-www-form-urlencoded"}, 415),
        (JSON | {"Origin": "http://elsewhere.example"}, 403),
        (JSON | {"Origin": "http://127.0.0.1:1"}, 403),
        (JSON | {"Origin": "null"}, 403),
        (JSON | {"Host": "elsewhere.example"}, 400),  # DNS rebinding
        (JSON | {"Host": "elsewhere.example", "Origin": "http://elsewhere.example"}, 400),
    ],
)
def test_pages_of_other_sites_get_nothing(service, headers, status):
    named = {name: value.replace("PORT", str(service.port)) for name, value in headers.items()}
    found, answer, sent = service.request("POST", "/translate", b'{"text": "the cat"}', **named)
    assert found == status, answer
    assert not [name for name in sent if name.lower().startswith("access-control-")]


def test_other_addresses_and_names_are_refused(service):
    assert service.request("GET", "/translate")[0] == 405
    assert service.request("GET", "/../setup.py")[0] == 404
    assert service.request("GET", "/health", Host="elsewhere.example")[0] == 400
    status, answer, _ = service.request("GET", "/health")
    assert status == 200 and json.loads(answer)["source_lang"] == "en"


def test_the_page_needs_nothing_from_elsewhere(service):
    status, page, headers = service.request("GET", "/")
    assert status == 200 and "default-src 'none'" in headers["Content-Security-Policy"]
    assert b"://" not in page and b"@import" not in page


def test_attention_is_shown(service, translator):
    text = f"{SENTENCES[0]}\n\n{'cat ' * 200}"
    status, answer = service.translate({"text": text, "attention": True})
    first, empty, long = answer["translations"]
    assert status == 200 and empty["parts"] == [] and empty["translation"] == ""
    (part,) = first["parts"]
    weights = torch.tensor(part["attention"])
    assert weights.shape == (2, len(part["target"]) + 1, len(part["source"]) + 1)
    assert torch.allclose(weights.sum(dim=2), torch.ones(weights.shape[:2]), atol=3e-3)
    assert long["parts"][0]["attention"] is None
    assert "attention" not in service.translate({"text": "cat"})[1]["translations"][0]["parts"][0]


def test_hypotheses_are_those_of_the_beam(service, translator):
    """Whatever other requests of the same batch ask for."""
    asked = [{"text": "the quick cat", "nbest": n} for n in (1, 4, 3)]
    with ThreadPoolExecutor(3) as clients:
        answers = [answer["translations"][0] for _, answer in clients.map(service.translate, asked)]
    assert "hypotheses" not in answers[0]
    assert answers[1]["hypotheses"][:3] == answers[2]["hypotheses"]
    (expected,) = translator.n_best(["the quick cat"], 4)
    for found, one in zip(answers[1]["hypotheses"], expected, strict=True):
        assert found["translation"] == one.text and found["tokens"] == len(
            one.parts[0].target_tokens
        )
        assert found["score"] == pytest.approx(one.score, abs=1e-3)
        penalty = ((5 + found["tokens"]) / 6) ** 0.6  # section 6.1
        assert found["log_prob"] == pytest.approx(found["score"] * penalty, abs=1e-3)
    assert answers[1]["translation"] == answers[1]["hypotheses"][0]["translation"]


def test_alignment_is_what_the_decoder_saw_step_by_step(translator):
    (part,) = translator.translate([SENTENCES[0]])[0].parts
    found = mean_attention(translator.models[0], part)
    model, state = translator.models[0], {}
    memory = model.encoder(part.source_tokens[None])
    eos = torch.tensor([translator.task.target_dictionary.eos()])
    tokens = torch.cat([eos, part.target_tokens])
    with torch.no_grad():
        for t in range(len(part.target_tokens)):
            _, extra = model.decoder(tokens[None, : t + 1], memory, incremental_state=state)
            assert torch.allclose(extra["attn"][0][0, 0], found[-1, t], atol=1e-5)


def test_an_address_that_is_taken_is_named(service, prepared, capsys):
    assert cli.main(arguments(prepared("sentencepiece"), "--port", str(service.port))) == 2
    error = capsys.readouterr().err
    assert f"cannot listen on 127.0.0.1, port {service.port}" in error and "--port" in error


def test_without_the_extra_it_says_what_to_install(prepared, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    assert cli.main(arguments(prepared("sentencepiece"))) == 2
    assert "pip install 'transformer-plugin[serve]'" in capsys.readouterr().err


def test_no_other_page_may_frame_the_page(service):
    """So that it cannot have the user click on what it has hidden."""
    _, _, headers = service.request("GET", "/")
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_a_body_without_an_end_is_not_read_for_ever():
    read = []

    async def stream():
        for _ in range(100):
            read.append(1_000_000)
            yield bytes(read[-1])

    with pytest.raises(HTTPException, match="at most 1,000 bytes"):
        asyncio.run(web.body(SimpleNamespace(stream=stream), 1000))
    assert 16_000_000 < sum(read) < 20_000_000
