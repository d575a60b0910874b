"""Play an episode whose agent writes on and on, on bubblewrap, and print its outcome and facts as JSON."""

import asyncio
import json
import sys
from pathlib import Path

from envsdk.episode.conversation import ConversationAgent
from envsdk.episode.run import run_episode
from envsdk.home import BASE_IMAGE
from envsdk.sandboxes import open_provider
from envsdk.sandboxes.base import Limits
from envsdk.spec.model import Budget, ContainerSpec
from tests.fakes.policy import ScriptedPolicy
from tests.fakes.tasks import script_task

FILL = "i=0; while head -c 1000000 /dev/zero > /app/f$i; do i=$((i+1)); done; echo full at $i; true"


async def main(folder: Path) -> None:
    provider = open_provider("bubblewrap")
    budget = Budget(step_s=20, episode_s=40, verify_s=10, turns=4)
    task = script_task(folder, budget=budget)
    container = ContainerSpec(image=BASE_IMAGE, limits=Limits(disk_mib=512))
    task = task.model_copy(update={"spec": task.spec.model_copy(update={"container": container})})
    try:
        talk = ConversationAgent(ScriptedPolicy([FILL, "echo 42 > /app/total.txt", "done"]))
        record = await run_episode(task, talk, provider)
    finally:
        await provider.close()
    said = {
        "outcome": record.outcome.model_dump(),
        "facts": record.facts,
        "turns": [t.observation for t in record.turns],
    }
    print(json.dumps(said))


asyncio.run(main(Path(sys.argv[1])))
