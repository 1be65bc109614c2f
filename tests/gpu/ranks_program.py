# Two ranks or more under torchrun. `straggle`: DDP of which rank 1 sleeps 10 ms in every backward step. `prepare`: DDP without ranges of which rank 1 computes 8 ms in
# a function before every step, `prepare even` without that. `bandwidth`: all_reduce of several
# sizes in rounds (`added`: three sizes, more rounds), timed with CUDA events as nccl-tests times them; prints nanoseconds a call of each round, `called` as a program calls them and
# `queued` behind a kernel that holds the GPU until all calls of a round are queued. `messages`: 16 MiB there and back in a group, then from
# rank 1, 5 ms late, to rank 0, which multiplies twice as often. `fsdp`: a transformer under fully_shard; prints what it gathered and scattered.
import os
import sys
import time

import torch
import torch.distributed as dist

dist.init_process_group("nccl")
rank, world = dist.get_rank(), dist.get_world_size()
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
nvtx = torch.cuda.nvtx
if sys.argv[1] == "straggle":
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).cuda())
    x = torch.randn(256, 2048, device="cuda")
    for step in range(int(os.environ.get("STEPS", "40"))):
        with nvtx.range("step"):
            with nvtx.range("forward"):
                loss = model(x).square().mean()
            if rank == 1:
                with nvtx.range("straggle"):
                    time.sleep(0.01)
            with nvtx.range("backward"):
                loss.backward()
            with nvtx.range("sync"):
                torch.cuda.synchronize()
        model.zero_grad()
elif sys.argv[1] == "prepare":

    def prepare():
        until = time.perf_counter() + 0.008
        while time.perf_counter() < until:
            pass

    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(6)]).cuda())
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    x = torch.randn(512, 4096, device="cuda")
    times = []
    for step in range(60):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        if rank == 1 and "even" not in sys.argv[2:]:
            prepare()
        model(x).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - begin)
    if rank == 0:
        print(f"RESULT step_ns {int(1e9 * sorted(times[20:])[20])}", flush=True)
elif sys.argv[1] == "messages":
    out, got, x = (torch.ones(16 << 18, device="cuda") for _ in range(3))
    x = x[: 2048 * 2048].reshape(2048, 2048)
    dist.barrier()
    for step in range(20):
        with nvtx.range("step"):
            with nvtx.range("compute"):
                for _ in range(100 if rank == 0 else 50):
                    x @ x
                torch.cuda.synchronize()
            with nvtx.range("exchange"):
                for work in dist.batch_isend_irecv([dist.P2POp(dist.isend, out, 1 - rank), dist.P2POp(dist.irecv, got, 1 - rank)]):
                    work.wait()
                torch.cuda.synchronize()
            dist.barrier()
            if rank == 1:
                time.sleep(0.005)
            with nvtx.range("pass"):
                dist.send(out, 0) if rank == 1 else dist.recv(got, 1)
                torch.cuda.synchronize()
elif sys.argv[1] == "fsdp":
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    phase, counted = None, {}

    def count(function, message):
        real = getattr(dist, function)

        def call(*tensors, **named):
            if phase is not None:  # the message of one rank: what it gives to a gather, what it gets of a scatter
                tensor = named[message] if message in named else tensors[("output", "input").index(message.removesuffix("_tensor"))]
                calls, size = counted.get((phase, function), (0, 0))
                counted[phase, function] = calls + 1, size + tensor.numel() * tensor.element_size()
            return real(*tensors, **named)

        setattr(dist, function, call)

    count("all_gather_into_tensor", "input_tensor")
    count("reduce_scatter_tensor", "output")
    torch.manual_seed(0)
    blocks = [torch.nn.TransformerEncoderLayer(1024, 16, 4096, dropout=0, batch_first=True) for _ in range(4)]
    model = torch.nn.Sequential(*blocks, torch.nn.Linear(1024, 1024)).cuda()
    weights = sum(p.numel() for p in model.parameters())
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for block in blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    x = torch.randn(16, 256, 1024, device="cuda")
    for step in range(-3, 20):
        with nvtx.range("step" if step >= 0 else "first steps"):
            phase = "forward" if step >= 0 else None
            with nvtx.range("forward"):
                loss = model(x).square().mean()
            phase = "backward" if step >= 0 else None
            with nvtx.range("backward"):
                loss.backward()
            phase = None
            with nvtx.range("update"):
                optimizer.step()
                optimizer.zero_grad()
                torch.cuda.synchronize()
    if rank == 0:
        for (where, function), (calls, size) in counted.items():
            print(f"FSDP {where} {function} {calls} {size}", flush=True)
        print(f"FSDP weights all 20 {weights}", flush=True)
else:
    few = sys.argv[1] == "added"  # the small ones, more often
    sizes = (128 << 10, 1 << 20, 4 << 20) if few else (128 << 10, 1 << 20, 4 << 20, 64 << 20, 512 << 20)
    data = {size: torch.zeros(size // 4, device="cuda") for size in sizes}
    begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
    for size in sizes:
        for _ in range(20):
            dist.all_reduce(data[size])
    taken = {}
    for turn in range(20 if few else 7):
        for size in sizes:
            calls = 200 if size <= 4 << 20 else 20
            for how in ("called", "queued"):
                dist.barrier()
                torch.cuda.synchronize()
                if how == "queued":
                    torch.cuda._sleep(40_000_000)  # clocks, 20 ms; to queue the calls takes 5 ms
                for _ in range(10):  # ranks come into step
                    dist.all_reduce(data[size])
                with nvtx.range(f"{how} {size}"):
                    begin.record()
                    for _ in range(calls):
                        dist.all_reduce(data[size])
                    end.record()
                torch.cuda.synchronize()
                taken.setdefault((how, size), []).append(begin.elapsed_time(end) * 1e6 / calls)
    if rank == 0:
        for (how, size), times in taken.items():
            print("RESULT", how, size, *(f"{time:.0f}" for time in times), flush=True)
dist.barrier()
dist.destroy_process_group()
