"""The chaos benchmark: a program that is kept down, a socket that is cut, and how outcomes are
judged and shown.
"""

from __future__ import annotations

import io
import os
import socket
import time
from contextlib import contextmanager
from itertools import pairwise
from threading import Thread

import pytest
from rich.console import Console

from benchmarks.chaos.docker_socket import DockerSocket
from benchmarks.chaos.faults import FAULTS
from benchmarks.chaos.measure import ChaosOutcome, _warnings, chaos_table
from benchmarks.supervised import Supervised
from bot.kernel.settings import host


def until(holds, seconds=10.0):
    ends = time.monotonic() + seconds
    while not holds() and time.monotonic() < ends:
        time.sleep(0.02)
    return holds()


def test_a_program_stays_down_for_the_block_and_is_started_again_after_it(tmp_path):
    with Supervised({"sleeper": ["sleep", "60"]}, host(), tmp_path) as programs:
        pid = programs.pid("sleeper")
        with programs.down("sleeper"):
            time.sleep(0.7)
            assert programs.starts == {"sleeper": 1}
        assert until(lambda: programs.starts == {"sleeper": 2})
        assert programs.pid("sleeper") != pid
        os.kill(programs.pid("sleeper"), 0)


@pytest.fixture
def daemon(tmp_path):
    """Answers each line with itself."""
    path = tmp_path / "daemon.sock"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(path))
        server.listen()

        def echo(one):
            with one:
                while data := one.recv(100):
                    one.sendall(data)

        def serve():
            try:
                while True:
                    Thread(target=echo, args=(server.accept()[0],), daemon=True).start()
            except OSError:
                pass

        Thread(target=serve, daemon=True).start()
        yield path
        server.shutdown(socket.SHUT_RDWR)


@contextmanager
def connected(path):
    with socket.socket(socket.AF_UNIX) as one:
        one.settimeout(5)
        one.connect(str(path))
        yield one


def test_a_shut_socket_cuts_what_is_open_refuses_more_and_opens_again(tmp_path, daemon):
    door = DockerSocket(tmp_path / "door.sock", daemon)
    with connected(door.path) as before:
        before.sendall(b"one")
        assert before.recv(100) == b"one"
        with door.shut():
            assert before.recv(100) == b""
            with pytest.raises(OSError, match="No such file"), connected(door.path):
                pass
    with connected(door.path) as after:
        after.sendall(b"two")
        assert after.recv(100) == b"two"
    door.close()


def outcome(**changes):
    plain = {
        "fault": "redis", "what": "Redis is killed", "reports": 8, "right": 8, "lost": 0, "doubled": 0, "failed": 0,
        "silent": 0, "refused": 0, "takes": 8, "median_s": 12.0, "max_s": 30.0, "seen": ("Redis does not answer (4 times)",),
    }  # fmt: skip
    return ChaosOutcome.model_validate(plain | changes)


@pytest.mark.parametrize("wrong", [{"right": 7}, {"lost": 1}, {"doubled": 1}, {"failed": 1}])
def test_an_outcome_is_good_when_every_report_ended_well_and_once(wrong):
    assert outcome().good
    assert not outcome(**wrong).good


def test_warnings_of_a_log_are_counted_without_their_ids_and_numbers():
    log = (
        '{"level": "warning", "message": "run 0123456789abcdef0123: no answer after 1.5 s"}\n'
        "not an object\n"
        '{"level": "info", "message": "task taken"}\n'
        '{"level": "error", "message": "run fedcba98765432100123: no answer after 20 s"}\n'
    )
    assert list(_warnings(log)) == ["run …: no answer after … s"] * 2


def test_the_table_says_what_was_seen_and_what_people_saw():
    text = io.StringIO()
    Console(file=text, width=160).print(chaos_table([outcome(refused=3, silent=1, right=7)]))
    for words in (
        "Redis is killed",
        "3 of 8 deliveries refused",
        "(4 times)",
        "7 of 8 right, 1 without",
    ):
        assert words in text.getvalue()


def test_faults_that_share_an_app_stand_together():
    apps = [(fault.sandbox, fault.dead_model) for fault in FAULTS]
    changes = sum(one != other for one, other in pairwise(apps))
    assert changes == len(set(apps)) - 1
    assert len({fault.name for fault in FAULTS}) == len(FAULTS)
