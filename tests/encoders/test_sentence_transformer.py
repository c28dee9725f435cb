from __future__ import annotations

import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from memlab.encoders import Encoder, MiniLM, SentenceTransformerEncoder, stamp
from memlab.encoders._require import require
from memlab.encoders.model_files import read_facts
from memlab.encoders.weights import MINILM, MINILM_SHA256
from memlab.errors import EncoderError, EncoderUnavailable, InvalidValue, MissingDependency

pytestmark = pytest.mark.model

TEXTS = [
    "Webhooks retry with full jitter, capped at 5 min.",
    "",
    "def f(x):\n    return x ** 2\n" * 20,
    "数据库连接池耗尽了。" * 30,
    "lone \ud800 surrogate and \x00 NUL",
    "café e\u0301 \U0001f469\u200d\U0001f467 [SEP] https://example.com/a.png",
    "x",
    "a" * 3000,
]


# --- MiniLM -----------------------------------------------------------------------------------------------------------


def test_it_is_an_encoder(minilm):
    assert isinstance(minilm, Encoder)
    assert stamp(minilm).name == MINILM
    assert stamp(minilm).fingerprint == f"sha256:{MINILM_SHA256}"
    assert (minilm.dimension, minilm.token_limit) == (384, 256)
    assert (minilm.query_prefix, minilm.document_prefix) == ("", "")


def test_paraphrases_are_nearer_than_the_unrelated(minilm):
    query = minilm.encode_queries(["how do we back off failing webhooks?"])[0]
    documents = minilm.encode_documents(
        ["Webhook calls that fail are retried with exponential backoff.", "The logo is green on a white ground."]
    )
    near, far = documents @ query
    assert near > 0.5 > 0.2 > far


def test_the_vectors_are_the_librarys_own(minilm):
    """The project's batches, cleaning and limit change nothing against sentence-transformers by itself."""
    from sentence_transformers import SentenceTransformer

    model = SentenceTransformer(str(minilm.folder.path), device="cpu", local_files_only=True)
    texts = [text for text in TEXTS if "\ud800" not in text]
    expected = model.encode(texts, normalize_embeddings=True, show_progress_bar=False)
    np.testing.assert_allclose(minilm.encode_documents(texts), expected, atol=2e-6)


@pytest.mark.parametrize("size", [1, 3, 16])
def test_order_and_batches_do_not_matter(minilm, size):
    small = MiniLM(batch_size=size, backend="torch")
    small._loaded = minilm._loaded
    together = small.encode_documents(TEXTS)
    assert together.dtype == np.float32
    assert together.shape == (len(TEXTS), 384)
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)
    for number, text in enumerate(TEXTS):
        np.testing.assert_allclose(minilm.encode_documents([text])[0], together[number], atol=2e-6)
    np.testing.assert_allclose(small.encode_documents(TEXTS[::-1])[::-1], together, atol=2e-6)


def test_batches_are_sorted_by_tokens_not_characters(minilm):
    """A CJK text has about a token for a character, an English one for five: characters would sort them otherwise."""
    batches = list(minilm._batches(["word " * 30, "数" * 100, "one", "two"], ""))
    assert [number for batch in batches for number in batch] == [1, 0, 2, 3]


def test_no_texts(minilm):
    assert minilm.encode_documents([]).shape == (0, 384)
    assert minilm.count_tokens([]) == []


def test_the_limit_is_256_tokens(minilm):
    """Each x is one token, and [CLS] is the first: tokenizer.json alone would cut at 128."""

    def marked(place: int, word: str) -> str:
        return " ".join([*["x"] * place, word, *["x"] * (320 - place)])

    within = minilm.encode_documents([marked(200, "tiger"), marked(200, "apple")])
    assert float(within[0] @ within[1]) < 0.9999
    last = minilm.encode_documents([marked(253, "tiger"), marked(253, "apple")])
    assert float(last[0] @ last[1]) < 0.99999
    for place in (254, 300):
        beyond = minilm.encode_documents([marked(place, "tiger"), marked(place, "apple")])
        np.testing.assert_array_equal(beyond[0], beyond[1])


def test_another_limit_is_used(minilm):
    short = MiniLM(token_limit=4, backend="torch")
    vectors = short.encode_documents(["one two three", "one two four", "one three two"])
    np.testing.assert_array_equal(vectors[0], vectors[1])
    assert not np.allclose(vectors[0], vectors[2])
    with pytest.raises(InvalidValue, match="at most 512 tokens, found 513"):
        MiniLM(token_limit=513).encode_documents(["x"])


def test_counts_are_the_models_own(minilm):
    tokenizer = minilm._loaded.tokenizer
    texts = [text for text in TEXTS if "\ud800" not in text]
    expected = [len(tokenizer(text, truncation=False, verbose=False)["input_ids"]) for text in texts]
    assert minilm.count_tokens(texts) == expected
    assert max(expected) > 256


def test_spans_are_code_points(minilm):
    text = "\U0001f642 naïve retry_webhook\x00() 数据 \ud800 end"
    spans = minilm.token_spans(text)
    assert spans.dtype == np.int64
    assert (np.diff(spans[:, 0]) >= 0).all()
    cut = [text[start:end] for start, end in spans]
    assert cut[0] == "\U0001f642"
    assert cut[1] == "naïve"
    assert "数" in cut
    assert cut[-1] == "end"
    assert len(spans) + 2 == minilm.count_tokens([text])[0]
    assert minilm.token_spans("").shape == (0, 2)


@pytest.mark.parametrize("text", ["", " ", "\x00", "\ud800", "\udfff\ud800", "\u200b", "\U0001f469\u200d\U0001f467"])
def test_odd_texts_have_a_vector(minilm, text):
    vectors = minilm.encode_documents([text, "other"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_a_text_by_itself_is_refused(minilm):
    for call in (minilm.encode_documents, minilm.encode_queries, minilm.count_tokens):
        with pytest.raises(InvalidValue, match="put it into a list"):
            call("one text")
    with pytest.raises(InvalidValue, match="NoneType at place 1"):
        minilm.encode_documents(["a", None])


def test_offline_from_end_to_end(bare, no_network, model_folder, capfd):
    encoder = MiniLM()
    assert encoder.folder.path == model_folder
    assert not encoder.loaded
    assert encoder.encode_queries(["https://example.com/a.png"]).shape == (1, 384)
    assert encoder.loaded
    out, err = capfd.readouterr()
    assert out == ""
    assert "Loading weights" not in err


def test_repr_and_names_read_nothing(bare, monkeypatch):
    monkeypatch.setattr("memlab.encoders.minilm.locate_minilm", lambda *a, **k: pytest.fail("located"))
    encoder = MiniLM()
    assert repr(encoder) == f"<MiniLM {MINILM}, not loaded yet>"
    assert (encoder.name, encoder.dimension, encoder.token_limit, encoder.loaded) == (MINILM, 384, 256, False)


def test_a_path_with_the_original_has_the_original_name(bare, model_folder):
    encoder = MiniLM(model_folder)
    assert encoder.name == MINILM
    assert (encoder.dimension, encoder.token_limit) == (384, 256)
    assert encoder.folder.source == "path"


def test_a_path_with_other_weights_says_so(bare, tiny_folder, monkeypatch):
    monkeypatch.setenv("MEMLAB_MODEL", str(tiny_folder))
    for encoder in (MiniLM(tiny_folder), MiniLM()):
        assert encoder.name == str(tiny_folder)
        assert encoder.fingerprint != f"sha256:{MINILM_SHA256}"
        assert encoder.encode_documents(["x"]).shape == (1, 24)
        assert str(tiny_folder) in repr(encoder)
    assert encoder.folder.source == "MEMLAB_MODEL"


# --- any other model --------------------------------------------------------------------------------------------------


def test_facts_without_torch_match_the_loaded_model(tiny_folder):
    encoder = SentenceTransformerEncoder(tiny_folder)
    assert (encoder.dimension, encoder.token_limit) == (24, 48)
    assert encoder.count_tokens(["one two"]) == [2 + 2 + 2]  # the prefix "answer: " has two
    assert not encoder.loaded
    model = encoder._load()
    assert (model.get_embedding_dimension(), model.max_seq_length) == (24, 48)


def test_prompts_of_the_model_are_the_prefixes(tiny_folder):
    own = SentenceTransformerEncoder(tiny_folder)
    assert (own.query_prefix, own.document_prefix) == ("question: ", "answer: ")
    plain = SentenceTransformerEncoder(tiny_folder, query_prefix="", document_prefix="")
    np.testing.assert_allclose(own.encode_queries(["red"]), plain.encode_queries(["question: red"]), atol=1e-6)
    np.testing.assert_allclose(own.encode_documents(["red"]), plain.encode_documents(["answer: red"]), atol=1e-6)
    assert not np.allclose(own.encode_queries(["red"]), plain.encode_queries(["red"]), atol=1e-3)
    assert not np.allclose(own.encode_queries(["red"]), own.encode_documents(["red"]), atol=1e-3)
    given = SentenceTransformerEncoder(tiny_folder, document_prefix="passage: ")
    assert (given.query_prefix, stamp(given).document_prefix) == ("question: ", "passage: ")
    assert not stamp(given).compatible(stamp(own))


def test_a_default_prompt_of_the_model_is_not_added_twice(tiny_folder, linked):
    folder = linked(tiny_folder)
    settings = json.loads((tiny_folder / "config_sentence_transformers.json").read_text())
    (folder / "config_sentence_transformers.json").unlink()
    settings["default_prompt_name"] = "passage"
    (folder / "config_sentence_transformers.json").write_text(json.dumps(settings))
    changed, plain = SentenceTransformerEncoder(folder), SentenceTransformerEncoder(tiny_folder)
    np.testing.assert_allclose(changed.encode_documents(["red"]), plain.encode_documents(["red"]), atol=1e-6)
    bare = SentenceTransformerEncoder(folder, document_prefix="")
    unprefixed = SentenceTransformerEncoder(tiny_folder, document_prefix="")
    np.testing.assert_allclose(bare.encode_documents(["red"]), unprefixed.encode_documents(["red"]), atol=1e-6)


def test_a_name_from_the_cache(bare, no_network, tiny_folder, linked):
    snapshot = bare / "hf" / "hub" / "models--acme--tiny" / "snapshots" / "abc"
    snapshot.parent.mkdir(parents=True)
    linked(tiny_folder).rename(snapshot)
    encoder = SentenceTransformerEncoder("acme/tiny")
    assert encoder.name == "acme/tiny"
    assert encoder.folder.source == "huggingface-cache"
    assert encoder.encode_documents(["x"]).shape == (1, 24)
    absent = SentenceTransformerEncoder("acme/absent")
    assert repr(absent) == "<SentenceTransformerEncoder acme/absent, not loaded yet>"
    with pytest.raises(EncoderUnavailable, match="acme/absent was not found"):
        absent.encode_queries(["x"])


def test_without_tokenizer_json(tiny_folder, linked):
    folder = linked(tiny_folder)
    for file in folder.rglob("tokenizer.json"):
        file.unlink()
    if not list(folder.rglob("vocab.txt")):
        vocabulary = json.loads(next(tiny_folder.rglob("tokenizer.json")).read_text())["model"]["vocab"]
        where = next(folder.rglob("tokenizer_config.json")).parent
        (where / "vocab.txt").write_text("\n".join(sorted(vocabulary, key=vocabulary.get)) + "\n")
    reference, encoder = SentenceTransformerEncoder(tiny_folder), SentenceTransformerEncoder(folder)
    text = "one unbelievable webhook " * 60
    assert encoder.count_tokens([text]) == reference.count_tokens([text])
    np.testing.assert_array_equal(encoder.token_spans(text), reference.token_spans(text))


def test_many_threads_load_once_and_agree(tiny_folder, monkeypatch):
    import sentence_transformers

    made = []
    original = sentence_transformers.SentenceTransformer

    def counting(*args, **kwargs):
        made.append(1)
        return original(*args, **kwargs)

    monkeypatch.setattr(sentence_transformers, "SentenceTransformer", counting)
    encoder = SentenceTransformerEncoder(tiny_folder, batch_size=2)
    texts = [f"text number {number} " * (number % 7 + 1) for number in range(40)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: encoder.encode_documents(texts), range(16)))
    assert len(made) == 1
    for result in results:
        np.testing.assert_allclose(result, results[0], atol=1e-6)


def test_a_failing_model_is_an_encoder_error(tiny_folder, monkeypatch):
    encoder = SentenceTransformerEncoder(tiny_folder)
    model = encoder._load()

    def fail(*args, **kwargs):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(model, "encode_document", fail)
    with pytest.raises(EncoderError, match="failed to encode 1 texts: out of memory"):
        encoder.encode_documents(["x"])
    monkeypatch.setattr(model, "encode_document", lambda texts, **kwargs: np.full((len(texts), 24), np.nan))
    with pytest.raises(EncoderError, match="NaN"):
        encoder.encode_documents(["x"])


def test_broken_weights_and_broken_files(tiny_folder, tmp_path):
    folder = tmp_path / "broken"
    shutil.copytree(tiny_folder, folder)
    (folder / "model.safetensors").write_bytes(b"garbage")
    with pytest.raises(EncoderUnavailable, match="could not be loaded from"):
        SentenceTransformerEncoder(folder).encode_documents(["x"])
    (folder / "modules.json").write_text("{")
    with pytest.raises(EncoderUnavailable, match=r"modules.json cannot be read as JSON"):
        _ = SentenceTransformerEncoder(folder).dimension


@pytest.mark.parametrize(
    ("module", "package", "method"),
    [
        ("sentence_transformers", "sentence-transformers", "encode_documents"),
        ("tokenizers", "tokenizers", "count_tokens"),
    ],
)
def test_a_missing_package_says_how_to_install_it(tiny_folder, monkeypatch, module, package, method):
    encoder = SentenceTransformerEncoder(tiny_folder)
    monkeypatch.setitem(sys.modules, module, None)
    for kind in (MissingDependency, EncoderUnavailable):
        with pytest.raises(kind, match=f"not installed; install it with: python -m pip install {package}$"):
            getattr(encoder, method)(["x"])


def test_a_package_that_lacks_another_or_is_broken(tmp_path, monkeypatch):
    for name, code in (("lacking", "import absent_thing.part"), ("broken", "raise OSError('no libtorch.so')")):
        (tmp_path / f"{name}.py").write_text(code)
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(MissingDependency, match=r"python -m pip install absent_thing$"):
        require("lacking", "lacking", "a test")
    with pytest.raises(
        EncoderUnavailable, match=r"fails when imported \(OSError: no libtorch.so\).*--force-reinstall broken$"
    ):
        require("broken", "broken", "a test")


@pytest.mark.parametrize("wrong", [{"batch_size": 0}, {"batch_size": None}, {"token_limit": 0}, {"token_limit": "9"}])
def test_wrong_sizes(tiny_folder, wrong):
    with pytest.raises(InvalidValue, match="expected a whole number of at least 1"):
        SentenceTransformerEncoder(tiny_folder, **wrong)


@pytest.mark.parametrize(
    ("files", "dimension", "limit"),
    [
        ({"config.json": {"hidden_size": 16, "max_position_embeddings": 512}}, 16, 512),
        (
            {
                "config.json": {
                    "hidden_size": 16,
                    "max_position_embeddings": 514,
                    "model_type": "xlm-roberta",
                    "pad_token_id": 1,
                },
                "tokenizer_config.json": {"model_max_length": 10**30},
                "sentence_bert_config.json": {"max_seq_length": 128},
            },
            16,
            128,
        ),
        (
            {
                "modules.json": [
                    {"path": "", "type": "sentence_transformers.models.Transformer"},
                    {"path": "1_Pooling", "type": "sentence_transformers.models.Pooling"},
                ],
                "config.json": {"hidden_size": 16},
                "1_Pooling/config.json": {
                    "word_embedding_dimension": 16,
                    "pooling_mode_cls_token": True,
                    "pooling_mode_mean_tokens": True,
                },
            },
            32,
            None,
        ),
        (
            {
                "modules.json": [{"path": "0_StaticEmbedding", "type": "sentence_transformers.models.StaticEmbedding"}],
                "0_StaticEmbedding/config.json": {},
            },
            None,
            None,
        ),
    ],
)
def test_facts_of_several_layouts(tmp_path, files, dimension, limit):
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    facts = read_facts(tmp_path)
    assert (facts.dimension, facts.token_limit) == (dimension, limit)


def test_static_embeddings(tmp_path, model_folder):
    """No special tokens, no limit, no file with the dimension, and nothing to average for an empty text."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer import modules
    from tokenizers import Tokenizer

    static = modules.StaticEmbedding(Tokenizer.from_file(str(model_folder / "tokenizer.json")), embedding_dim=12)
    SentenceTransformer(modules=[static], device="cpu").save(str(tmp_path / "static"), create_model_card=False)
    encoder = SentenceTransformerEncoder(tmp_path / "static")
    assert encoder.dimension == 12
    assert encoder.token_limit == 512
    assert encoder.count_tokens(["one two", ""]) == [2, 0]
    vectors = encoder.encode_documents(["one two", "", "three"])
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-6)
