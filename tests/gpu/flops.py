"""`--flops auto` against PyTorch's FlopCounterMode, on decoders built from the same config.json (decoder.py).

The counter counts a causal prefill's attention as if every token attended to all of the prompt; the half that is not computed is
taken off here. All else is to be equal to the digit.
"""
import json
import os
import unittest

import gpu

BASE = {"hidden_size": 512, "num_hidden_layers": 3, "num_attention_heads": 8, "intermediate_size": 1408, "vocab_size": 4000,
        "torch_dtype": "bfloat16"}
MODELS = {"dense": {**BASE, "model_type": "llama"},
          "gqa": {**BASE, "model_type": "llama", "num_key_value_heads": 2, "head_dim": 128},
          "plain": {**BASE, "model_type": "gpt_neox"},
          "experts": {**BASE, "model_type": "mixtral", "num_local_experts": 4, "num_experts_per_tok": 2}}
PROMPT, NEW = 96, 8


class Flops(unittest.TestCase):
    def test_auto_is_what_pytorch_counts(self):
        python = gpu.need("PyTorch", gpu.python())
        gpu.time_left(120)
        for name, config in MODELS.items():
            with self.subTest(name):
                file = f"{gpu.OUT}/{name}.json"
                with open(file, "w", encoding="utf-8") as out:
                    json.dump(config, out)
                program = [python, f"{gpu.HERE}/decoder.py", file, str(PROMPT), str(NEW)]
                counted = json.loads(gpu.Done([*program, "count"]).out)
                # A decode step attends to the prompt, what was made before, and itself: (NEW + 1) / 2 more than the prompt on average.
                run = gpu.Run(f"flops-{name}", ["--flops", f"auto={file},prompt={PROMPT},new={NEW}"], program)
                self.assertEqual(run.code, 0, run.err[-400:])
                regions = gpu.regions(run.report)
                width = config["num_attention_heads"] * config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
                not_computed = 4 * width * config["num_hidden_layers"] * PROMPT * (PROMPT - 1) / 2
                wanted = {"prefill": counted["prefill"][0] - not_computed, "decode": sum(counted["decode"]) / NEW}
                for stage, flop in wanted.items():
                    use = regions[stage]["utilization"]
                    self.assertEqual(use["useful_flop"], flop, stage)
                    if use["useful"] is not None:
                        gpu.figure(f"mfu {name} {stage}", use["useful"], "", f"MBU {use.get('bandwidth')}")
                        self.assertTrue(0 < use["useful"] < 1 and 0 < use["bandwidth"] < 1, use)


if __name__ == "__main__":
    import sys
    gpu.start(sys.argv[1], sys.argv[2])
    unittest.main(argv=sys.argv[:1])
