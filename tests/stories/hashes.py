"""An event loop whose handlers hash passwords: CPU work that blocks it."""
import asyncio
import hashlib


def check_password(password):
    return hashlib.pbkdf2_hmac("sha256", password, b"salt", 60000)


async def login():
    for _ in range(12):
        check_password(b"secret")
        await asyncio.sleep(0.001)


async def main():
    await asyncio.gather(*(login() for _ in range(4)))


asyncio.run(main())
