"""Refusals and errors: the one list of labels, and how a refusal says its place.

Knows no stage. Validators *return* refusals, sorted by place; only the boundary of a stage raises them,
together, as `RefusedError`.

    OrchError                 everything that a command reports without a traceback
     +-- RefusedError         input was understood and is refused, by label        exit 1
     +-- UsageError           the command line itself is wrong                     exit 2
     +-- UndecidedError       unreachable, interrupted: neither pass nor fail      exit 4
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class Label(StrEnum):
    """Stable names of refusals. A label is never renamed; `docs/refusals.md` has a line for each."""

    # files that users write
    FILE_MISSING = "file-missing"
    FILE_UNREADABLE = "file-unreadable"
    SYNTAX = "syntax"
    YAML_FEATURE = "yaml-feature"
    KIND_UNKNOWN = "kind-unknown"
    KEY_UNKNOWN = "key-unknown"
    KEY_DUPLICATE = "key-duplicate"
    FIELD_MISSING = "field-missing"
    VALUE_TYPE = "value-type"
    VALUE_RANGE = "value-range"
    VALUE_FORMAT = "value-format"
    VALUE_CHOICE = "value-choice"
    NAME_UNKNOWN = "name-unknown"
    NAME_DUPLICATE = "name-duplicate"
    # what they mean together
    EXPRESSION_SYNTAX = "expression-syntax"
    EXPRESSION_TYPE = "expression-type"
    TOPOLOGY = "topology"
    ROLE_UNKNOWN = "role-unknown"
    SAMPLES_COUNT = "samples-count"
    DATA_FORMAT = "data-format"
    DATA_SHAPE = "data-shape"
    SEPARABILITY = "separability"
    OWNERSHIP_UNSUPPORTED = "ownership-unsupported"
    OWNERSHIP_GAP = "ownership-gap"
    OWNERSHIP_OVERLAP = "ownership-overlap"
    PAIRING_MISSING = "pairing-missing"
    TARGET_UNSUPPORTED = "target-unsupported"
    SIGNING_UNSUPPORTED = "signing-unsupported"
    DEPENDENCY_CYCLE = "dependency-cycle"
    REFERENCE_OUTSIDE = "reference-outside"
    SECRET_IN_FILE = "secret-in-file"  # noqa: S105 - a label's name
    # what is pasted on a command line
    SSH_LINE = "ssh-line"
    # admission
    PLANNING_BUDGET = "planning-budget"
    GRAPH_MALFORMED = "graph-malformed"
    PLACEMENT_INVALID = "placement-invalid"
    LINK_MISSING = "link-missing"
    CAPACITY_UNKNOWN = "capacity-unknown"
    CAPACITY_EXCEEDED = "capacity-exceeded"
    # machines
    EMULATOR_MISSING = "emulator-missing"
    PODS_UNSUPPORTED = "pods-unsupported"
    REMOTE_ROOT = "remote-root"
    RUN_LOCKED = "run-locked"
    UNREACHABLE = "unreachable"
    NODE_LOST = "node-lost"
    HOST_KEY_UNKNOWN = "host-key-unknown"
    HOST_KEY_CHANGED = "host-key-changed"
    AUTH_REFUSED = "auth-refused"
    SHELL_UNUSABLE = "shell-unusable"
    NOT_PLAIN = "not-plain"
    CLOCK = "clock"
    TOOL_MISSING = "tool-missing"
    DISK_SPACE = "disk-space"
    TUNNEL_REFUSED = "tunnel-refused"
    SETUP_FAILED = "setup-failed"
    COMPILER = "compiler"
    PTX = "ptx"
    ASSEMBLER_MISSING = "assembler-missing"
    ELF = "elf"
    TARGET_ARCH = "target-arch"
    POD_CHANGED = "pod-changed"
    LIMIT_DURATION = "limit-duration"
    LIMIT_SPEND = "limit-spend"
    # cards: said of an inventory before anything is built, and by role programs of their own card
    DEVICE_ABSENT = "device-absent"
    DEVICE_INVENTORY = "device-inventory"
    DEVICE_MINOR = "device-minor"
    DEVICE_MINOR_TWICE = "device-minor-twice"
    DEVICE_UUID = "device-uuid"
    DEVICE_DRIVER = "device-driver"
    DEVICE_BUSY = "device-busy"
    DEVICE_MIG = "device-mig"
    DEVICE_RESET = "device-reset"
    DEVICE_FORGED = "device-forged"
    NVIDIA_PLAN_HOST = "nvidia-plan-host"
    DEVICE_LIBRARY = "device-library"
    DEVICE_MEMORY = "device-memory"
    DEVICE_LOST = "device-lost"
    DEVICE_LEASE = "device-lease"
    DEVICE_KERNEL = "device-kernel"
    DEVICE_SIMULATED = "device-simulated"
    # said by role programs on their standard error, and by the judge where it repeats their check
    BINDING = "binding"
    PORT_IN_USE = "port-in-use"
    CONNECT_DEADLINE = "connect-deadline"
    ROUND_DEADLINE = "round-deadline"
    RUN_DEADLINE = "run-deadline"
    PEER_LOST = "peer-lost"
    FRAME_IDENTITY = "frame-identity"
    FRAME_EPOCH = "frame-epoch"
    FRAME_ROUND = "frame-round"
    FRAME_BOUND = "frame-bound"
    DATA_CHUNK = "data-chunk"
    NON_FINITE = "non-finite"
    FLOAT_ENVIRONMENT = "float-environment"
    DATA_PARALLEL_REPLICA_RELEASED = "data-parallel-replica-released"
    DATA_PARALLEL_REPLICA_VERSION = "data-parallel-replica-version"
    DATA_PARALLEL_REPLICA_RETAINED = "data-parallel-replica-retained"
    REPLICA_DIVERGENCE = "replica-divergence"
    CHECKPOINT_MISSING = "checkpoint-missing"
    CHECKPOINT_MANIFEST = "checkpoint-manifest"
    CHECKPOINT_CAPTURE = "checkpoint-capture"
    CHECKPOINT_CHUNK = "checkpoint-chunk"
    CHECKPOINT_COVERAGE = "checkpoint-coverage"
    CHECKPOINT_SYSTEM = "checkpoint-system"
    CHECKPOINT_EPOCH = "checkpoint-epoch"
    WRITE_FAILED = "write-failed"


@dataclass(frozen=True, order=True)
class Where:
    """A place in a file that a user wrote. Lines and columns count from 1; 0 means the file as a whole."""

    path: str
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        return f"{self.path}:{self.line}:{self.column}" if self.line else self.path


@dataclass(frozen=True)
class Refusal:
    """One thing wrong with the input: its label, what is wrong, and where.

    Attributes:
        label: the stable name.
        message: one sentence; ends with "(got X, expected Y)".
        where: the key for an unknown key, the value for a wrong value, the parent for a missing field.
        key: dotted path inside the file ("pairings.worker.target"), empty for the file as a whole.
        hint: the way out or "did you mean ...", empty if there is none.
    """

    label: Label
    message: str
    where: Where
    key: str = ""
    hint: str = ""

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        return f"{self.where}: {self.label}: {self.message}{hint}"


class OrchError(Exception):
    """Base of everything that a command reports by message and exit code, without a traceback."""

    exit_code = 1


class RefusedError(OrchError):
    """Input is refused. Carries every refusal found, in the order of the files and places."""

    def __init__(self, refusals: Iterable[Refusal]) -> None:
        self.refusals = tuple(refusals)
        super().__init__("\n".join(str(refusal) for refusal in self.refusals))


class UsageError(OrchError):
    """The command line asks for something that no reading of it can mean."""

    exit_code = 2


class UndecidedError(OrchError):
    """Neither pass nor fail can be said: a machine is unreachable, or a person interrupted."""

    exit_code = 4
