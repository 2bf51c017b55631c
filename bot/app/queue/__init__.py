"""Queues behind the port: one within a process, and arq's on Redis."""

from bot.app.ports import Device, Lane

_DELIVERIES = 4  # they wait for GitHub; more at once would only reach its rate limits sooner


def places(device: Device, slots: int) -> dict[Lane, int]:
    """How many tasks of each lane a worker for a device handles at once. `slots` counts runs; a
    CPU worker also handles a few deliveries, which need no accelerator.
    """
    return {"cpu": slots, "deliveries": _DELIVERIES} if device == "cpu" else {device: slots}
