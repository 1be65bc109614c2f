# Two ranks or more under torchrun. `straggle`: DDP of which rank 1 sleeps 10 ms in every backward step. `bandwidth`: all_reduce of several
# sizes, timed with CUDA events as nccl-tests times them; prints bytes and nanoseconds a call.
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
