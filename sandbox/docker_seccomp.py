"""The seccomp profile of a container: the system calls that a program and its libraries need for
their own work, sockets of a few families, and nothing else.

Against the daemon's own profile it leaves out io_uring, tracing and reading of other processes,
32-bit calls, and every socket family that reaches for the host or rarely used parts of the kernel
(vsock, packet, crypto, bluetooth, ...).
"""

import json
from functools import cache

from sandbox import seccomp

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
    unknown = {"names": ["clone3"], "action": _REFUSE, "errnoRet": seccomp.ENOSYS}
    return json.dumps(
        {
            "defaultAction": _REFUSE,
            "defaultErrnoRet": seccomp.EPERM,
            "archMap": [{"architecture": one, "subArchitectures": []} for one in _ARCHITECTURES],
            "syscalls": [
                _rule(*" ".join(groups).split()),
                *(_rule("socket", "socketpair", when=((0, one),)) for one in seccomp.FAMILIES),
                _rule("socket", when=((0, seccomp.NETLINK), (2, seccomp.ROUTE))),
                _rule("personality", when=((0, 0),)),
                _rule("personality", when=((0, 0xFFFFFFFF),)),
                {"names": ["clone"], "action": _ALLOW, "args": [masked]},
                unknown,
            ],
        }
    )
