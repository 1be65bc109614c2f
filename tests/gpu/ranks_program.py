# Two ranks or more under torchrun. `straggle`: DDP of which rank 1 sleeps 10 ms in every backward step. `bandwidth`: all_reduce of several
# sizes, timed with CUDA events as nccl-tests times them; prints bytes and nanoseconds a call. `messages`: 16 MiB there and back in a group, then
# from rank 1, 5 ms late, to rank 0, which multiplies twice as often.
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
elif sys.argv[1] == "messages":
    out, got, x = (torch.ones(16 << 18, device="cuda") for _ in range(3))
    x = x[: 2048 * 2048].reshape(2048, 2048)
    dist.barrier()
    for step in range(20):
        with nvtx.range("step"):
            with nvtx.range("compute"):
                for _ in range(20 if rank == 0 else 10):
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
else:
    for size in (128 << 10, 1 << 20, 4 << 20, 64 << 20, 512 << 20):
        data = torch.ones(size // 4, device="cuda")
        for _ in range(10):
            dist.all_reduce(data)
        torch.cuda.synchronize()
        dist.barrier()
        with nvtx.range(f"size {size}"):
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            begin.record()
            for _ in range(200):
                dist.all_reduce(data)
            end.record()
            torch.cuda.synchronize()
        if rank == 0:
            print(f"RESULT {size} {begin.elapsed_time(end) * 1e6 / 200:.0f}", flush=True)
dist.barrier()
dist.destroy_process_group()
