"""A model whose launches say by the kernel's name which module made them. Usage: program.py [hooks] SCENE [ARGUMENT]

The truth is PyTorch's own: forward hooks of this program keep the stack of modules (`hooks`), or the module writes its name
itself. Launches go to the stand-in driver ($STANDIN_CUDA). With a real PyTorch each operator makes one, by a dispatch mode.
"""
import collections
import ctypes
import json
import os
import pickle
import sys
import threading
import time

sys.dont_write_bytecode = True  # an isolated Python does not look at the environment
if os.environ.get("SMALL"):
    sys.path.insert(0, os.environ["SMALL"])
sys.path.insert(0, os.environ.get("RANGES", ""))
import torch  # noqa: E402
from torch import nn  # noqa: E402

REAL = hasattr(torch, "Tensor")
if "TORCH_PYTHON" in os.environ:
    ctypes.CDLL(os.environ["TORCH_PYTHON"])
autograd = ctypes.CDLL(os.environ["AUTOGRAD"]) if "AUTOGRAD" in os.environ else None  # part of PyTorch: before CUDA
cuda = ctypes.CDLL(os.environ["STANDIN_CUDA"], mode=ctypes.RTLD_GLOBAL)
cuda.cuLaunchKernel.argtypes = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
cuda.cuGraphInstantiateWithFlags.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_ulonglong]
cuda.cuGraphLaunch.argtypes = [ctypes.c_void_p] * 2
cuda.cuStreamBeginCapture_v2.argtypes = [ctypes.c_void_p, ctypes.c_int]
cuda.cuStreamEndCapture.argtypes = [ctypes.c_void_p] * 2
names, kept = {}, []  # what the driver points to: names stay when Python ends
duplicate = ctypes.CDLL(None).strdup
duplicate.restype = ctypes.c_void_p
inside = threading.local()


def stack():
    """The modules that we are in, of this thread."""
    return inside.__dict__.setdefault("stack", [])


def parameters(ns):
    value = ctypes.c_uint64(ns)
    pointers = (ctypes.c_void_p * 1)(ctypes.cast(ctypes.pointer(value), ctypes.c_void_p))
    kept.append((value, pointers))
    return pointers


SHORT = parameters(1000)


def here():
    """The innermost module, by its path from the outermost that it is below of, call by call; of that itself the type."""
    if not stack():
        return "outside"
    outermost = before = stack()[0]
    for module in stack():
        if module[0] != before[0] or not f"{module[1]}.".startswith(before[1] and before[1] + "."):
            outermost = module
        before = module
    return before[1][len(outermost[1]) + bool(outermost[1]):] or before[2]


def launch(name=None):
    """A kernel of 1 us, called like the module that we are in."""
    name = name or here()
    if name not in names:
        names[name] = duplicate(name.encode())
    cuda.cuLaunchKernel(names[name], 1, 1, 1, 1, 1, 1, 0, getattr(inside, "stream", None),
                        ctypes.cast(SHORT, ctypes.c_void_p), None)


class Leaf(nn.Module):
    def forward(self, x):
        if not REAL:
            launch()
        return x + 1


class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = Leaf(), Leaf()

    def forward(self, x):
        x = self.down(self.up(x))
        if not REAL:
            launch()
        return x * 2


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.mlp = Leaf(), Mlp()

    def parts(self):
        yield self.attention
        yield self.mlp

    def forward(self, x):
        for part in self.parts():  # a generator's frame runs between
            x = part(x)
        return x


class Decoder(nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.embed = Leaf()
        self.layers = nn.ModuleList(Layer() for _ in range(layers))

    def forward(self, x):
        x = self.embed(x)
        for layer in self.layers:
            x = layer(x)
        return x


class Model(nn.Module):
    def __init__(self, layers=4):
        super().__init__()
        self.model, self.head = Decoder(layers), Leaf()

    def forward(self, x):
        return self.head(self.model(x))


def check(model):
    """Hooks that know where we are; without them nothing but the modules' own calls stands on the stack."""
    of = {id(module): (id(model), name, type(module).__name__) for name, module in model.named_modules()}

    def begin(module, args):
        stack().append(of[id(module)])

    def end(module, args, result):
        stack().pop()

    for _, module in model.named_modules():
        module.register_forward_pre_hook(begin)
        module.register_forward_hook(end)
    return model


def start():
    cuda.cuInit(0)
    context = ctypes.c_void_p()
    cuda.cuCtxCreate_v2(ctypes.byref(context), 0, 0)
    if not REAL:
        return 1, None
    from torch.utils._python_dispatch import TorchDispatchMode

    class Launches(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            launch()
            return func(*args, **(kwargs or {}))

    return torch.ones(2), Launches


def steps(model, x, count):
    for _ in range(count):
        model(x)
        launch("outside")


COMPILED = """# AOT ID: ['0_inference']
import torch
# kernel path: /tmp/torchinductor_root/ab/cab.py
# Topologically Sorted Source Nodes: [not_this], Original ATen: [aten.relu]
relu = launch


def partition_0(args):
    """ + "a, " * 9000 + """ = [args] * 9000
    launch("compiled code")
    # Topologically Sorted Source Nodes: [linear], Original ATen: [aten.addmm]
    launch("[linear]")
    if True:
        pass
    # Topologically Sorted Source Nodes: [linear, relu_1], Original ATen: [aten.addmm, aten.relu]
    # Source node to ATen node mapping:
    #   relu_1 => relu
    relu(
        "[linear, relu_1]")
    for _ in range(2):
        # Source Nodes: [softmax], Original ATen: [aten._softmax]
        launch("[softmax]")
    return args


class Runner:
    def call(self, args):
        # Topologically Sorted Source Nodes: [not_that], Original ATen: [aten.relu]
        if args is None:
            launch("[not_that]")
        return partition_0(args)


call = Runner().call
"""


def gradients(passes):
    """Of operators of autograd, forward and backward, the largest size of their arguments tells which layer they are of."""
    from torch.utils._python_dispatch import TorchDispatchMode
    widths = [3, 5, 7, 11, 13]

    class Block(nn.Module):
        def __init__(self, width, wider):
            super().__init__()
            self.linear = nn.Linear(width, wider)

        def forward(self, x):
            return torch.tanh(self.linear(x))

    class Launches(TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            sizes = [size for arg in args if isinstance(arg, torch.Tensor) for size in arg.shape]
            operator = func.__name__.partition(".")[0]
            layer = widths.index(max(sizes, default=0)) - 1 if max(sizes, default=0) in widths[1:] else None
            part = {"addmm": "linear", "mm": "linear", "sum": "linear", "add_": "linear", "tanh": "", "tanh_backward": ""}.get(operator)
            if part is not None and layer is not None:
                launch(("" if operator in ("addmm", "tanh") else "backward of ") + f"{layer}.{part}".strip("."))
            return func(*args, **(kwargs or {}))

    net = nn.Sequential(*map(Block, widths, widths[1:]))
    data = torch.ones(2, widths[0])
    with Launches():
        for _ in range(passes):  # gradients add up
            net(data).mean().backward()


class Tensor:
    is_cuda, device = True, type("device", (), {"index": 0})

    def __init__(self, address):
        self.address = address

    def untyped_storage(self):
        return self

    def data_ptr(self):
        return self.address


class Memory:
    """A training loop's allocations, which the program counts itself: bytes by module at the peak."""
    KIB = 1024

    def __init__(self):
        self.memory, self.in_use, self.peak = torch.cuda.memory, collections.Counter(), collections.Counter()
        self.addresses = []

    def allocate(self, owner, kib):
        self.in_use[owner] += kib * self.KIB
        if sum(self.in_use.values()) > sum(self.peak.values()):
            self.peak = self.in_use.copy()
        return owner, kib, self.memory.allocate(kib * self.KIB)

    def free(self, allocation):
        owner, kib, address = allocation
        self.in_use[owner] -= kib * self.KIB
        self.memory.free(address)

    def weigh(self, model):
        """A weight for each Leaf, of another size each; the program's own count by module."""
        sizes = {}
        for number, (name, module) in enumerate(model.named_modules()):
            if isinstance(module, Leaf):
                allocation = self.allocate("parameters", 1000 + number)
                globals()["launch"]("outside")  # which fills it
                module._parameters["weight"] = Tensor(allocation[2])
                sizes[name] = (1000 + number) * self.KIB
        return sizes

    def run_out(self, model):
        """A layer asks for more than there is, and the program goes on."""
        self.memory.LIMIT = self.memory.memory_stats()["allocated_bytes.all.current"] + 5 * self.KIB
        kernel = globals()["launch"]

        def operator(name=None):
            if here() == "model.layers.2.mlp.up":
                self.memory.allocate(77 * self.KIB)
            kernel(name)
        globals()["launch"] = operator
        try:
            model(1)
        except self.memory.OutOfMemoryError:
            pass

    def train(self, model, count):
        sizes = {"attention": 300, "up": 500, "down": 100, "embed": 900, "head": 700}
        kernel = globals()["launch"]
        parameters = [self.allocate("parameters", kib) for kib in (4000, 6000)]
        for _ in range(20):  # instructions, so that the recorder is on
            kernel("outside")
        parameters.append(self.allocate("parameters", 8000))
        kernel("outside")  # which fills it
        activations = []

        def operator(name=None):
            """As one of PyTorch: the result is allocated, then a kernel fills it."""
            kib = sizes.get(here().rpartition(".")[2])
            if kib:
                activations.append(self.allocate(here(), kib))
            kernel(name)
        globals()["launch"] = operator
        for _ in range(count):
            model(1)
            temporary = self.allocate("outside", 50)
            kernel("outside")
            self.free(temporary)
            while activations:
                self.free(activations.pop())
        for allocation in parameters:
            self.free(allocation)
        print(json.dumps({"peak": self.memory.max_memory_allocated(), "by": self.peak}))


def launch_in(model):
    model.head(1)


def in_mode(mode, body):
    if mode is None:
        return body()
    with mode():
        return body()


def main():
    hooked = sys.argv[1] == "hooks"
    scene, *rest = sys.argv[1 + hooked:]
    x, mode = start()
    model = check(Model()) if hooked else Model()
    if scene == "steps":
        in_mode(mode, lambda: steps(model, x, int(rest[0])))
    elif scene == "in_a_row":  # nothing of ours between two calls
        for _ in range(int(rest[0])):
            model(x)
    elif scene == "threads":
        models = [check(Model()) for _ in range(4)]
        threads = [threading.Thread(target=in_mode, args=(mode, lambda m=m: steps(m, x, int(rest[0])))) for m in models]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    elif scene == "short_threads":  # thousands of threads, a few at a time
        import resource
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        for _ in range(int(rest[0])):
            threads = [threading.Thread(target=launch_in, args=(model,)) for _ in range(4)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        print("MiB", (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) // 1024)
    elif scene == "ranges":
        import rangescope
        for _ in range(int(rest[0])):
            with rangescope.range("decode"):
                model(x)
    elif scene == "inner_ranges":  # around what each MLP does
        import rangescope

        def in_range(forward):
            def ranged(value):
                with rangescope.range("inner"):
                    return forward(value)
            return ranged
        for layer in model.model.layers:
            layer.mlp.forward = in_range(layer.mlp.forward)
        for _ in range(int(rest[0])):
            model(x)
    elif scene == "unknown":  # called, but in no _modules
        model.head = None if REAL else Leaf()
        held = [check(Mlp())]
        object.__setattr__(model, "forward", lambda value: held[0](value))
        model(x)
    elif scene == "functions":
        class Engine:
            def update(self):
                for _ in range(3):  # goes round inside of one call of step
                    launch("a")
                    launch("b")

            def step(self):
                self.update()
                model(x)

            def run(self, count):
                for _ in range(count):
                    self.step()
                    launch("run")
        Engine().run(int(rest[0]))
        launch("outside")
    elif scene == "generate":
        from transformers.generation.utils import GenerationMixin
        for _ in range(int(rest[1])):
            GenerationMixin().generate(model, launch, int(rest[0]), rest[2] == "old")
    elif scene == "batches":  # objects of a batch die before the next one and leave it their memory
        if rest[0] == "vllm":
            from vllm.v1.worker.gpu_model_runner import GPUModelRunner, SchedulerOutput
            runner = GPUModelRunner(model, launch)

            def batch(kind):
                tokens = {"p": {"a": 700, "b": 12}, "d": {"a": 1, "b": 1}, "m": {"a": 1, "b": 40}, "-": {}}[kind]
                made = SchedulerOutput([], None, dict(tokens), sum(tokens.values()))
                if rest[2] == "pickled":  # as its workers get it
                    made = pickle.loads(pickle.dumps(made))
                runner.execute_model(made)
                runner.sample_tokens(None)
        else:
            from sglang.srt.model_executor.model_runner import ForwardBatch, ForwardMode, ModelRunner
            runner = ModelRunner(model, launch)

            def batch(kind):
                mode = {"p": ForwardMode.EXTEND, "d": ForwardMode.DECODE, "m": ForwardMode.MIXED, "-": ForwardMode.IDLE}[kind]
                runner.forward(ForwardBatch(mode, 2))
        for kind in rest[1]:
            batch(kind)
    elif scene == "train":  # operators of autograd run on this thread: there is no GPU
        weights = [torch.ones(3, requires_grad=True) for _ in range(2)]
        optimizer = torch.optim.SGD(weights, lr=0.1)

        def step():
            (model(weights[0]) * weights[1]).sum().backward()
            optimizer.step()
        for _ in range(int(rest[0])):
            in_mode(mode, step)
    elif scene == "gradients":  # the largest size in an operator's arguments tells the layer
        gradients(int(rest[0]))
    elif scene == "memory":
        torch.cuda.init()
        for word in rest[1:]:
            if word == "own":
                torch.cuda.memory._record_memory_history(context="all", max_entries=7)
            elif word == "old":
                torch.cuda.memory.OLD = True
        launch("outside")
        memory = Memory()
        if "weights" in rest:
            for _ in range(20):  # instructions, so that the recorder is on
                launch("outside")
            weights = memory.weigh(model)
            for _ in range(300):
                model(1)
            print(json.dumps(weights))
        elif "run_out" in rest:
            for _ in range(300):
                model(1)
            memory.run_out(model)
        else:
            memory.train(model, int(rest[0]))
        if "fork" in rest and os.fork() == 0:
            sys.exit(0)
        if "leave" in rest:
            sys.stdout.flush()
            os._exit(0)
    elif scene == "compiled":  # as Inductor writes it; the kernels say which nodes they compute
        name = "c" + "ab2" * 17
        os.makedirs(f"{rest[0]}/ab")
        path = f"{rest[0]}/ab/{name}.py"
        with open(path, "w", encoding="ascii") as f:
            f.write(COMPILED)
        code = compile(COMPILED, path, "exec")
        made = {"launch": launch}
        exec(code, made)
        object.__setattr__(model.head, "forward", made["call"])
        for _ in range(int(rest[1])):
            model(x)
    elif scene == "autograd":  # operators leave functions, which a thread without Python evaluates
        autograd.begin_operator.restype = autograd.evaluate.restype = ctypes.c_uint64
        kernel, made = globals()["launch"], []

        def operator():
            made.append((autograd.begin_operator(), here()))
            autograd.begin_operator()  # another one, which launches nothing
            kernel()
            kernel("second of " + made[-1][1])
        globals()["launch"] = operator
        wrong = 0
        for _ in range(int(rest[0])):
            made.clear()
            model(x)
            made.reverse()
            places = (ctypes.c_uint64 * len(made))(*(place for place, _ in made))
            texts = (ctypes.c_void_p * len(made))(*(duplicate(f"backward of {name}".encode()) for _, name in made))
            wrong += autograd.evaluate(places, texts, ctypes.c_uint64(len(made)), SHORT)
        print("wrong references", wrong)
        if rest[1:] == ["again"]:
            made.clear()
            model(x)
            globals()["launch"] = lambda: kernel("again")
            layer = next(place for place, name in made if name == "model.layers.2.attention")
            layers = model.model.layers._modules
            autograd.evaluate_again(ctypes.c_uint64(layer), b"first", SHORT, ctypes.CFUNCTYPE(None)(lambda: layers["2"](x)))
    elif scene == "backward":  # as emit_nvtx: operators with sequence numbers, and functions on a thread that runs no module
        import rangescope
        made, kernel = [], globals()["launch"]

        def operator():
            number = len(made)
            made.append(here())
            with rangescope.range(f"aten::linear, seq = {number}, op_id = {2 * number}"):
                with rangescope.range(f"aten::mm, seq = {number}, op_id = {2 * number + 1}"):
                    kernel()

        def function(name, number, of):
            with rangescope.range(f"autograd::engine::evaluate_function: {name}, op_id = 7"):
                with rangescope.range(name + ("" if number is None else f", seq = {number}") + ", op_id = 8"):
                    with rangescope.range("aten::mm, op_id = 9"):
                        kernel("backward of " + of)

        def engine():
            function("LossBackward0", 10**6, "nothing")
            for number in reversed(range(len(made))):
                function("MmBackward0", number, made[number])
                function("torch::autograd::AccumulateGrad", None, made[number])
        globals()["launch"] = operator
        for _ in range(int(rest[0])):
            made.clear()
            model(x)
            thread = threading.Thread(target=engine)
            thread.start()
            thread.join()
    elif scene == "at_exit":  # a launch when there is no Python any more
        ctypes.CDLL(None).on_exit(cuda.cuCtxSynchronize, None)
        model(x)
    elif scene == "graph":
        stream, graph, instance = ctypes.c_void_p(5), ctypes.c_void_p(), ctypes.c_void_p()
        cuda.cuStreamBeginCapture_v2(stream, 0)
        inside.stream = stream
        model(x)
        cuda.cuStreamEndCapture(stream, ctypes.byref(graph))
        cuda.cuGraphInstantiateWithFlags(ctypes.byref(instance), graph, 0)
        for _ in range(int(rest[0])):
            cuda.cuGraphLaunch(instance, stream)
    elif scene == "cost":  # CPU time of a launch below 38 frames, five of them modules' calls
        arguments = [duplicate(b"cost"), 1, 1, 1, 1, 1, 1, 0, None,
                     ctypes.cast(SHORT, ctypes.c_void_p), None]

        class Burst(nn.Module):
            def forward(self, value):
                function, count = cuda.cuLaunchKernel, int(rest[0])
                before = time.thread_time_ns()
                for _ in range(count):
                    function(*arguments)
                print(round((time.thread_time_ns() - before) / count))
                return value

        def deep(n):
            return model(x) if n == 0 else deep(n - 1)
        model.model.layers._modules["0"].mlp.up = Burst()
        deep(20)
    cuda.cuCtxSynchronize()


if __name__ == "__main__":
    main()
