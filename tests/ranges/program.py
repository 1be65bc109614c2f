"""A program that uses python/rangescope: prints the backend, and why there is none."""
import rangescope


@rangescope.range("forward")
def forward(depth):
    """Calls itself."""
    if depth:
        forward(depth - 1)
    return depth


with rangescope.range("step", payload=3, domain="LLM"):
    forward(1)
with rangescope.range("step", payload=-2, domain="LLM"):
    pass
with rangescope.range("step", payload=0.5):
    pass
try:
    with rangescope.range("fails", sync_after=True):
        raise ValueError("passes through")
except ValueError as error:
    print(error)
print(forward(0), forward.__name__, forward.__doc__)
print(rangescope.backend)
print(rangescope.failure)
