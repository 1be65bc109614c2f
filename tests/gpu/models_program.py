"""Known models with random weights. Usage: models_program.py MODEL STEPS [forward|backward]

    llama              transformers' Llama, forward passes of 256 tokens
    llama-train        the same in training
    llama-generate     generate() with a cache that grows: prefill and STEPS decode steps
    llama-static       one token at a time with a static cache
    llama-graph        the same, captured into a CUDA graph that is replayed
    llama-compiled     generate() with a static cache, which transformers compiles
    llama-lora         training of PEFT's adapters in it
    llama-checkpoints  the same, with activations that the backward pass makes again
    bert               transformers' BERT, forward passes of a batch with padding
    resnet             timm's ResNet-50 in training
    vit                timm's ViT in training, under autocast
    fsdp               an encoder whose layers are sharded over the ranks of torchrun
    lightning          a Trainer of Lightning
    accelerate         a loop of Accelerate with its data loader

`forward`, `backward`: this program opens NVTX ranges around its modules (module_ranges.py).
"""
import sys

import torch

from module_ranges import check

MODEL, STEPS, CHECKED = sys.argv[1], int(sys.argv[2]), sys.argv[3] if len(sys.argv) > 3 else ""
torch.manual_seed(1)


def llama():
    from transformers import LlamaConfig, LlamaForCausalLM
    config = LlamaConfig(hidden_size=1024, intermediate_size=4096, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=4,
                         vocab_size=8192, max_position_embeddings=1024)
    return LlamaForCausalLM(config).cuda().to(torch.bfloat16)


def checked(model):
    if CHECKED:
        check(model, CHECKED)
    return model


def tokens(count):
    return torch.randint(0, 8192, (1, count), device="cuda")


def forward():
    model, prompt = checked(llama().eval()), tokens(256)
    with torch.inference_mode():
        for _ in range(STEPS):
            model(input_ids=prompt, use_cache=False)


def train(model, loss):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    for _ in range(STEPS):
        loss().backward()
        optimizer.step()
        optimizer.zero_grad()


def llama_train():
    model, text = checked(llama()), tokens(256)
    train(model, lambda: model(input_ids=text, labels=text, use_cache=False).loss)


def lora(checkpoints):
    from peft import LoraConfig, get_peft_model
    model, text = llama(), tokens(256)
    if checkpoints:
        model.gradient_checkpointing_enable()
        model.enable_input_require_grads()
    model = checked(get_peft_model(model, LoraConfig(r=8, target_modules=["q_proj", "v_proj"], lora_dropout=0.1)))
    train(model, lambda: model(input_ids=text, labels=text, use_cache=False).loss)


def bert():
    from transformers import BertConfig, BertModel
    model = checked(BertModel(BertConfig(num_hidden_layers=6)).cuda().half().eval())
    text, mask = tokens(8 * 128).view(8, 128), torch.ones(8, 128, dtype=torch.long, device="cuda")
    mask[:, 100:] = 0
    with torch.inference_mode():
        for _ in range(STEPS):
            model(input_ids=text, attention_mask=mask)


def generate(**options):
    model = checked(llama().eval())
    prompt = tokens(256)
    for _ in range(3 if options else 1):  # compiling, capturing and replaying are each a call's
        found = model.generate(prompt, attention_mask=torch.ones_like(prompt), min_new_tokens=STEPS, max_new_tokens=STEPS, do_sample=False,
                               pad_token_id=0, **options)
    assert found.shape[1] == 256 + STEPS


def static(replayed):
    from transformers import StaticCache
    model, length = checked(llama().eval()), 512
    cache = StaticCache(config=model.config, max_cache_len=length)
    token, position = tokens(1), torch.full((1,), 256, device="cuda")
    mask = (torch.arange(length, device="cuda") <= position)[None, None, None, :]

    def step():
        return model(input_ids=token, attention_mask=mask, position_ids=position[None], past_key_values=cache, cache_position=position,
                     use_cache=True).logits

    with torch.inference_mode():
        for _ in range(2):
            step()
        if replayed:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph):
                step()
        torch.cuda.synchronize()
        for _ in range(STEPS):
            graph.replay() if replayed else step()


def resnet():
    import timm
    model = timm.create_model("resnet50", num_classes=100).cuda()
    checked(model)
    images, labels = torch.randn(16, 3, 224, 224, device="cuda"), torch.randint(0, 100, (16,), device="cuda")
    train(model, lambda: torch.nn.functional.cross_entropy(model(images), labels))


def vit():
    import timm
    model = checked(timm.create_model("vit_small_patch16_224", num_classes=100).cuda())
    images, labels = torch.randn(16, 3, 224, 224, device="cuda"), torch.randint(0, 100, (16,), device="cuda")

    def loss():
        with torch.autocast("cuda", torch.bfloat16):
            return torch.nn.functional.cross_entropy(model(images), labels)

    train(model, loss)


def fsdp():
    import os
    from torch.distributed.fsdp import fully_shard
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    torch.distributed.init_process_group("nccl")
    model = torch.nn.Sequential(*(torch.nn.TransformerEncoderLayer(512, 8, 2048, batch_first=True, dropout=0) for _ in range(4))).cuda()
    checked(model)
    for layer in model:
        fully_shard(layer)
    fully_shard(model)
    x = torch.randn(8, 128, 512, device="cuda")
    train(model, lambda: model(x).square().mean())
    torch.distributed.destroy_process_group()


class Data(torch.utils.data.Dataset):
    def __len__(self):
        return STEPS * 32

    def __getitem__(self, i):
        return torch.full((256,), i / 1000), i % 10


def small():
    return torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10))


def lightning():
    import lightning as L

    class Classifier(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.net = small()

        def training_step(self, batch, _index):
            return torch.nn.functional.cross_entropy(self.net(batch[0]), batch[1])

        def validation_step(self, batch, _index):
            self.net(batch[0])

        def configure_optimizers(self):
            return torch.optim.AdamW(self.parameters(), lr=1e-4)

    loader = torch.utils.data.DataLoader(Data(), batch_size=32)
    trainer = L.Trainer(max_epochs=1, accelerator="gpu", devices=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
                        enable_model_summary=False, num_sanity_val_steps=0)
    trainer.fit(Classifier(), loader, loader)


def accelerate():
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = small()
    model, optimizer, loader = accelerator.prepare(model, torch.optim.AdamW(model.parameters(), lr=1e-4),
                                                   torch.utils.data.DataLoader(Data(), batch_size=32))
    for x, y in loader:
        accelerator.backward(torch.nn.functional.cross_entropy(model(x), y))
        optimizer.step()
        optimizer.zero_grad()


{"llama": forward, "llama-train": llama_train, "llama-generate": generate, "llama-static": lambda: static(False),
 "llama-graph": lambda: static(True), "llama-compiled": lambda: generate(cache_implementation="static"), "llama-lora": lambda: lora(False),
 "llama-checkpoints": lambda: lora(True), "bert": bert, "resnet": resnet, "vit": vit, "fsdp": fsdp, "lightning": lightning, "accelerate": accelerate}[MODEL]()
torch.cuda.synchronize()
print("done")
