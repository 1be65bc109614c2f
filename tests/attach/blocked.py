"""An event loop whose handler sleeps in a call that blocks it, for as long as somebody looks."""
import asyncio
import time


def blocking():
    time.sleep(1000)


async def handler():
    await asyncio.sleep(0)
    blocking()


async def main():
    await asyncio.gather(handler(), asyncio.sleep(1000))


asyncio.run(main())
