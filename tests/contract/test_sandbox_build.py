"""A build from source sees nothing of this host but what lies in the cache, where a container's
daemon finds it too.
"""

import shutil
from pathlib import Path
from threading import Thread

from sandbox import build
from sandbox.build import BuildSource, wheel
from sandbox.indexes import Indexes
from sandbox.interpreters import Snapshot
from tests.support.sandbox import FakeSandbox, Save


def test_what_a_build_needs_is_mounted_from_the_cache(tmp_path):
    cache, certificate = tmp_path / "cache", tmp_path / "etc" / "company.pem"
    for folder in (cache / "wheels", certificate.parent):
        folder.mkdir(parents=True)
    certificate.write_text("-- of the company --")
    python = Snapshot(cache / "pythons/x", cache / "pythons/x/bin/python3.11", "3.11.9", "3.11")
    seen = []

    def program(spec):
        seen.append(spec)
        return [Save("out/alpha-1.0-py3-none-any.whl", b"zip")]

    python.root.mkdir(parents=True)
    made = wheel(
        BuildSource(b""),
        python,
        FakeSandbox(program),
        Indexes(certificate=str(certificate)),
        cache / "wheels",
    )
    assert made.read_bytes() == b"zip"
    (spec,) = seen
    assert [mount.source for mount in spec.mounts if not mount.source.is_relative_to(cache)] == []
    assert Path(spec.env["SSL_CERT_FILE"]).read_text() == "-- of the company --"
    assert Path(spec.env["SSL_CERT_FILE"]) in {mount.source for mount in spec.mounts}


def test_two_builders_at_once_do_not_write_to_one_file(tmp_path, monkeypatch):
    """The second one copies the same file, and is done with it, while the first one is in the
    middle.
    """
    source, tools, copy = tmp_path / "tool", tmp_path / "tools", shutil.copyfile
    source.write_bytes(b"first half, second half")
    others = []

    def slow(here, there):
        if others:
            return copy(here, there)
        others.append(Thread(target=build._copied, args=(source, tools, "tool")))
        with there.open("wb") as file:
            file.write(b"first half")
            file.flush()
            others[0].start()
            others[0].join()
            file.write(b", second half")
        return there

    monkeypatch.setattr(shutil, "copyfile", slow)
    kept = build._copied(source, tools, "tool")
    assert kept.read_bytes() == source.read_bytes()
    assert kept.stat().st_mode & 0o777 == 0o755
    assert list(tools.iterdir()) == [kept]
