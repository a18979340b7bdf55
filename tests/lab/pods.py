"""A pods file around nodes of the tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from lab.node import SshNode
from orchestrator.spec.pods import Node
from orchestrator.spec.read import read_pods


def write_pods(
    path: Path, nodes: Mapping[str, SshNode | Mapping[str, Any]], *, transport: str = "loopback", **more: Any
) -> Path:
    """Writes a pods file (JSON is YAML); an entry may be given instead of a node, to change some of it."""
    entries = {
        name: node.pods_entry() if isinstance(node, SshNode) else dict(node) for name, node in nodes.items()
    }
    path.write_text(
        json.dumps({"orch": "pods/v1", "transport": transport, "nodes": entries, **more}, indent=1)
    )
    return path


def declared(node: SshNode, *, name: str = "a", **more: Any) -> Node:
    """The node as a pods file declares it."""
    path = write_pods(node.folder / f"{name}.pods.yaml", {name: node.pods_entry(**more)})
    return read_pods(path).nodes[name]
