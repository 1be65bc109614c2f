# One process a GPU, gradients summed by NCCL: forward, backward and all_reduce of every step in ranges.
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
def run(rank, world):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511"); torch.cuda.set_device(rank); nvtx = torch.cuda.nvtx
    dist.init_process_group("nccl", rank=rank, world_size=world)
    model = torch.nn.Sequential(*[torch.nn.Linear(2048, 2048) for _ in range(4)]).cuda(); x = torch.randn(256, 2048, device="cuda")
    for step in range(int(os.environ.get("STEPS", "40"))):
        with nvtx.range("step"):
            with nvtx.range("forward"): loss = model(x).square().mean()
            with nvtx.range("backward"): loss.backward()
            with nvtx.range("all_reduce"):
                for p in model.parameters(): dist.all_reduce(p.grad)
            with nvtx.range("sync"): torch.cuda.synchronize()
        model.zero_grad()
    if rank == 0: print(f"RESULT loss {loss.item():.6f}", flush=True)
    dist.destroy_process_group()
if __name__ == "__main__":
    world = torch.cuda.device_count(); mp.spawn(run, args=(world,), nprocs=world)
