"""The task of `ssh.py` by asyncssh, where that is installed: `peer_asyncssh.py TASK.json default|tuned`.

Default: as its documentation shows. Tuned: no configuration is read, a node's commands run at once, a file
goes through `cat`, and no more than six nodes are not yet let in (of more, a server drops some). Prints the
seconds that it took, once Python and its modules were there.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import asyncssh


async def one(
    task: Mapping[str, Any], node: Mapping[str, Any], door: asyncio.Semaphore, *, tuned: bool
) -> None:
    more = {"config": None, "agent_path": None} if tuned else {}
    async with door:
        connection = await asyncssh.connect(
            "127.0.0.1",
            node["port"],
            username=task["user"],
            client_keys=[task["key"]],
            known_hosts=task["known"],
            **more,
        )
    async with connection:
        if task["source"] and tuned:
            command = f"cat >{node['mark']} && {node['commands'][0]}"
            data = Path(task["source"]).read_bytes()  # noqa: ASYNC240  # once, and the page cache has it
            await connection.run(command, input=data, encoding=None, check=True)
            return
        if task["source"]:
            async with connection.start_sftp_client() as sftp:
                await sftp.put(task["source"], node["mark"])
        if tuned:
            await asyncio.gather(*(connection.run(command, check=True) for command in node["commands"]))
            return
        for command in node["commands"]:
            await connection.run(command, check=True)


async def main(given: str, how: str) -> None:
    begun = time.perf_counter()
    task = json.loads(Path(given).read_text())  # noqa: ASYNC240  # before anything else runs
    tuned = how == "tuned"
    door = asyncio.Semaphore(6 if tuned else len(task["nodes"]))
    nodes = (one(task, node, door, tuned=tuned) for node in task["nodes"])
    await asyncio.gather(*nodes, return_exceptions=True)
    print(time.perf_counter() - begun)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
