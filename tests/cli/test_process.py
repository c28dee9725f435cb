"""`memlab` as a process of its own: streams, signals, what it imports."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from memlab import HashingEncoder, MemoryStore

ROOT = Path(__file__).parents[2]
MEMLAB = [sys.executable, "-m", "memlab.cli"]


def environment(**changes):
    env = {**os.environ, "PYTHONPATH": str(ROOT), **changes}
    env.pop("MEMLAB_DB", None)
    return env


def memlab(*arguments, env=None, **options):
    return subprocess.run(
        [*MEMLAB, *map(str, arguments)], capture_output=True, env=env or environment(), timeout=120, **options
    )


@pytest.fixture
def db(tmp_path):
    path = tmp_path / "memory.db"
    with MemoryStore(path, HashingEncoder()) as store:
        store.remember_many([f"note {i} café 漢字 " + "word " * 80 for i in range(300)])
    return path


def test_help_loads_nothing_heavy():
    code = (
        "import sys; from memlab.cli import main; code = main(['--help'])\n"
        "heavy = {'numpy', 'pandas', 'rich', 'torch', 'sqlite_utils', 'platformdirs'} & set(sys.modules)\n"
        "sys.exit(code or str(sorted(heavy)) if heavy else 0)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), timeout=60)
    assert result.returncode == 0, result.stderr
    assert b"remember" in result.stdout


def test_doctor_and_keyword_recall_load_no_torch(db):
    for arguments in (["doctor", "--json"], ["recall", "note", "--keyword-only"], ["stats"]):
        code = (
            f"import sys; from memlab.cli import main; code = main(['--db', {str(db)!r}, *{arguments!r}])\n"
            "sys.exit('torch was loaded' if 'torch' in sys.modules else code)"
        )
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, env=environment(), timeout=60)
        assert result.returncode == 0, result.stderr


def test_output_is_utf8_whatever_the_locale(db):
    env = environment(PYTHONIOENCODING="ascii", LC_ALL="C", PYTHONUTF8="0")
    result = memlab("--db", db, "list", "--limit", 2, env=env)
    assert result.returncode == 0
    assert "café 漢字" in result.stdout.decode("utf-8")


def test_errors_have_no_traceback(tmp_path):
    result = memlab("--db", tmp_path / "no.db", "list")
    assert result.returncode == 1
    assert result.stdout == b""
    assert result.stderr.startswith(b"memlab: ")
    assert b"Traceback" not in result.stderr
    shown = memlab("--db", tmp_path / "no.db", "list", env=environment(MEMLAB_DEBUG="1"))
    assert b"Traceback" in shown.stderr
    assert memlab("recall").returncode == 2


@pytest.mark.skipif(os.name == "nt", reason="POSIX pipes")
def test_a_closed_pipe_is_quiet(db):
    reading, writing = os.pipe()
    os.close(reading)
    for arguments in (["export", "-"], ["list", "--limit", "300", "--json"], ["list"]):
        result = subprocess.run(
            [*MEMLAB, "--db", str(db), *arguments],
            stdout=writing,
            stderr=subprocess.PIPE,
            env=environment(),
            timeout=60,
        )
        assert result.returncode == 141, arguments
        assert b"Traceback" not in result.stderr
        assert b"BrokenPipe" not in result.stderr
    os.close(writing)


@pytest.mark.skipif(os.name == "nt", reason="POSIX signals")
def test_ctrl_c_is_quiet(db):
    # It waits for its input; nothing else would be sure to be interrupted at the same place.
    process = subprocess.Popen(
        [*MEMLAB, "--db", str(db), "import", "-"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        # Who runs the tests in the background of a shell has SIGINT ignored, and children inherit that.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    assert process.stdin is not None
    process.stdin.write(b"".join(json.dumps({"content": f"n {i}"}).encode() + b"\n" for i in range(256)))
    process.stdin.flush()
    with MemoryStore(db, read_only=True) as store:
        for _ in range(600):
            if len(store) > 300:
                break
            try:
                process.wait(0.1)
            except subprocess.TimeoutExpired:
                continue
            break
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 130, err
        assert (out, err) == (b"", b"")
        assert len(store) == 556
        assert store.check().ok


def test_stdin_to_stdout(db, tmp_path):
    exported = memlab("--db", db, "export", "-").stdout
    other = tmp_path / "other.db"
    assert memlab("--db", other, "import", "-", "--encoder", "hashing", input=exported).returncode == 0
    assert memlab("--db", other, "export", "-").stdout == exported
