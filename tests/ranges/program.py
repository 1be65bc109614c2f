"""A program that uses python/rangescope.py: prints the backend, and what the module `nvtx` was asked for."""
import rangescope


@rangescope.range("forward")
def forward(depth):
    if depth:
        forward(depth - 1)


with rangescope.range("step", payload=3, domain="LLM"):
    forward(1)
try:
    with rangescope.range("fails", sync_after=True):
        raise ValueError("passes through")
except ValueError as error:
    print(error)
print(rangescope.backend)
if rangescope.backend == "nvtx":
    import nvtx
    print(nvtx.calls)
