"""An event loop whose handlers sleep in a call that blocks it."""
import asyncio
import time


def blocking():
    time.sleep(0.05)


async def handler():
    for _ in range(10):
        blocking()
        await asyncio.sleep(0.01)


async def main():
    await asyncio.gather(*(handler() for _ in range(4)))


asyncio.run(main())
