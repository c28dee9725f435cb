"""The fast path of MiniLM gives the vectors of sentence-transformers, and never wrong ones."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from memlab.encoders import MiniLM, PassageSplitter, SentenceTransformerEncoder, onnx_model, stamp
from memlab.encoders.bert_graph import BertShape, build_graph, why_not_bert
from memlab.encoders.graphs import find_graph, graph_path, open_graph, prepare_graph
from memlab.encoders.reference_vectors import CHECK_TEXTS, agrees, reference_vectors
from memlab.encoders.threads import usable_cores
from memlab.encoders.weights import ModelFolder
from memlab.errors import EncoderUnavailable, InvalidValue

pytestmark = pytest.mark.model

ODD = [
    "",
    " \t\n",
    "\x00",
    "lone \ud800 surrogate and \x00 NUL",
    "\U0001f469\u200d\U0001f467\U0001f642",
    "cafe\u0301 a\u0308\u0323\u0302 \u202e abc",
    "数据库连接池耗尽了。" * 30,
    "データベース接続 데이터베이스 연결",
    "संदेश त्रुटि ข้อความ كيف نعيد المحاولة עברית",
    "[SEP] [CLS] [PAD] [MASK] [UNK]",
    "def f(x):\n    return x ** 2\n" * 20,
    "https://example.com/a.png?q=1&r=%20#frag",
    "a" * 3000,
    "word " * 1000,
]


# --- the vectors ------------------------------------------------------------------------------------------------------


def test_odd_texts_as_the_reference_has_them(fast, minilm):
    np.testing.assert_allclose(fast.encode_documents(ODD), minilm.encode_documents(ODD), atol=5e-6)
    for text in ODD:
        np.testing.assert_allclose(fast.encode_queries([text]), minilm.encode_queries([text]), atol=5e-6)


def test_texts_of_every_length_as_the_reference_has_them(fast, minilm):
    words = ["the", "pool", "waits", "for", "a", "lock", "that", "数", "é", "nobody", "frees", "ERR-7", "again"]
    texts = [
        " ".join(words[place % len(words)] for place in range(start, start + size))
        for start, size in ((size % 7, size) for size in (*range(1, 40), *range(40, 270, 11), 300))
    ]
    counts = minilm.count_tokens(texts)
    assert min(counts) == 3
    assert max(counts) > 256
    np.testing.assert_allclose(fast.encode_documents(texts), minilm.encode_documents(texts), atol=5e-6)


def test_the_limit_is_256_tokens(fast):
    """Each x is one token, and [CLS] is the first: tokenizer.json alone would cut at 128."""

    def marked(place, word):
        return " ".join([*["x"] * place, word, *["x"] * (320 - place)])

    last = fast.encode_documents([marked(253, "tiger"), marked(253, "apple")])
    assert float(last[0] @ last[1]) < 0.99999
    beyond = fast.encode_documents([marked(254, "tiger"), marked(254, "apple")])
    np.testing.assert_array_equal(beyond[0], beyond[1])


def test_another_limit_is_used(prepared, minilm):
    short, slow = MiniLM(token_limit=4, backend="onnx"), MiniLM(token_limit=4, backend="torch")
    texts = ["one two three", "one two four", "one three two"]
    vectors = short.encode_documents(texts)
    np.testing.assert_allclose(vectors, slow.encode_documents(texts), atol=5e-6)
    np.testing.assert_array_equal(vectors[0], vectors[1])
    with pytest.raises(InvalidValue, match="at most 512 tokens, found 513"):
        MiniLM(token_limit=513, backend="onnx").encode_documents(["x"])


def test_order_and_batches_do_not_matter(fast):
    texts = [f"note {number}: " + "retry " * (number * 37 % 90) for number in range(70)]
    together = fast.encode_documents(texts)
    assert together.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    np.testing.assert_allclose(fast.encode_documents(texts[::-1])[::-1], together, atol=2e-6)
    for number in range(0, 70, 9):
        np.testing.assert_allclose(fast.encode_documents([texts[number]])[0], together[number], atol=2e-6)


def test_batches_hold_every_text_once_and_stay_small():
    lengths = np.random.default_rng(5).integers(2, 257, 200)
    batches = list(onnx_model._batches(lengths))
    assert sorted(np.concatenate(batches).tolist()) == list(range(200))
    sizes = [(len(batch), int(lengths[batch].max())) for batch in batches]
    assert all(count <= 8 and (count == 1 or count * longest <= 2048) for count, longest in sizes)
    assert [longest for _, longest in sizes] == sorted((longest for _, longest in sizes), reverse=True)


def test_no_texts_and_wrong_ones(fast):
    assert fast.encode_documents([]).shape == (0, 384)
    with pytest.raises(InvalidValue, match="put it into a list"):
        fast.encode_documents("one text")
    with pytest.raises(InvalidValue, match="NoneType at place 1"):
        fast.encode_queries(["a", None])


def test_stores_are_interchangeable(fast, minilm):
    assert stamp(fast) == stamp(minilm)
    assert (fast.engine, minilm.engine) == ("onnx", "torch: asked for")
    text = "some words 数据. " * 300
    assert fast.count_tokens(ODD) == minilm.count_tokens(ODD)
    assert PassageSplitter().split(text, fast) == PassageSplitter().split(text, minilm)


def test_the_kept_reference_is_the_references_own(minilm):
    np.testing.assert_allclose(minilm.encode_documents(CHECK_TEXTS), reference_vectors(), atol=5e-6)


def test_a_difference_is_a_difference():
    expected = reference_vectors()
    assert agrees([expected, expected + 1e-6], expected)[0]
    other = expected.copy()
    other[3, 7] += 1e-4
    assert not agrees([expected, other], expected)[0]
    assert not agrees([np.full_like(expected, np.nan)], expected)[0]
    assert not agrees([expected[:, :3]], expected)[0]


# --- processes, threads -----------------------------------------------------------------------------------------------


def test_torch_is_not_loaded(prepared):
    code = """
import sys
from memlab.encoders import MiniLM
encoder = MiniLM()
assert encoder.encode_queries(["x"]).shape == (1, 384)
assert encoder.encode_documents(["x", "y " * 400]).shape == (2, 384)
assert encoder.engine == "onnx"
heavy = {"torch", "transformers", "sentence_transformers", "huggingface_hub", "onnx", "safetensors", "pandas"}
assert not heavy & set(sys.modules), heavy & set(sys.modules)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stderr
    assert (run.stdout, run.stderr) == ("", "")


def test_threads_agree(fast):
    texts = [f"text number {number} " * (number % 7 + 1) for number in range(20)]
    expected = fast.encode_documents(texts)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: fast.encode_documents(texts), range(16)))
    for result in results:
        np.testing.assert_allclose(result, expected, atol=1e-6)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_encodes(fast, prepared):
    expected = fast.encode_queries(["after the fork"])
    context = multiprocessing.get_context("fork")
    receiver, sender = context.Pipe(duplex=False)
    child = context.Process(target=lambda: sender.send(fast.encode_queries(["after the fork"])))
    child.start()
    assert receiver.poll(60), "the child hangs"
    np.testing.assert_array_equal(receiver.recv(), expected)
    child.join()
    np.testing.assert_array_equal(fast.encode_queries(["after the fork"]), expected)


def test_cores_are_counted_once_and_limits_hold(tmp_path, monkeypatch):
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2, 3}, raising=False)
    for cpu, siblings in enumerate(("0,2", "1,3", "0,2", "1,3")):
        (tmp_path / f"cpu{cpu}" / "topology").mkdir(parents=True)
        (tmp_path / f"cpu{cpu}" / "topology" / "thread_siblings_list").write_text(f"{siblings}\n")
    quota = tmp_path / "cpu.max"
    assert usable_cores(tmp_path, quota) == 2
    assert usable_cores(tmp_path / "absent", quota) == 4
    quota.write_text("max 100000\n")
    assert usable_cores(tmp_path, quota) == 2
    quota.write_text("50000 100000\n")
    assert usable_cores(tmp_path, quota) == 1
    quota.write_text("nonsense")
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert usable_cores(tmp_path / "absent", quota) == 3
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {5}, raising=False)
    assert usable_cores(tmp_path, quota) == 1


# --- choosing, and what can be wrong with a graph ---------------------------------------------------------------------


@pytest.fixture
def copied(fast, fast_cache, tmp_path, monkeypatch):
    """A cache folder with a copy of the graph; tells where it is."""
    monkeypatch.setenv("MEMLAB_CACHE", str(tmp_path / "cache"))
    shutil.copytree(fast_cache / "graphs", tmp_path / "cache" / "graphs")
    return graph_path(fast.folder)


@pytest.fixture
def empty(tmp_path, monkeypatch):
    """An empty cache folder."""
    monkeypatch.setenv("MEMLAB_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def without_torch(monkeypatch, encoder):
    """Have the slower path answer at once with a mark, and tell which path answered."""
    monkeypatch.setattr(SentenceTransformerEncoder, "_encode", lambda *arguments: "torch")
    answer = encoder.encode_queries(["x"])
    return "torch" if isinstance(answer, str) else "onnx"


def test_auto_takes_the_graph_if_it_is_whole(copied, monkeypatch):
    encoder = MiniLM()
    assert encoder.engine == "onnx"
    assert not encoder.loaded
    assert without_torch(monkeypatch, encoder) == "onnx"
    assert encoder.loaded


def flip(path):
    numbers = path.with_suffix(".weights")
    content = bytearray(numbers.read_bytes())
    content[len(content) // 2] ^= 1
    numbers.write_bytes(content)


def flip_graph(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def halve(path):
    numbers = path.with_suffix(".weights")
    numbers.write_bytes(numbers.read_bytes()[: numbers.stat().st_size // 2])


def lose_numbers(path):
    path.with_suffix(".weights").unlink()


def lose_record(path):
    path.with_suffix(".json").unlink()


def spoil_record(path):
    path.with_suffix(".json").write_text("[]")


@pytest.mark.parametrize("spoil", [flip, flip_graph, halve, lose_numbers, lose_record, spoil_record])
def test_a_damaged_graph_is_noticed_and_made_anew(copied, monkeypatch, spoil):
    spoil(copied)
    encoder = MiniLM()
    assert encoder.engine.startswith("torch: the ")
    assert "memlab prepare" in encoder.engine
    assert str(copied) in encoder.engine
    with pytest.raises(EncoderUnavailable, match="not used; `memlab prepare` makes"):
        MiniLM(backend="onnx").encode_queries(["x"])
    with monkeypatch.context() as patch:
        assert without_torch(patch, encoder) == "torch"
    done = encoder.prepare()
    assert done.made
    assert done.difference < 5e-6
    assert MiniLM().engine == "onnx"


def test_without_a_graph_torch_computes_and_says_why(empty, monkeypatch):
    encoder = MiniLM()
    assert encoder.engine == "torch: no graph yet; `memlab prepare` makes one in a few seconds"
    assert without_torch(monkeypatch, encoder) == "torch"
    assert encoder.engine == "torch: no graph yet; `memlab prepare` makes one in a few seconds"
    with pytest.raises(EncoderUnavailable, match="no graph yet"):
        MiniLM(backend="onnx").encode_queries(["x"])
    with pytest.raises(InvalidValue, match="expected one of auto, onnx, torch; found 'tensorflow'"):
        MiniLM(backend="tensorflow")  # type: ignore[arg-type]


def test_a_missing_onnxruntime_is_no_obstacle(copied, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    monkeypatch.setattr("memlab.encoders.graphs.find_spec", lambda name: None)
    encoder = MiniLM()
    assert "python -m pip install onnxruntime" in encoder.engine
    with pytest.raises(EncoderUnavailable, match="python -m pip install onnxruntime"):
        MiniLM(backend="onnx").encode_queries(["x"])
    assert without_torch(monkeypatch, encoder) == "torch"


def test_another_device_is_torchs(copied):
    assert MiniLM(device="cuda").engine == "torch: asked for"


# --- making the graph -------------------------------------------------------------------------------------------------


def test_preparing_twice_does_it_once(copied):
    before = copied.stat().st_mtime_ns
    assert not MiniLM().prepare().made
    assert copied.stat().st_mtime_ns == before
    lines: list[str] = []
    former = copied.with_name(f"{copied.stem.rpartition('-')[0]}-0.onnx")
    former.touch()
    assert MiniLM().prepare(force=True, say=lines.append).made
    assert copied.stat().st_mtime_ns > before
    assert len(lines) == 3
    assert sorted(path.suffix for path in copied.parent.iterdir()) == [".json", ".onnx", ".weights"]


def test_a_graph_that_computes_something_else_is_not_kept(empty, monkeypatch, fast):
    wrong = BertShape(layers=5, heads=12, width=384, epsilon=1e-12)
    monkeypatch.setattr(
        "memlab.encoders.graphs.build_graph", lambda weights, shape, beside: build_graph(weights, wrong, beside)
    )
    with pytest.raises(EncoderUnavailable, match="vectors differ from the reference by"):
        prepare_graph(fast.folder)
    assert list((empty / "graphs").iterdir()) == []


def test_weights_that_are_not_the_ones_named_are_refused(empty, fast):
    other = ModelFolder(fast.folder.path, "path", "sha256:" + "0" * 64)
    with pytest.raises(EncoderUnavailable, match="were they changed meanwhile"):
        prepare_graph(other)


def test_a_cache_folder_that_cannot_be_written(tmp_path, monkeypatch, fast):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("MEMLAB_CACHE", str(tmp_path / "file"))
    with pytest.raises(EncoderUnavailable, match=r"cannot be written there .*MEMLAB_CACHE\. Until then"):
        MiniLM().prepare()
    error = MiniLM().try_to_prepare()
    assert isinstance(error, EncoderUnavailable)
    assert MiniLM().engine.startswith("torch: no graph yet")


def test_a_full_disk(empty, monkeypatch):
    usage = shutil.disk_usage(Path(__file__).parent)
    monkeypatch.setattr("memlab.encoders.graphs.shutil.disk_usage", lambda _: usage._replace(free=5_000_000))
    with pytest.raises(EncoderUnavailable, match=r"5 MB are free, 18\d MB are needed"):
        MiniLM().prepare()
    assert list((empty / "graphs").iterdir()) == []


def test_a_missing_onnx_package_says_how_to_install_it(empty, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(EncoderUnavailable, match=r"install it with: python -m pip install onnx$"):
        MiniLM().prepare()


def test_other_weights_of_the_same_kind_are_compared_with_torch(empty, tmp_path, model_folder):
    """A small BERT with random weights, mean pooling and no limit of its own worth speaking of."""
    import torch
    from transformers import BertConfig, BertModel

    torch.manual_seed(3)
    folder = tmp_path / "small"
    shutil.copytree(model_folder, folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json", "*.md"))
    sizes = {"hidden_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    BertModel(BertConfig(**sizes, initializer_range=0.3)).save_pretrained(folder)
    shutil.copy(model_folder / "1_Pooling" / "config.json", folder / "1_Pooling" / "config.json")
    pooling = json.loads((folder / "1_Pooling" / "config.json").read_text())
    (folder / "1_Pooling" / "config.json").write_text(json.dumps(pooling | {"word_embedding_dimension": 48}))
    encoder = MiniLM(folder)
    assert encoder.prepare().difference < 5e-6
    assert encoder.engine == "onnx"
    np.testing.assert_allclose(
        encoder.encode_documents(ODD), MiniLM(folder, backend="torch").encode_documents(ODD), atol=5e-6
    )
    assert MiniLM().engine.startswith("torch: no graph yet")


def test_other_architectures_stay_with_torch(empty, tiny_folder):
    encoder = MiniLM(tiny_folder)
    assert "no graph can be made of it: its modules are" in encoder.engine
    with pytest.raises(EncoderUnavailable, match="it goes through torch"):
        encoder.prepare()
    assert encoder.encode_documents(["x"]).shape == (1, 24)


@pytest.mark.parametrize(
    ("file", "change", "why"),
    [
        ("config.json", {"hidden_act": "relu"}, "hidden_act is 'relu'"),
        ("config.json", {"model_type": "mpnet"}, "model_type is 'mpnet'"),
        ("config.json", {"position_embedding_type": "relative_key"}, "position_embedding_type"),
        ("1_Pooling/config.json", {"pooling_mode_cls_token": True}, "pooling is not the mean"),
        ("sentence_bert_config.json", {"do_lower_case": True}, "lower-cases"),
    ],
)
def test_what_the_graph_does_not_do_is_noticed(linked, model_folder, file, change, why):
    folder = linked(model_folder)
    assert why_not_bert(folder) == ""
    settings = json.loads((folder / file).read_text())
    (folder / file).unlink()
    (folder / file).write_text(json.dumps(settings | change))
    assert why in why_not_bert(folder)


# --- a graph that others made -----------------------------------------------------------------------------------------


@pytest.fixture
def snapshot(bare, empty, linked, model_folder):
    """The Hugging Face cache with the original weights."""
    place = bare / "hf" / "hub" / "models--sentence-transformers--all-MiniLM-L6-v2" / "snapshots" / "abc"
    place.parent.mkdir(parents=True)
    linked(model_folder).rename(place)
    (place / "onnx").mkdir()
    return place


def test_a_graph_of_the_hugging_face_cache_serves_after_a_check(snapshot, fast, fast_cache):
    copy_graph(fast_cache, snapshot / "onnx" / "model.onnx")
    encoder = MiniLM()
    assert encoder.engine == "onnx"
    assert not find_graph(encoder.folder).own
    np.testing.assert_allclose(encoder.encode_documents(ODD), fast.encode_documents(ODD), atol=1e-6)


def test_a_graph_that_ends_with_the_tokens(snapshot, fast, fast_cache):
    """What exporters write: an input for token types, and vectors of tokens that have yet to be averaged."""
    onnx = pytest.importorskip("onnx")
    model = onnx.load(graph_of(fast_cache))
    last = next(node.output[0] for node in reversed(model.graph.node) if node.op_type == "SkipLayerNormalization")
    helper = onnx.helper
    del model.graph.output[:]
    model.graph.node.append(helper.make_node("Identity", [last], ["last_hidden_state"]))
    shape = ["batch", "sequence", 384]
    model.graph.output.append(helper.make_tensor_value_info("last_hidden_state", onnx.TensorProto.FLOAT, shape))
    model.graph.input.append(helper.make_tensor_value_info("token_type_ids", onnx.TensorProto.INT64, shape[:2]))
    onnx.save(model, snapshot / "onnx" / "model.onnx")
    encoder = MiniLM(backend="onnx")
    np.testing.assert_allclose(encoder.encode_documents(ODD), fast.encode_documents(ODD), atol=2e-6)


def test_a_wrong_graph_of_the_hugging_face_cache_is_not_used(snapshot, fast_cache, monkeypatch):
    onnx = pytest.importorskip("onnx")
    model = onnx.load(graph_of(fast_cache))
    bias = next(item for item in model.graph.initializer if item.name == "encoder.layer.3.output.dense.bias")
    values = onnx.numpy_helper.to_array(bias).copy()
    values[5] += 0.5
    bias.CopyFrom(onnx.numpy_helper.from_array(values, bias.name))
    onnx.save(model, snapshot / "onnx" / "model.onnx")
    with pytest.raises(EncoderUnavailable, match="differ from the reference"):
        MiniLM(backend="onnx").encode_queries(["x"])
    encoder = MiniLM()
    with monkeypatch.context() as patch:
        assert without_torch(patch, encoder) == "torch"
    assert "differ from the reference" in encoder.engine
    (snapshot / "onnx" / "model.onnx").write_bytes(b"no graph at all")
    with pytest.raises(EncoderUnavailable, match="cannot be loaded by ONNX Runtime"):
        open_graph(encoder.folder, find_graph(encoder.folder), 256)


def graph_of(cache):
    return next((cache / "graphs").glob("*.onnx"))


def copy_graph(cache, target):
    """As others write it: one file, or with another name for the numbers beside it."""
    import onnx

    onnx.save(onnx.load(graph_of(cache)), target)
