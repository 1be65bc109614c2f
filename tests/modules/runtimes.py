"""Launches from frames of other kinds than plain calls. Usage: runtimes.py SCENE [ARGUMENT]

Each scene prints its results, bit by bit, and ends with exit code 3. frames.c and through.pyx are in $FRAMES.
"""
import gc
import os
import sys
import threading

sys.dont_write_bytecode = True
sys.path[:0] = [os.path.dirname(os.path.abspath(__file__)), os.environ.get("FRAMES", "")]
import program  # noqa: E402
from program import Leaf, Model, Mlp, check, cuda, launch, nn  # noqa: E402

results, kept = [], []


def made(model=None):
    """Kept: of two at one place, the second has the names of the first for a second."""
    kept.append(check(model or Model()))
    return kept[-1]


def one(seed, model=None):
    value = (model or made())(seed / 7)
    results.append((seed, value.hex()))
    return value


def each_in_a_thread(count, work):
    threads = [threading.Thread(target=work, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def evaluator(steps):
    """A debugger or a compiler evaluates all frames: before CPython 3.11 it does so anyway, with one C call for each."""
    import frames
    model = made()
    one(1, model)
    frames.replace()
    before = frames.count()
    for i in range(int(steps)):
        one(i, model)
    each_in_a_thread(3, one)
    assert frames.count() - before > 50 * int(steps), frames.count()


def tracer(steps):
    """As debuggers without such a function, coverage and profilers in Python do it."""
    seen = set()

    def trace(frame, event, argument):
        seen.add((event, frame.f_code.co_name))
        if event == "call" and frame.f_code.co_name == "forward":
            frame.f_locals  # makes what 3.9 to 3.12 keep beside the frame
        return trace

    threading.settrace(trace)
    sys.settrace(trace)
    for i in range(int(steps)):
        one(i)
    each_in_a_thread(2, one)
    sys.settrace(None)
    sys.setprofile(lambda *of: None)
    one(99)
    sys.setprofile(None)
    if hasattr(sys, "monitoring"):
        events, tool = sys.monitoring.events, sys.monitoring.DEBUGGER_ID
        sys.monitoring.use_tool_id(tool, "debugger")
        sys.monitoring.register_callback(tool, events.INSTRUCTION, lambda *of: None)
        sys.monitoring.set_events(tool, events.INSTRUCTION)
        one(100)
        sys.monitoring.set_events(tool, 0)
    results.append(len(seen))
    assert ("line", "forward") in seen and ("return", "_call_impl") in seen


class Generates(nn.Module):
    """Its parts run in a generator that others advance, and that launches when it is closed."""

    def __init__(self):
        super().__init__()
        self.first, self.second, self.by = Leaf(), Mlp(), Advances()

    def each(self, x):
        try:
            while True:
                x = self.first(x)
                sent = yield x
                x = yield from self.inner(x if sent is None else sent)
        finally:
            launch()

    def inner(self, x):
        yield self.second(x)
        return x + 1

    def forward(self, x):
        self.kept = self.each(x)
        next(self.kept)
        return self.by(self.kept, 3)


class Advances(nn.Module):
    def forward(self, generator, count):
        value = None
        for _ in range(count):
            value = generator.send(value)
        launch()
        generator.close()
        return value


class Waits(nn.Module):
    """Runs an event loop of its own; between its parts other tasks run."""

    def __init__(self):
        super().__init__()
        self.head = Leaf()

    async def parts(self, x, count):
        import asyncio
        for _ in range(count):
            x = self.head(x)
            await asyncio.sleep(0)
            launch()
        return x

    def forward(self, x):
        import asyncio

        async def both():
            return sum(await asyncio.gather(self.parts(x, 3), self.parts(x + 1, 5)))
        return asyncio.new_event_loop().run_until_complete(both())


def coroutines(steps):
    import asyncio
    model, waits = made(), made(Waits())

    async def parts(x):
        for part in model.model.layers:
            yield part.mlp(x)
            await asyncio.sleep(0)

    async def task(seed):
        x = one(seed, model)
        await asyncio.sleep(0)
        launch()
        async for value in parts(x):
            results.append((seed, value.hex()))
        return model.head(x)

    async def tasks():
        results.append([value.hex() for value in await asyncio.gather(*(task(i) for i in range(int(steps))))])

    asyncio.run(tasks())
    asyncio.run(tasks(), debug=True)
    for i in range(int(steps)):
        one(i, waits)
        one(i, made(Generates()))


def greenlets(count):
    """They switch at each launch, inside of modules; some are thrown away there, some run in other threads."""
    import greenlet
    plain = program.launch

    def launch_and_switch(name=None):
        plain(name)
        if greenlet.getcurrent().parent is not None:
            greenlet.getcurrent().parent.switch()

    program.launch = launch_and_switch
    program.stack = lambda: greenlet.getcurrent().__dict__.setdefault("stack", [])

    def round_robin(first):
        alive = [greenlet.greenlet(one) for _ in range(int(count))]
        for number, each in enumerate(alive):
            each.switch(first + number)
        for turn in range(1000):
            alive = [each for each in alive if not each.dead]
            if turn in (3, 8) and alive:
                alive.pop(turn % len(alive))  # dies inside of a module
            for each in alive:
                each.switch()
            plain("outside")
            if not alive:
                break

    round_robin(0)
    each_in_a_thread(2, lambda i: round_robin(100 * i + 100))
    class Inside(nn.Module):
        def forward(self, x):
            inner = greenlet.greenlet(lambda: one(x))
            while not inner.dead:
                inner.switch()
            launch()
            return x
    model = made(Inside())
    model(3)


def interpreters(count):
    """Each has modules of its own; one of them is called out of a module."""
    try:
        import _interpreters as sub
        create, run = (lambda: sub.create("legacy")), sub.exec
    except ImportError:
        import _xxsubinterpreters as sub
        create, run = (lambda: sub.create(isolated=False) if sys.version_info >= (3, 12) else sub.create()), sub.run_string
    read, write = os.pipe()
    code = f"import sys; sys.argv = ['', 'inner', '{write}']; __file__ = {__file__!r}; exec(open(__file__).read())"

    class Outer(nn.Module):
        def forward(self, x):
            for _ in range(int(count)):
                interpreter = create()
                failed = run(interpreter, code)
                assert failed is None, failed
                sub.destroy(interpreter)
                results.append(os.read(read, 100))
            launch()
            return x

    model = made(Outer())
    model(1)

    def alone(_):
        interpreter = create()
        run(interpreter, code)
        sub.destroy(interpreter)
        results.append(os.read(read, 100))
        one(5)
    each_in_a_thread(1, alone)
    one(6)


def inner(write):
    for i in range(3):
        one(i)
    os.write(int(write), repr(results).encode().ljust(100)[:100])


def threads(count):
    """Threads of C with a new thread state for each call; thread states that run Python while they die."""
    import frames
    model = made()
    for _ in range(int(count)):
        frames.foreign(lambda: one(1, model), 4)
    local = threading.local()

    class Dies:
        def __del__(self):
            model.model.layers._modules["1"](2.0)
            launch("outside")

    def work(i):
        local.held = Dies()
        one(i, model)
    each_in_a_thread(int(count), work)


class Row(nn.Module):
    def forward(self, x):
        for name in self._modules:
            x = getattr(self, name)(x)
        launch()
        return x


def renamed(count):
    """The same modules in another dictionary, then of a class with another name. Those before are as they were."""
    import time
    model, before = Row(), []
    for i in range(int(count)):
        setattr(model, f"a{i}", Leaf())
    for letter in "abc":
        if letter == "c":
            Row.__name__ = "Renamed"
        if letter != "a":
            before.append(model._modules)
            object.__setattr__(model, "_modules", {f"{letter}{i}": part for i, part in enumerate(before[0].values())})
            time.sleep(1.1)
        for _, part in model.named_modules():
            part._forward_hooks.clear()
            part._forward_pre_hooks.clear()
        results.append(check(model)(1.5).hex())


class Bursts(nn.Module):
    def forward(self, launches):
        import frames
        frames.burst("head", launches)


def daemons(count):
    """They launch from C while the interpreter ends, which frees their thread states, and after it."""
    import time
    import frames
    frames.guard()
    model = Model()
    model.head = Bursts()
    object.__setattr__(model, "model", lambda x: x)
    for _ in range(int(count)):
        threading.Thread(target=model, args=(0,), daemon=True).start()
    while frames.bursts() < int(count):
        time.sleep(0.001)

    class Last:
        def __del__(self, sleep=time.sleep):
            sleep(0.05)
    program.last = Last()  # lives until modules are cleared


def compiled(steps):
    """Functions and a module's forward that have no frames: Cython's."""
    import through

    model = made(through.Compiled(Model(), launch))
    for i in range(int(steps)):
        results.append(through.call(model, i / 3).hex())
    each_in_a_thread(2, lambda i: results.append(through.call(model, 2.0).hex()))


def main():
    x, mode = program.start()
    scene, *rest = sys.argv[1:]
    globals()[scene](*rest)
    cuda.cuCtxSynchronize()
    gc.collect()
    results.append([sys.getrefcount(part) for model in kept for _, part in model.named_modules()])
    print("results", sorted(results, key=repr), flush=True)  # threads end in any order
    if scene != "inner":
        sys.exit(3)


main()
