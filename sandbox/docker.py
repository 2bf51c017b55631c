"""Docker: one hardened container a run, whose first process is our guard and whose life hangs on
this process's connection.
"""

import json
import socket
import time
import weakref
from contextlib import suppress
from functools import cache
from threading import Event
from typing import Any

import docker
import requests
from docker import DockerClient
from docker.types import DeviceRequest, LogConfig, Mount
from typing_extensions import override

from sandbox import bwrap, guard_client, janitor, port
from sandbox.port import (
    Health,
    OnOutput,
    RunResult,
    RunSpec,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    Workspace,
    WorkspaceSpec,
)
from sandbox.workspace import RunnerWorkspace, run_once

# The seccomp profile of a container: the system calls that a program and its libraries need for
# their own work, sockets of a few families, and nothing else.
#
# Against the daemon's own profile it leaves out io_uring, tracing and reading of other processes,
# 32-bit calls, and every socket family that reaches for the host or rarely used parts of the
# kernel (vsock, packet, crypto, bluetooth, ...).

_FILES = """
access chdir chmod chown close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2
fadvise64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchownat fcntl fdatasync fgetxattr
flistxattr flock fremovexattr fsetxattr fstat fstatfs fsync ftruncate futimesat getcwd getdents
getdents64 getxattr inotify_add_watch inotify_init inotify_init1 inotify_rm_watch ioctl lchown
lgetxattr link linkat listxattr llistxattr lremovexattr lseek lsetxattr lstat mkdir mkdirat
newfstatat open openat openat2 pread64 preadv preadv2 pwrite64 pwritev pwritev2 read readahead
readlink readlinkat readv removexattr rename renameat renameat2 rmdir sendfile setxattr splice stat
statfs statx symlink symlinkat sync sync_file_range syncfs tee truncate umask unlink unlinkat utime
utimensat utimes vmsplice write writev cachestat mknod mknodat
"""
_MEMORY = """
brk madvise membarrier memfd_create mincore mlock mlock2 mlockall mmap mprotect mremap mseal msync
munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect shmat shmctl shmdt shmget
map_shadow_stack
"""
_PROCESSES = """
alarm arch_prctl capget capset execve execveat exit exit_group fork futex futex_requeue futex_wait
futex_waitv futex_wake get_robust_list get_thread_area getcpu getegid geteuid getgid getgroups
getitimer getpgid getpgrp getpid getppid getpriority getrandom getresgid getresuid getrlimit
getrusage getsid gettid getuid ioprio_get ioprio_set kill landlock_add_rule landlock_create_ruleset
landlock_restrict_self nanosleep pause pidfd_open pidfd_send_signal prctl prlimit64 restart_syscall
riscv_flush_icache rseq rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn
rt_sigsuspend rt_sigtimedwait rt_tgsigqueueinfo sched_get_priority_max sched_get_priority_min
sched_getaffinity sched_getattr sched_getparam sched_getscheduler sched_rr_get_interval
sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield seccomp
set_robust_list set_thread_area set_tid_address setfsgid setfsuid setgid setgroups setitimer
setpgid setpriority setregid setresgid setresuid setreuid setrlimit setsid setuid sigaltstack
signalfd signalfd4 sysinfo tgkill tkill uname vfork wait4 waitid
"""
_WAITING = """
clock_getres clock_gettime clock_nanosleep epoll_create epoll_create1 epoll_ctl epoll_pwait
epoll_pwait2 epoll_wait eventfd eventfd2 gettimeofday io_cancel io_destroy io_getevents
io_pgetevents io_setup io_submit mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedsend
mq_unlink msgctl msgget msgrcv msgsnd pipe pipe2 poll ppoll pselect6 select semctl semget semop
semtimedop time timer_create timer_delete timer_getoverrun timer_gettime timer_settime
timerfd_create timerfd_gettime timerfd_settime times
"""
_SOCKETS = """
accept accept4 bind connect getpeername getsockname getsockopt listen recvfrom recvmmsg recvmsg
sendmmsg sendmsg sendto setsockopt shutdown
"""
_NEW_NAMESPACES = 0x7E020000
_ALLOW, _REFUSE = "SCMP_ACT_ALLOW", "SCMP_ACT_ERRNO"
_ARCHITECTURES = ("SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64")


def _rule(*names: str, when: tuple[tuple[int, int], ...] = ()) -> dict[str, object]:
    """Allow these calls, when arguments (number, value) are equal."""
    equal = [{"index": index, "value": value, "op": "SCMP_CMP_EQ"} for index, value in when]
    return {"names": list(names), "action": _ALLOW, "args": equal}


@cache
def profile() -> str:
    """The profile as Docker takes it."""
    groups = (_FILES, _MEMORY, _PROCESSES, _WAITING, _SOCKETS)
    masked = {"index": 0, "value": _NEW_NAMESPACES, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}
    unknown = {"names": ["clone3"], "action": _REFUSE, "errnoRet": bwrap.ENOSYS}
    return json.dumps(
        {
            "defaultAction": _REFUSE,
            "defaultErrnoRet": bwrap.EPERM,
            "archMap": [{"architecture": one, "subArchitectures": []} for one in _ARCHITECTURES],
            "syscalls": [
                _rule(*" ".join(groups).split()),
                *(_rule("socket", "socketpair", when=((0, one),)) for one in bwrap.FAMILIES),
                _rule("socket", when=((0, bwrap.NETLINK), (2, bwrap.ROUTE))),
                _rule("personality", when=((0, 0),)),
                _rule("personality", when=((0, 0xFFFFFFFF),)),
                {"names": ["clone"], "action": _ALLOW, "args": [masked]},
                unknown,
            ],
        }
    )


BASE_IMAGE = "reprise-base:trixie-39f1d725a687"
GUARD_PYTHON = "/usr/libexec/reprise-python"
DEADLINE = "reprise.deadline"
END_S = 15.0
SLACK_S = 600.0
"""How long after its time a container of an owner that cannot be seen from here counts as left."""
OWN_PIDS = 4
PROTECTS = (
    "the host's files, network, processes, environment variables and privileges",
    "memory, processors, number of processes, disk, wall and idle time",
    "processes left running after the end",
)
EXPOSES = ("the kernel interface, apart from refused system calls and socket families",)
FIX_DAEMON = "start the Docker daemon and give this user access to its socket"
FIX_IMAGE = "build the base image: deploy/base/build.sh, or docker build deploy/base"


class AttachedContainer(guard_client.Channel):
    """The attached streams of a container: our bytes in, its multiplexed output out."""

    def __init__(self, connection: Any) -> None:
        self.connection = connection
        self.socket: socket.socket = getattr(connection, "_sock", connection)
        self.socket.settimeout(None)
        self.stream = self.socket.makefile("rb")
        self.buffer = bytearray()
        self.complaint = bytearray()

    @override
    def send(self, data: bytes) -> None:
        self.socket.sendall(data)

    @override
    def receive(self) -> bytes:
        """What the guard sent on its standard output; its standard error is kept as its
        complaint.
        """
        while True:
            data = self.stream.read1(1 << 18)
            if not data:
                return b""
            self.buffer += data
            frame = self._split()
            if frame:
                return frame

    def _split(self) -> bytes:
        data = b""
        while len(self.buffer) >= 8:
            size = int.from_bytes(self.buffer[4:8], "big")
            if len(self.buffer) < 8 + size:
                break
            payload = bytes(self.buffer[8 : 8 + size])
            if self.buffer[0] == 2:
                self.complaint = (self.complaint + payload)[-4000:]
            else:
                data += payload
            del self.buffer[: 8 + size]
        return data

    def close(self) -> None:
        """End the connection, and with it the container."""
        with suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)
        self.stream.close()
        self.connection.close()
        self.socket.close()


def knock(address: str) -> None:
    """Raise OSError when nothing answers at a local address; the client would leave its socket
    open behind the same error.
    """
    path = "/" + address.partition("://")[2].lstrip("/")
    if "unix" in address.partition("://")[0]:
        with socket.socket(socket.AF_UNIX) as probe:
            probe.connect(path)


class DockerSandbox(Sandbox):
    """Runs a program in a container of the base image."""

    name = "docker"

    def __init__(self, image: str = BASE_IMAGE) -> None:
        self.image = image
        self._client: DockerClient | None = None
        self._info: dict[str, Any] = {}

    def client(self) -> DockerClient:
        """The connection to the daemon, made once."""
        if self._client is None:
            environment = docker.utils.kwargs_from_env()
            try:
                knock(environment.get("base_url", docker.constants.DEFAULT_UNIX_SOCKET))
                client = docker.from_env(timeout=60)
                weakref.finalize(self, client.close)
                self._info = client.info()
            except (docker.errors.DockerException, requests.RequestException, OSError) as error:
                raise SandboxUnavailable(
                    f"no Docker daemon answers ({error}): {FIX_DAEMON}"
                ) from error
            self._client = client
        return self._client

    @override
    def check(self) -> Health:
        problem = port.trial(self)
        fix = FIX_IMAGE if self._client is not None else FIX_DAEMON
        problem = problem.removesuffix(f": {fix}")  # `Health` has it apart
        runtime, version = self._runtime() or "default", self._info.get("CgroupVersion", "?")
        filter_text = "a seccomp profile" if self._filters() else "no seccomp on this machine"
        detail = f"image {self.image}, {runtime} runtime, cgroup v{version}; {filter_text}"
        return Health(not problem, problem or detail, fix, PROTECTS, EXPOSES)

    @override
    def run(
        self, spec: RunSpec, *, cancel: Event | None = None, on_output: OnOutput | None = None
    ) -> RunResult:
        return run_once(ContainerGuard(self, 0.0), spec, cancel, on_output)

    @override
    def open(self, spec: WorkspaceSpec) -> Workspace:
        return RunnerWorkspace(ContainerGuard(self, spec.total_s), spec)

    def create(self, spec: RunSpec, total_s: float) -> str:
        """A container for one run, or for a workspace that lasts so long."""
        client = self.client()
        # Only a local daemon has a socket path.
        if path := getattr(client.api.get_adapter(client.api.base_url), "socket_path", ""):
            janitor.keep(path, janitor.me())
        settings = self._settings(spec, max(total_s, spec.limits.longest_s))
        container: str = client.api.create_container(
            **settings, host_config=self._host(client, spec)
        )["Id"]
        return container

    def _settings(self, spec: RunSpec, lasting_s: float) -> dict[str, Any]:
        return {
            "image": self.image,
            "command": [GUARD_PYTHON, "-I", "-S", "-c", guard_client.BOOT],
            "user": f"{port.RUN_UID}:{port.RUN_UID}",
            # With stdin_once: when our connection ends, the guard reads the end of its input.
            "stdin_open": True,
            "working_dir": port.WORKDIR,
            "hostname": port.HOSTNAME,
            # Loopback only, and 0.15 s cheaper than the network "none".
            "network_disabled": True,
            # Else the client hands in the proxy of its own settings, whose address may have a
            # password.
            "use_config_proxy": False,
            "labels": {
                janitor.OWNER: janitor.me(),
                DEADLINE: str(int(time.time() + lasting_s + SLACK_S)),
                "reprise.label": spec.label,
            },
        }

    def _host(self, client: DockerClient, spec: RunSpec) -> Any:
        limits = spec.limits
        owner = f"uid={port.RUN_UID},gid={port.RUN_UID}"
        tmpfs = f"rw,exec,nosuid,nodev,size={limits.scratch_mb}m,{owner}"
        return client.api.create_host_config(
            network_mode="none",
            read_only=True,
            tmpfs={port.WORKDIR: f"{tmpfs},mode=0755", "/tmp": f"{tmpfs},mode=1777"},  # noqa: S108
            cap_drop=["ALL"],
            security_opt=self._security(),
            mem_limit=limits.memory_mb << 20,
            memswap_limit=limits.memory_mb << 20,
            nano_cpus=int(min(limits.cpus, self._info.get("NCPU", limits.cpus)) * 1_000_000_000),
            pids_limit=port.pids(spec) + OWN_PIDS,
            shm_size=port.shm_mb(spec) << 20,
            ipc_mode="private",
            auto_remove=True,
            log_config=LogConfig(type="none"),
            mounts=[
                Mount(one.inside, str(one.source), "bind", read_only=True) for one in spec.mounts
            ],
            runtime=self._runtime(),
            device_requests=self._devices(spec),
        )

    def _security(self) -> list[str]:
        confined = ["no-new-privileges:true"]
        return [*confined, f"seccomp={profile()}"] if self._filters() else confined

    def _filters(self) -> bool:
        return any("name=seccomp" in one for one in self._info.get("SecurityOptions") or ())

    def _runtime(self) -> str | None:
        return "runsc" if "runsc" in self._info.get("Runtimes", {}) else None

    def _devices(self, spec: RunSpec) -> list[Any] | None:
        if spec.device == "cpu":
            return None
        if self._info.get("CDISpecDirs") and any(
            "nvidia.com/gpu" in str(one) for one in self._info.get("DiscoveredDevices") or ()
        ):
            return [DeviceRequest(driver="cdi", device_ids=["nvidia.com/gpu=all"])]
        if "nvidia" in self._info.get("Runtimes", {}):
            return [DeviceRequest(count=-1, capabilities=[["gpu"]])]
        raise SandboxUnavailable(
            "this Docker daemon has no NVIDIA runtime and no CDI device: install "
            "nvidia-container-toolkit"
        )

    def remove(self, container: str, *, missing_ok: bool = False) -> None:
        """Return when the daemon knows the container no more; one whose guard has left (`gone`)
        it removes by itself.
        """
        client = self.client()
        end = time.monotonic() + END_S
        failures = (docker.errors.APIError, requests.RequestException)
        if missing_ok:
            with suppress(*failures):
                client.api.wait(container, timeout=END_S, condition="removed")
        while time.monotonic() < end:
            try:
                client.api.remove_container(container, force=True, v=True)
            except docker.errors.NotFound:
                return
            except failures:  # a removal may be under way already
                time.sleep(0.05)

    @override
    def sweep(self) -> int:
        try:
            client = self.client()
            containers = client.api.containers(all=True, filters={"label": janitor.OWNER})
        except (SandboxUnavailable, docker.errors.DockerException):
            return 0
        count = 0
        for container in containers:
            labels = container["Labels"]
            alive = janitor.alive(labels[janitor.OWNER])
            overdue = time.time() > float(labels.get(DEADLINE, "0"))
            if alive is False or (alive is None and overdue):
                self.remove(container["Id"])
                count += 1
        return count


class ContainerGuard(guard_client.GuardClient):
    """The guard of one container, whose first process it is."""

    def __init__(self, sandbox: DockerSandbox, total_s: float) -> None:
        super().__init__(lambda spec: port.job(spec, sandbox.name, total_s))
        self.sandbox, self.total_s = sandbox, total_s
        self.container, self.began = "", 0.0
        self.attached: AttachedContainer | None = None

    @override
    def run(self, spec: RunSpec, **options: Any) -> RunResult:
        self.began = time.time()
        try:
            result = super().run(spec, **options)
        except docker.errors.ImageNotFound as error:
            raise SandboxUnavailable(
                f"the image {self.sandbox.image} is missing: {FIX_IMAGE}"
            ) from error
        except (docker.errors.DockerException, requests.RequestException) as error:
            raise SandboxError(f"the Docker daemon failed: {error}") from error
        return result

    @override
    def start(self, spec: RunSpec) -> guard_client.Channel:
        api = self.sandbox.client().api
        self.container = self.sandbox.create(spec, self.total_s)
        params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        self.attached = AttachedContainer(api.attach_socket(self.container, params=params))
        api.start(self.container)
        return self.attached

    @override
    def explain_end(self, outcome: guard_client.Outcome) -> None:
        """The guard is PID 1, out of the program's reach: only the kernel, for memory, or
        someone outside can have ended it.
        """
        assert self.attached is not None
        complaint = bytes(self.attached.complaint).decode(errors="replace").strip()
        query = {"container": self.container, "event": "oom"}
        span = {"since": int(self.began) - 1, "until": int(time.time()) + 1}
        oom = any(self.sandbox.client().events(**span, filters=query, decode=True))
        if not (oom and outcome.started) or complaint:
            words = f": {complaint[-600:]}" if complaint else ""
            raise SandboxError(f"the container ended without a result{words}")
        dropped = {"stdout": 0, "stderr": 0}
        outcome.result = {"exit_code": None, "signal": 9, "oom": True, "dropped": dropped}

    @override
    def end(self) -> None:
        if self.attached is not None:
            self.attached.close()
        if self.container:
            self.sandbox.remove(self.container, missing_ok=self.answered)
