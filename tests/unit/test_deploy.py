"""What deploy/ says is what the program does: the manifest, the commands, the settings, and no
secret with a default.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from jsonschema.validators import validator_for
from typer.main import get_command
from typer.testing import CliRunner

from bot.app.queue import places
from bot.app.queue.redis import queue_name
from bot.cli.app import app
from bot.kernel.settings import Settings
from handlers.pages import WHY, manifest

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"


class Loader(yaml.SafeLoader):
    """Compose's own tags are read as what they stand before."""


def _plain(loader: Loader, _suffix: str, node: yaml.Node) -> Any:
    return loader.construct_sequence(node) if isinstance(node, yaml.SequenceNode) else None


Loader.add_multi_constructor("!", _plain)
COMPOSE = yaml.load((DEPLOY / "compose.yaml").read_text(), Loader)
BWRAP = yaml.load((DEPLOY / "compose.bwrap.yaml").read_text(), Loader)
OURS = ("web", "worker-cpu", "worker-gpu")


def compose_errors(file: dict[str, Any]) -> list[str]:
    """What `docker compose config` would refuse, by the schema of Compose files."""
    text = files("check_jsonschema") / "builtin_schemas" / "vendor" / "compose-spec.json"
    schema = json.loads(text.read_text())
    return [error.json_path for error in validator_for(schema)(schema).iter_errors(file)]


@pytest.mark.parametrize("file", [COMPOSE, BWRAP], ids=["compose", "bwrap"])
def test_compose_files_are_valid(file: dict[str, Any]) -> None:
    assert compose_errors(file) == []
    wrong = {"healthchek": {}, "stop_grace_period": ["1s"]}
    services = {**file["services"], "worker-cpu": {**file["services"]["worker-cpu"], **wrong}}
    assert len(compose_errors({**file, "services": services})) >= 2


def kubernetes() -> list[dict[str, Any]]:
    return [
        part
        for file in sorted((DEPLOY / "kubernetes").glob("*.yaml"))
        for part in yaml.safe_load_all(file.read_text())
    ]


def templates() -> list[dict[str, Any]]:
    """The pods of deployments, and of the jobs that runs may be."""
    return [
        (each["spec"].get("jobTargetRef") or each["spec"])["template"]
        for each in kubernetes()
        if each["kind"] in {"Deployment", "ScaledJob"}
    ]


def pods() -> list[dict[str, Any]]:
    return [template["spec"] for template in templates()]


def parsed(words: list[str]) -> None:
    """Fail unless the command line takes these words."""
    command = get_command(app).commands[words[0]]  # type: ignore[attr-defined]
    with typer.Context(command) as context:
        command.parse_args(
            context, [re.sub(r"\$\{\w+:-(\w+)\}", r"\1", word) for word in words[1:]]
        )


def test_the_published_manifest_is_the_one_that_the_setup_page_posts() -> None:
    published = json.loads((DEPLOY / "app-manifest.json").read_text())
    assert published == manifest("Reprise", "https://reprise.example.com")
    assert {f"{what}: {level}" for what, level in published["default_permissions"].items()} <= set(
        WHY
    )


def test_every_command_is_one_that_the_program_has() -> None:
    commands = [COMPOSE["services"][name]["command"] for name in OURS]
    commands += [container["args"] for pod in pods() for container in pod["containers"]]
    commands += [
        json.loads(line)
        for line in re.findall(
            r"^CMD (\[\"(?:serve|worker).*\])$", (DEPLOY / "Dockerfile").read_text(), re.M
        )
    ]
    assert len(commands) == 8
    for command in commands:
        parsed(command)
    assert CliRunner().invoke(app, ["worker", "--queue", "tpu"]).exit_code == 2


def test_every_variable_is_a_setting() -> None:
    known = {f"REPRISE_{name.upper()}" for name in Settings.model_fields}
    own = {"REPRISE_VERSION", "REPRISE_LISTEN", "REPRISE_SLOTS"}  # of the compose file itself
    texts = [
        file.read_text() for file in DEPLOY.rglob("*") if file.is_file() and file.suffix != ".md"
    ]
    used = {each for text in texts for each in re.findall(r"\bREPRISE_[A-Z_]+[A-Z]\b", text)}
    assert used - known == own
    files = {
        name
        for each in (*COMPOSE["secrets"], *_secret_keys())
        if (name := each).startswith("reprise_")
    }
    assert {name.upper() for name in files} <= known


def _secret_keys() -> list[str]:
    return next(list(each["stringData"]) for each in kubernetes() if each["kind"] == "Secret")


def test_every_pod_has_a_policy_that_keeps_it_from_the_cluster_and_the_node() -> None:
    policies = [each["spec"] for each in kubernetes() if each["kind"] == "NetworkPolicy"]
    selected = [name for each in policies for name in _selected(each["podSelector"])]
    assert sorted(selected) == sorted(each["metadata"]["labels"]["app"] for each in templates())
    for policy in policies:
        assert set(policy["policyTypes"]) == {"Ingress", "Egress"}
        blocks = [
            to["ipBlock"] for rule in policy["egress"] for to in rule["to"] if "ipBlock" in to
        ]
        assert {"10.0.0.0/8", "169.254.0.0/16", "127.0.0.0/8"} <= set(blocks[0]["except"])
        assert [block["cidr"] for block in blocks] == ["0.0.0.0/0", "2000::/3"]
    listed = yaml.safe_load((DEPLOY / "kubernetes/kustomization.yaml").read_text())["resources"]
    made = {file.name for file in (DEPLOY / "kubernetes").glob("*.yaml")}
    optional = {"secret.example.yaml", "scaling.yaml", "jobs.yaml"}
    assert set(listed) == made - {"kustomization.yaml"} - optional


def _selected(selector: dict[str, Any]) -> list[str]:
    """The values of the label `app` that a selector takes."""
    rows = selector.get("matchExpressions", [])
    assert all((row["key"], row["operator"]) == ("app", "In") for row in rows)
    return [
        *selector.get("matchLabels", {}).values(),
        *(value for row in rows for value in row["values"]),
    ]


def test_the_scaler_counts_the_queues_that_workers_read() -> None:
    [scaler] = [each["spec"] for each in kubernetes() if each["kind"] == "ScaledObject"]
    counted = {trigger["metadata"]["listName"] for trigger in scaler["triggers"]}
    assert counted == {queue_name(lane) for lane in places("cpu", 2)}
    deployed = {each["metadata"]["name"] for each in kubernetes() if each["kind"] == "Deployment"}
    assert scaler["scaleTargetRef"]["name"] in deployed
    hosting = (DEPLOY.parent / "docs" / "hosting.md").read_text()
    assert all(f"`{queue_name(lane)}`" in hosting for lane in ("deliveries", "cpu", "gpu"))


def test_a_job_of_the_cluster_takes_one_run_of_the_queue_that_makes_it() -> None:
    [job] = [each for each in kubernetes() if each["kind"] == "ScaledJob"]
    [trigger] = job["spec"]["triggers"]
    assert trigger["metadata"]["listName"] == queue_name("gpu")
    assert "kueue.x-k8s.io/queue-name" in job["metadata"]["labels"]
    target = job["spec"]["jobTargetRef"]
    assert target["backoffLimit"] == 0
    [container] = target["template"]["spec"]["containers"]
    assert container["args"] == ["worker", "--queue", "gpu", "--once"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "1"


def test_nothing_secret_has_a_default() -> None:
    for each in kubernetes():
        assert each["kind"] != "Secret" or set(each["stringData"].values()) == {""}
    for service in COMPOSE["services"].values():
        for name, value in service.get("environment", {}).items():
            assert not re.search(r"PASSWORD$|SECRET$|KEY$|_URL$", name) or str(value).startswith(
                "${REPRISE_"
            ), name
    assert {Path(each["file"]).parent.name for each in COMPOSE["secrets"].values()} == {"secrets"}


@pytest.mark.parametrize("name", OURS)
def test_our_containers_can_write_nothing_but_their_volumes(name: str) -> None:
    service = COMPOSE["services"][name]
    assert service["read_only"] is True
    assert service["cap_drop"] == ["ALL"]
    assert "no-new-privileges:true" in service["security_opt"]
    assert not service.get("privileged")
    assert service["restart"] == "unless-stopped"


def test_the_web_has_no_docker_socket_and_the_workers_only_read_the_key() -> None:
    assert "docker.sock" not in str(COMPOSE["services"]["web"])
    for name in OURS[1:]:
        assert "state:/var/lib/reprise:ro" in COMPOSE["services"][name]["volumes"]
        assert "docker.sock" not in str(BWRAP["services"][name])
        assert BWRAP["services"][name]["environment"]["REPRISE_SANDBOX"] == "bwrap"
    assert COMPOSE["networks"]["back"] == {"internal": True}
    for name in ("redis", "postgres"):
        assert COMPOSE["services"][name]["networks"] == ["back"]
        assert "ports" not in COMPOSE["services"][name]
        assert COMPOSE["services"][name]["healthcheck"]


def test_pods_run_without_root_and_without_a_service_account() -> None:
    assert len(pods()) == 3
    for pod in pods():
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"]["allowPrivilegeEscalation"] is False
            assert container["securityContext"]["readOnlyRootFilesystem"] is True


def test_the_image_runs_as_nobody_in_particular_and_never_imports_from_where_it_stands() -> None:
    text = (DEPLOY / "Dockerfile").read_text()
    stages = re.split(r"^FROM ", text, flags=re.M)[1:]
    assert [re.findall(r"^USER (\S+)", stage, re.M)[-1:] for stage in stages[1:]] == [
        ["10001:10001"],
        ["10001:10001"],
        [],
    ]
    assert "PYTHONSAFEPATH=1" in text
    assert 'ENTRYPOINT ["/usr/bin/tini", "--", "reprise"]' in text
    assert "HEALTHCHECK" in stages[-1]


def test_passwords_are_made_once_and_lie_in_a_closed_folder(tmp_path: Path) -> None:
    shutil.copy(DEPLOY / "secrets.sh", tmp_path)
    made, seen = tmp_path / "secrets", []
    for _ in range(2):
        subprocess.run(
            ["sh", str(tmp_path / "secrets.sh")],
            check=True,
            capture_output=True,
            env={"PATH": os.environ["PATH"]},
        )
        kept = {path.name: path.read_text() for path in made.iterdir()}
        assert set(kept) == {Path(each["file"]).name for each in COMPOSE["secrets"].values()}
        password = kept["postgres_password"]
        assert re.fullmatch(r"[0-9a-f]{48}", password)
        assert (
            kept["reprise_database_url"]
            == f"postgresql+psycopg://reprise:{password}@postgres/reprise"
        )
        redis = re.search(r"^requirepass ([0-9a-f]{48})$", kept["redis.conf"], re.M)
        assert redis is not None
        assert kept["reprise_redis_url"] == f"redis://default:{redis[1]}@redis:6379/0"
        assert redis[1] != password
        seen.append(kept)
    assert seen[0] == seen[1]
    assert stat.S_IMODE(made.stat().st_mode) == 0o700
    assert sorted(path.name for path in tmp_path.iterdir()) == ["secrets", "secrets.sh"]


PROFILE = DEPLOY / "worker-seccomp.json"
CALLS = """
import ctypes, socket
libc = ctypes.CDLL(None, use_errno=True)
def call(number):
    ctypes.set_errno(0)
    libc.syscall(number, 0, 0, 0, 0, 0)
    return ctypes.get_errno()
print(call(250), call(425), call(321))
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
except OSError as error:
    print(error.errno)
print(libc.unshare(0x10000000))
"""


def test_no_container_runs_without_a_system_call_filter() -> None:
    for pod in pods():
        assert pod["securityContext"]["seccompProfile"]["type"] in {"RuntimeDefault", "Localhost"}
    overlay = (DEPLOY / "compose.bwrap.yaml").read_text()
    assert "seccomp=unconfined" not in overlay
    assert f"seccomp={PROFILE.relative_to(DEPLOY)}" in overlay
    profile = json.loads(PROFILE.read_text())
    refused = {name for rule in profile["syscalls"] for name in rule["names"]}
    assert {"bpf", "keyctl", "io_uring_setup", "ptrace", "kexec_load", "socket"} <= refused
    assert not refused & {"unshare", "clone", "mount", "pivot_root", "setns", "umount2"}


def test_images_of_others_are_pinned_by_digest() -> None:
    dockerfiles = [path.read_text() for path in DEPLOY.rglob("Dockerfile")]
    lines = "\n".join([*dockerfiles, (DEPLOY / "compose.yaml").read_text()])
    named = re.findall(r"^(?:FROM|ARG \w+_IMAGE=|\s+image:) ?(\S+)", lines, re.M)
    foreign = [name for name in named if not name.startswith(("reprise", "base", "${"))]
    assert len(foreign) == 4
    assert all(re.fullmatch(r"[\w.-]+:[\w.-]+@sha256:[0-9a-f]{64}", name) for name in foreign)


@pytest.mark.docker
@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the numbers are those of x86-64")
def test_the_workers_filter_allows_namespaces_and_refuses_the_rest() -> None:
    names = ["docker", "image", "ls", "--format", "{{.Repository}}:{{.Tag}}", "reprise-base"]
    image = subprocess.run(names, capture_output=True, text=True, check=True).stdout.split()[0]
    options = ("--rm", "--network=none", "--user=65534", f"--security-opt=seccomp={PROFILE}")
    done = subprocess.run(
        ["docker", "run", *options, image, "python3.13", "-c", CALLS],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stdout.split("\n")[:3] == ["1 1 1", "97", "0"], done
