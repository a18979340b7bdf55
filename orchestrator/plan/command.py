"""The plan of a command run: what the user's own program is, to the byte, and what is asked of it.

Knows nothing about update counts, deadlines, nodes or paths: two deployments of one plan have one digest.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from evidence.digest import sha256_json
from orchestrator.spec.program import COMMAND, CommandRunSpec, ProgramSpec, SourceFile

SCHEMA = "orch-command-plan/v1"


@dataclass(frozen=True)
class CommandPlan:
    """What the roles of a command run are.

    Attributes:
        program: as declared; the places of its files are no part of the plan.
        roles: names in order.
    """

    program: ProgramSpec
    roles: tuple[str, ...]

    @property
    def targets(self) -> dict[str, str]:
        """Role name -> target, in role order."""
        return dict.fromkeys(self.roles, COMMAND)

    @cached_property
    def digest(self) -> str:
        """The `plan` identity: program, roles, and how the program is judged."""
        return sha256_json(self.as_json())

    @cached_property
    def system_digest(self) -> str:
        """The `system` identity: the program and its inputs; decides whether a checkpoint may be loaded."""
        return sha256_json(self._system_json())

    def _system_json(self) -> dict[str, object]:
        program = self.program
        return {
            "argv": list(program.argv),
            "files": _files_json(program.files),
            "uses": _files_json(program.uses),
            "environment": [list(pair) for pair in program.environment],
            "inherit": list(program.inherit),
            "setup": [list(argv) for argv in program.setup],
            "checkpoint": program.checkpoint,
        }

    def as_json(self) -> dict[str, object]:
        """Everything that the identity covers."""
        program = self.program
        reference: Mapping[str, object] | None = None
        if program.reference is not None:
            reference = {
                "argv": list(program.reference.argv),
                "files": _files_json(program.reference.files),
                "relative": program.reference.relative.hex(),
                "absolute": program.reference.absolute.hex(),
            }
        return {
            "schema": SCHEMA,
            "system": self._system_json(),
            "roles": list(self.roles),
            "refuses": {
                label: {"exit": looks.exit, "stderr": looks.stderr}
                for label, looks in program.refuses.items()
            },
            "other": None if program.other is None else list(program.other),
            "reference": reference,
        }

    def file_json(self) -> dict[str, object]:
        """The content of a bundle's `plan.json`: the plan, its digest, and its system's."""
        return {**self.as_json(), "digest": self.digest, "system_digest": self.system_digest}


def command_plan(run: CommandRunSpec) -> CommandPlan:
    """The plan of a command run; whatever its file can say has one."""
    return CommandPlan(run.program, run.roles)


def _files_json(files: tuple[SourceFile, ...]) -> list[list[object]]:
    return [[file.name, file.sha256, file.size] for file in files]
