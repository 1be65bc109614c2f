"""Trains a small model in DistributedDataParallel, one process a GPU, for STEPS steps; rank 0 prints `ready`, and what came out at the end."""
import os
import sys

import torch
import torch.distributed as dist

rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
dist.init_process_group("nccl")
torch.manual_seed(0)
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(4)]).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
x = torch.full((64, 512), 0.01 * (rank + 1), device="cuda")
for step in range(int(sys.argv[1])):
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    torch.cuda.synchronize()
    if step == 20 and rank == 0:
        print("ready", flush=True)
if rank == 0:
    print(f"result {loss.item():.12e}", flush=True)
dist.destroy_process_group()
