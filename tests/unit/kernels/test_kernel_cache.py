"""What numba compiled from other sources than those that are there is not used."""

import os

from prudent.kernels import drop_stale


def test_what_was_compiled_before_the_newest_source_is_dropped(tmp_path):
    cache = tmp_path / "__pycache__"
    cache.mkdir()
    files = {name: tmp_path / name for name in ("a.py", "b.py")}
    files |= {
        name: cache / name for name in ("a.f-1.py311.nbi", "a.f-1.py311.1.nbc", "b.g-2.py311.nbi", "a.cpython-311.pyc")
    }
    for age, (name, path) in enumerate(files.items()):
        path.write_text(name)
        os.utime(path, (1000 + age, 1000 + age))
    drop_stale(tmp_path)
    assert all(path.exists() for path in files.values())  # all are newer than the sources
    os.utime(files["a.py"], (1003.5, 1003.5))
    drop_stale(tmp_path)
    assert sorted(path.name for path in cache.iterdir()) == ["a.cpython-311.pyc", "b.g-2.py311.nbi"]
    drop_stale(tmp_path / "nowhere")
