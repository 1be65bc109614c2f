#!/usr/bin/env python3
"""Modules by the frames that launch, of every Python that is here. Usage: modules.py BIN_DIR LIBCUPTI LIBCUDA SOURCE_DIR

program.py and runtimes.py name each kernel like the module that launched it, as forward hooks of its own know it: every kernel must stand
under the region of that name. With the small `torch` of this folder, and with PyTorch where a Python has it.
"""
import collections
import gzip
import json
import os
import pickle
import re
import shutil
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402
import json_schema  # noqa: E402

BIN, CUPTI, CUDA, SOURCE = (os.path.abspath(path) for path in sys.argv[1:5])
HERE = os.path.dirname(os.path.abspath(__file__))
LAYER = {"attention": 1, "mlp.up": 1, "mlp.down": 1, "mlp": 1}
ONE_STEP = {"model.embed": 1, "head": 1, **{f"model.layers.{i}.{name}": n for i in range(4) for name, n in LAYER.items()}}


PYTHONS, REAL = cases.pythons()
BUILT = tempfile.TemporaryDirectory(prefix="rangescope-frames-")


def built(python):
    """The folder of frames.c for this Python, and what Python says of itself."""
    ask = "import sysconfig as s, json; print(json.dumps([s.get_paths()['include'], s.get_config_vars()], default=str))"
    include, words = json.loads(cases.run([python, "-c", ask]).stdout)
    folder = f"{BUILT.name}/{words['VERSION']}"
    if not os.path.exists(folder):
        os.mkdir(folder)
        compile_c(f"{HERE}/frames.c", f"{folder}/frames.so", "-shared", "-fPIC", f"-I{include}", f"-I{os.path.dirname(include)}")
    return folder, include, words


def compile_c(source, to, *options):
    done = cases.run(["c++" if source.endswith("pp") else "cc", "-w", *options, source, "-o", to, "-ldl", "-lpthread"])
    if done.returncode:
        raise AssertionError(done.stderr)


class Modules(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix="rangescope-modules-")
        self.env = {k: v for k, v in os.environ.items() if not k.endswith("_INJECTION64_PATH")}
        self.env.update(RANGESCOPE_CUPTI=CUPTI, STANDIN_CUDA=CUDA, RANGES=f"{SOURCE}/python")

    def tearDown(self):
        shutil.rmtree(self.folder)

    def profile(self, python, *scene, real=False, words=("--modules", "64"), options=(), expect=0, lossy=False, program=f"{HERE}/program.py"):
        env = self.env if real else {**self.env, "SMALL": f"{HERE}/small"}
        shutil.rmtree(f"{self.folder}/run", ignore_errors=True)
        done = cases.run([f"{BIN}/rangescope", "profile", "--no-project", "--cpu", "off", "--sample", "off", "--run-dir", "run",
                          *(() if real and words == ("--modules", "64") else words), "--", python, *options, program, *scene],
                         cwd=self.folder, env=env)
        self.assertEqual(done.returncode, expect, done.stderr)
        self.out = done.stdout
        if expect:
            return done.stderr
        with open(f"{self.folder}/run/report.json", encoding="utf-8") as f:
            report = json.load(f)
        with open(f"{SOURCE}/docs/formats/report.schema.json", encoding="utf-8") as f:
            self.assertEqual(json_schema.errors(report, json.load(f)), [])
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] != "info" and not lossy], [])
        return report

    def seen(self, report):
        """Kernels by the dotted path, or the type, of the innermost module that launched them."""
        seen = collections.Counter()
        for region in report["regions"]:
            seen[region["path"][-1].partition(" (")[0]] += region["gpu"]["exclusive_kernels"]
        return {name: kernels for name, kernels in seen.items() if kernels}

    def calls(self, report):
        """The same, which is what the kernels say."""
        true = {kernel["name"]: kernel["calls"] for kernel in report["kernels"] if kernel["name"] != "outside"}
        self.assertEqual(self.seen(report), true)
        return true

    def one(self, report, *names):
        return next(r for r in report["regions"] if [part.partition(" (")[0] for part in r["path"]] == list(names))

    def test_every_launch_is_in_its_module(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.profile(python, "hooks", "steps", "5")
                self.assertEqual(self.calls(report), {name: 5 * n for name, n in ONE_STEP.items()})
                for region in report["regions"]:
                    self.assertTrue(region["module"])
                    self.assertEqual(region["occurrences"], 5, region["path"])
                self.assertEqual(report["unattributed"]["kernels"], 5)
                mlp = self.one(report, "Model", "model", "model.layers.2", "model.layers.2.mlp")
                self.assertEqual(mlp["path"][-1], "model.layers.2.mlp (Mlp)")
                self.assertEqual((mlp["gpu"]["kernels"], mlp["gpu"]["kernel_ns"]), (15, 15000))

    def test_pytorch(self):
        for version, python in REAL.items():
            for hooks in ((), ("hooks",)):
                with self.subTest(version, hooks=hooks):
                    report = self.profile(python, *hooks, "steps", "5", real=True)
                    if hooks:
                        self.assertEqual(self.calls(report), {name: 5 * n for name, n in ONE_STEP.items()})
                    mlp = self.one(report, "Model", "model", "model.layers.2", "model.layers.2.mlp")
                    self.assertEqual((mlp["occurrences"], mlp["gpu"]["kernels"]), (5, 15))
                    self.assertEqual(report["unattributed"]["kernels"], 5)

    def test_the_newest_pythons_are_here(self):
        """The other cases are of all that are here."""
        cases.newest_pythons(self)

    def test_calls_in_a_row_are_told_apart(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.profile(python, "hooks", "in_a_row", "7")
                self.assertEqual({r["occurrences"] for r in report["regions"]}, {7})

    def torch_python(self, name="libtorch_python.so"):
        """The library by which PyTorch (or JAX) is known, before CUDA is initialised."""
        source = f"{self.folder}/empty.c"
        with open(source, "w") as file:
            file.write("int rangescope_stands_in;")
        self.env["TORCH_PYTHON"] = f"{self.folder}/{name}"
        compile_c(source, self.env["TORCH_PYTHON"], "-shared", "-fPIC")

    def memory(self, python, *scene, words=("--modules", "64"), **options):
        report = self.profile(python, "hooks", "memory", *scene, words=words, **options)
        return report, json.loads(self.out)

    def losses(self, report):
        return [loss["kind"] for loss in report["losses"] if loss["kind"].startswith("memory")]

    def test_memory_by_module(self):
        """PyTorch's recorder is turned on from outside: the peak to the byte, and each part of it by use and module."""
        self.torch_python()
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report, truth = self.memory(python, "6")
                memory, = report["memory"]
                self.assertEqual((memory["allocator"], memory["peak_bytes"]), ("PyTorch", truth["peak"]))
                self.assertEqual(self.losses(report), [])
                parts = collections.Counter()
                for part in memory["parts"]:
                    owner = part["owner"].split(" > ")[-1].partition(" (")[0]
                    owner = re.sub(r"step \d+", "outside", owner)  # in no module
                    is_model = part["use"] in ("parameters", "older")
                    parts["parameters" if is_model else owner] += part["bytes"]
                folded = collections.Counter()
                for owner, size in truth["by"].items():
                    folded[re.sub(r"\d", "#", owner)] += size
                self.assertEqual(parts, +folded)
                layers = self.one(report, "Model", "model")["memory"]
                self.assertEqual(layers["allocations"], 6 * (1 + 4 * 3))

    def test_weights_by_module(self):
        """PyTorch is asked once, at a call of the outermost module, which tensors each module has."""
        self.torch_python()
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report, weights = self.memory(python, "0", "weights")
                seen = collections.Counter()
                for part in report["memory"][0]["parts"]:
                    self.assertEqual(part["use"], "parameters")
                    seen[part["owner"].split(" > ")[-1].partition(" (")[0]] += part["bytes"]
                true = collections.Counter()
                for name, size in weights.items():
                    true[re.sub(r"\d", "#", name)] += size
                self.assertEqual(seen, true)

    def test_the_module_that_runs_out_of_memory(self):
        self.torch_python()
        report = self.profile("/usr/bin/python3", "hooks", "memory", "0", "run_out")
        failure = report["memory"][0]["out_of_memory"]
        owner = failure["owner"].split(" > ")
        self.assertEqual((owner[0], owner[-1]), ("Model", "model.layers.2.mlp.up (Leaf)"))
        self.assertEqual((failure["asked_bytes"], failure["free_bytes"]), (77 * 1024, 5 * 1024))
        self.assertIn("out of memory", report["verdict"][0]["text"])

    def test_lines_that_allocate(self):
        self.torch_python()
        report, truth = self.memory("/usr/bin/python3", "6", words=("--memory", "stacks", "--modules", "64"))
        owners = " ".join(part["owner"] for part in report["memory"][0]["parts"])
        self.assertRegex(owners, r"allocate \(program.py:\d+\)")
        self.assertEqual(report["memory"][0]["peak_bytes"], truth["peak"])

    def test_a_snapshot_has_no_secret(self):
        """A token in the path of the program's source, and the value of a secret variable, are redacted in the snapshot."""
        self.torch_python()
        token, word = "hf_" + "Ab1" * 9, "opensesame42"
        self.env["MY_TOKEN"] = word
        folder = os.path.join(self.folder, token, "job-" + word)
        os.makedirs(folder)
        with open(f"{HERE}/program.py", encoding="utf-8") as file, open(f"{folder}/program.py", "w", encoding="utf-8") as copy:
            copy.write(file.read())
        report, truth = self.memory("/usr/bin/python3", "6", words=("--memory", "stacks", "--modules", "64"), program=f"{folder}/program.py")
        self.assertEqual(report["memory"][0]["peak_bytes"], truth["peak"])
        self.assertRegex(" ".join(part["owner"] for part in report["memory"][0]["parts"]), r"allocate \(program.py:\d+\)")
        snapshot, = (path for path in os.listdir(f"{self.folder}/run/native") if path.endswith(".memory"))
        with open(f"{self.folder}/run/native/{snapshot}", "rb") as file:
            written = file.read()
        self.assertEqual([secret for secret in (token, word) if secret.encode() in written], [])
        paths = {frame["filename"] for event in pickle.loads(written)["device_traces"][0] for frame in event["frames"]}
        self.assertTrue(any(re.search(r"/<redacted:[0-9a-f]{8}>/job-<redacted:[0-9a-f]{8}>/program.py$", path) for path in paths), paths)
        self.assertEqual(os.stat(f"{self.folder}/run/native/{snapshot}").st_mode & 0o777, 0o600)

    def test_memory_that_is_not_recorded(self):
        self.torch_python()
        for words, expect in ((("--memory", "off"), []), ((), ["memory_not_recorded"])):
            report, _ = self.memory("/usr/bin/python3", "6", *(() if words else ("old",)), words=(*words, "--modules", "64"))
            self.assertNotIn("memory", report)
            self.assertEqual(self.losses(report), expect)

    def why_not_recorded(self, report):
        self.assertNotIn("memory", report)
        return [loss["detail"].partition(": ")[2] for loss in report["losses"] if loss["kind"] == "memory_not_recorded"]

    def test_memory_in_windows_is_refused_with_a_reason(self):
        self.torch_python()
        for window in (("--for", "30s"), ("--after", "1ms")):
            with self.subTest(window):
                report, _ = self.memory("/usr/bin/python3", "6", words=(*window, "--modules", "64"), lossy=True)
                self.assertEqual(set(self.why_not_recorded(report)), {"in windows: PyTorch's recorder has one beginning, no end"})
        report, _ = self.memory("/usr/bin/python3", "6", words=("--for", "30s", "--memory", "off", "--modules", "64"), lossy=True)
        self.assertEqual(self.why_not_recorded(report), [], "nobody asked for it")

    def test_memory_of_jax_is_refused_with_a_reason(self):
        for name in ("libjax_common.so", "xla_extension.so"):
            with self.subTest(name):
                self.torch_python(name)
                report, _ = self.memory("/usr/bin/python3", "6")
                self.assertEqual(self.why_not_recorded(report), ["JAX's allocator names no allocations"])

    def test_a_program_that_records_its_memory_keeps_its_settings(self):
        """Seven events are kept, with stacks: those are saved."""
        self.torch_python()
        report, _ = self.memory("/usr/bin/python3", "6", "own")
        self.assertLess(report["memory"][0]["allocations"], 7)

    def test_a_fork_saves_nothing(self):
        self.torch_python()
        report, truth = self.memory("/usr/bin/python3", "6", "fork")
        self.assertEqual(report["memory"][0]["peak_bytes"], truth["peak"])

    def test_a_program_that_leaves_without_pythons_exit(self):
        self.torch_python()
        report, _ = self.memory("/usr/bin/python3", "6", "leave", lossy=True)
        self.assertEqual(self.losses(report), ["memory_not_saved"])

    def test_threads_have_frames_of_their_own(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.profile(python, "threads", "40")
                self.assertEqual(self.calls(report), {name: 160 * n for name, n in ONE_STEP.items()})
                self.assertEqual(self.one(report, "Model", "model")["threads"], 4)

    def test_threads_that_end_leave_their_memory_to_the_next(self):
        report = self.profile("/usr/bin/python3", "hooks", "short_threads", "700")
        leaf = self.one(report, "Leaf")
        self.assertEqual((leaf["occurrences"], leaf["threads"], leaf["gpu"]["kernels"]), (2800, 2800, 2800))
        self.assertLess(int(self.out.split("MiB ")[1].split()[0]), 60)  # 60 KiB each would be 164

    def test_modules_stand_below_the_ranges_of_the_program(self):
        report = self.profile("/usr/bin/python3", "hooks", "ranges", "6")
        self.assertNotIn("module", self.one(report, "decode"))
        below = self.one(report, "decode", "Model", "model")
        self.assertEqual((below["occurrences"], below["gpu"]["kernels"]), (6, 6 * (sum(ONE_STEP.values()) - 1)))
        self.calls(report)

    def test_a_range_has_the_modules_that_began_inside_of_it(self):
        report = self.profile("/usr/bin/python3", "hooks", "inner_ranges", "6")
        inner = self.one(report, "inner")
        self.assertEqual((inner["occurrences"], inner["gpu"]["kernels"]), (24, 72))
        below = [r["path"] for r in report["regions"] if r["path"][0] == "inner" and len(r["path"]) > 1]
        self.assertEqual({path[1].partition(" (")[0] for path in below}, {f"model.layers.{i}.mlp" for i in range(4)})
        self.calls(report)

    def test_graphs_replay_below_the_modules_that_were_captured(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.profile(python, "hooks", "graph", "9")
                self.assertEqual(self.calls(report), {name: 9 * n for name, n in ONE_STEP.items()})

    def test_replays_of_an_h200(self):
        """tests/gpu/modules_program.py graph 3: three steps, a capture and three replays of 122 kernels each, of PyTorch 2.11."""
        done = cases.run([f"{BIN}/rangescope", "report", f"{SOURCE}/tests/golden/native-gpu/modules-graph", "-f", "json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        self.assertEqual({r["path"][0] for r in report["regions"] if r.get("module")}, {"Model"})
        model, head = self.one(report, "Model"), self.one(report, "Model", "head")
        self.assertEqual((model["occurrences"], model["gpu"]["kernels"], model["gpu"]["graph_kernels"]), (7, 6 * 122, 3 * 122))
        self.assertEqual((head["occurrences"], head["gpu"]["kernels"]), (7, 6))

    def test_backward_passes_of_an_h100(self):
        """tests/gpu/models_program.py llama-train 2 backward, and one of two ranks of modules_program.py train 2 backward.

        Their own ranges are around each function of the backward pass, named like its module.
        """
        # Gradients that the engine adds, or DistributedDataParallel copies, have no range.
        for recording, root, more in (("llama-train", "LlamaForCausalLM", 1.2), ("ddp-rank", "DistributedDataParallel", 1.6)):
            with self.subTest(recording):
                done = cases.run([f"{BIN}/rangescope", "report", f"{SOURCE}/tests/golden/native-gpu/{recording}", "-f", "json"])
                self.assertEqual(done.returncode, 0, done.stderr)
                true, seen, nccl = {}, {}, 0
                for region in json.loads(done.stdout)["regions"]:
                    if region["process"] is not None or not region["gpu"]:
                        continue
                    name, kernels = region["path"][-1].split(" (")[0], region["gpu"]["exclusive_kernels"]
                    if region["domain"] == "nn.Module" and len(region["path"]) > 1:
                        self.assertEqual(region["path"][:2], ["backward", root])
                        nccl += region["gpu"]["nccl_kernels"]
                        name = "Model" if name == "module" else name.removeprefix("module.")
                        seen[name] = seen.get(name, 0) + kernels
                    elif not region["domain"] and not region.get("module") and kernels:
                        true[name] = true.get(name, 0) + kernels
                self.assertGreater(sum(true.values()), 600)
                self.assertEqual({name for name, kernels in true.items() if seen.get(name, 0) < kernels}, set())
                self.assertLess(sum(seen.values()), more * sum(true.values()))
                self.assertEqual(nccl, 0)

    def test_what_no_module_holds_is_named_by_its_type(self):
        report = self.profile("/usr/bin/python3", "hooks", "unknown")
        self.assertEqual(self.one(report, "Model", "Mlp", "up")["gpu"]["kernels"], 1)

    def test_an_isolated_python(self):
        report = self.profile("/usr/bin/python3", "hooks", "steps", "2", options=("-S", "-I", "-E"))
        self.assertEqual(self.calls(report), {name: 2 * n for name, n in ONE_STEP.items()})

    def test_functions_that_are_chosen(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.profile(python, "hooks", "functions", "3", words=("--functions", "one step=program.*step", "--functions", "program.*run"))
                run = next(r for r in report["regions"] if r["path"][-1].endswith("run"))
                below = self.one(report, run["path"][-1], "one step", "Model", "model")
                self.assertEqual((below["occurrences"], below["gpu"]["kernels"]), (3, 3 * (sum(ONE_STEP.values()) - 1)))
                self.assertEqual(self.one(report, run["path"][-1], "one step")["occurrences"], 3)
                self.assertEqual(self.one(report, run["path"][-1], "one step")["gpu"]["exclusive_kernels"], 18)
                self.assertEqual((run["gpu"]["exclusive_kernels"], report["unattributed"]["kernels"]), (3, 1))
        report = self.profile("/usr/bin/python3", "hooks", "functions", "3", words=("--functions", "program.main.*"))
        self.one(report, *(f"main.<locals>.Engine.{name}" for name in ("run", "step", "update")))  # one pattern, each a region

    def test_phases_of_a_file(self):
        phases = f"{self.folder}/phases"
        with open(phases, "w") as file:
            file.write("# of this program\none step=program.*step\n\n  a run = program.*run\nnone=nosuch.step\n")
        report = self.profile("/usr/bin/python3", "hooks", "functions", "3", words=("--modules", "64", "--phases", phases))
        self.assertEqual(self.one(report, "a run", "one step", "Model", "model")["occurrences"], 3)
        self.assertIn("--phases 'none=nosuch.step' matched no Python function that was seen", " ".join(report["notes"]))
        for line, where in (("=program.*run", "phases:2:"), ("no phase", "phases:2:"), ("f=m.*\n" * 101, "1 too many")):
            with open(phases, "w") as file:
                file.write("#\n" + line)
            self.assertIn(where, self.profile("/usr/bin/python3", "steps", "2", words=("--phases", phases), expect=64))
        self.assertIn("no file", self.profile("/usr/bin/python3", "steps", "2", words=("--phases", "none/here"), expect=64))

    def test_prefill_and_decode_steps(self):
        """Of three generate() of five tokens each: a step is a call of the model with what is launched until the next."""
        model = sum(ONE_STEP.values())
        for version, python in PYTHONS.items():
            for form, chunks in (("old", 1), ("new", 2)):
                with self.subTest(version, form=form):
                    report = self.profile(python, "hooks", "generate", "5", "3", form)
                    prefill, decode = self.one(report, "generate", "prefill"), self.one(report, "generate", "decode step")
                    self.assertEqual((prefill["occurrences"], decode["occurrences"]), (3, 12))
                    self.assertEqual(self.one(report, "generate", "decode step", "Model")["occurrences"], 12)
                    self.assertEqual(self.one(report, "generate", "prefill", "Model")["gpu"]["kernels"], 3 * chunks * model)
                    self.assertEqual(decode["gpu"]["kernels"], 3 * (4 * model + 4 + 3))

    def test_batches_by_their_kind(self):
        """Of vLLM and SGLang, by what the batch holds; each kind comes after each other one."""
        order = "pdmpmdddp-d"
        names = {"p": "prefill", "d": "decode step", "m": "mixed batch"}
        model = sum(ONE_STEP.values())
        for version, python in PYTHONS.items():
            for engine, form in (("vllm", "made"), ("vllm", "pickled"), ("sglang", "made")):
                with self.subTest(version, engine=engine, form=form):
                    report = self.profile(python, "batches", engine, order, form)
                    other = "execute model" if engine == "vllm" else "forward" if order else ""
                    for kind, name in {**names, "-": other}.items():
                        region = self.one(report, name)
                        kernels = model + 1 if engine == "vllm" else 1 if kind == "d" else model
                        self.assertEqual(region["gpu"]["kernels"], order.count(kind) * kernels, name)
                        if engine == "vllm" or kind != "d":  # one launch a call looks like a loop
                            self.assertEqual(region["occurrences"], order.count(kind), name)
                    if engine == "vllm":
                        self.assertEqual(self.one(report, "sample tokens")["gpu"]["kernels"], len(order))

    def test_mfu_of_modules(self):
        """FLOPs of an MLP of a decode step, 2 x 3 x 64 x 128, over the 3 us of its kernels; and the verdict's line."""
        config = f"{self.folder}/config.json"
        with open(config, "w") as file:
            json.dump({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 4, "num_attention_heads": 4, "intermediate_size": 128,
                       "vocab_size": 100}, file)
        words = ("--modules", "64", "--device", "h100-sxm", "--flops", f"auto={config},prompt=8,new=5")
        report = self.profile("/usr/bin/python3", "hooks", "generate", "5", "3", "old", words=words)
        mlp = self.one(report, "generate", "decode step", "Model", "model", "model.layers.2", "model.layers.2.mlp")["utilization"]
        flop = 2 * 3 * 64 * 128
        self.assertEqual((mlp["useful_flop"], mlp["useful_bytes"]), (flop, flop))
        peak = float(mlp["formula"].split(" FLOP / (")[1].split()[0])
        self.assertAlmostEqual(mlp["useful"] / (flop / (peak * 3e-6)), 1, 2)
        self.assertIn("s busy)", mlp["formula"])
        layers = "generate > decode step > Model > model.layers.#"
        for line in report["verdict"]:  # which rows have one depends on how long the program ran besides its kernels
            if line["kind"] == "modules" and line["path"] == f"{layers}.mlp (Mlp) x4":
                self.assertRegex(line["text"], r"^61 % of the kernel time of decode step, MFU 0.002 %, MBU 0.5 %: ")
        self.assertFalse([note for note in report["notes"] if "matched no region" in note])

    def backward(self, report):
        """Kernels by the innermost module of `backward`."""
        seen = collections.Counter()
        for region in report["regions"]:
            if region["domain"] == "nn.Module" and region["path"][0] == "backward":
                seen[region["path"][-1].partition(" (")[0]] += region["gpu"]["exclusive_kernels"]
        return +seen

    def test_backward_by_sequence_numbers(self):
        report = self.profile("/usr/bin/python3", "hooks", "backward", "3")
        true = {kernel["name"][len("backward of "):]: kernel["calls"] for kernel in report["kernels"] if "backward" in kernel["name"]}
        true["backward"] = true.pop("nothing")
        self.assertEqual(self.backward(report), true)
        self.assertEqual(true["model.layers.2.mlp.up"], 3 * 2)
        path = ["backward", "Model", "model (Decoder)", "model.layers.2 (Layer)", "model.layers.2.mlp (Mlp)", "model.layers.2.mlp.up (Leaf)"]
        self.assertEqual([r["occurrences"] for r in report["regions"] if r["path"] == path or r["path"] == ["backward"]], [3, 3])
        note = next(note for note in report["notes"] if "backward" in note)
        self.assertIn("of 111 functions by sequence number", note)

    def test_compiled_code_by_the_nodes_of_its_graph(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                shutil.rmtree(f"{self.folder}/cache", ignore_errors=True)
                report = self.profile(python, "hooks", "compiled", f"{self.folder}/cache", "3")
                true = self.calls(report) if version not in ("cpython.3.9", "cpython.3.10") else {}
                if true:
                    self.assertEqual({name: calls for name, calls in true.items() if "[" in name}, {"[linear]": 3, "[linear, relu_1]": 3, "[softmax]": 6})
                compiled = [r["path"] for r in report["regions"] if r["path"][-1] == "compiled code"]
                self.assertEqual(compiled, [["Model", "head (Leaf)", "compiled code"]])

    def check_backward(self, report):
        """Every kernel is in the module that it is called like; those of the backward pass below `backward`."""
        seen = collections.Counter()
        for region in report["regions"]:
            names = [name.partition(" (")[0] for name in region["path"]]
            seen["backward of " * ("backward" in names) + names[-1]] += region["gpu"]["exclusive_kernels"]
        true = collections.Counter()
        for kernel in report["kernels"]:
            true[kernel["name"].removeprefix("second of ")] += kernel["calls"]
        self.assertEqual({name: kernels for name, kernels in seen.items() if kernels}, dict(true))

    def test_backward_by_what_autograd_says(self):
        for name, options in ("shared", ()), ("intrusive", ("-DINTRUSIVE",)):
            os.mkdir(f"{self.folder}/{name}")
            library = self.env["AUTOGRAD"] = f"{self.folder}/{name}/libtorch_cpu.so"
            compile_c(f"{HERE}/autograd.cpp", library, "-shared", "-fPIC", "-std=c++17", *options)
            for version, python in PYTHONS.items():
                with self.subTest(references=name, python=version):
                    report = self.profile(python, "hooks", "autograd", "3")
                    self.assertEqual(self.out, "wrong references 0\n")
                    self.check_backward(report)
                    path = ["backward", "Model", "model (Decoder)", "model.layers.2 (Layer)", "model.layers.2.mlp (Mlp)"]
                    self.assertEqual([(r["occurrences"], r["domain"]) for r in report["regions"] if r["path"] in (path[:1], path)], [(3, "nn.Module")] * 2)
                    note = next(note for note in report["notes"] if "backward" in note)
                    self.assertEqual(note, "backward pass by module: 50.0 % of 108 launches by sequence number, 50.0 % by the function before them, 0.0 % unknown")
        report = self.profile(PYTHONS["cpython.3.11"], "hooks", "autograd", "1", "again")
        again = {" > ".join(r["path"][4:]): r["gpu"]["kernels"] for r in report["regions"] if r["path"][3:4] == ["model.layers.2 (Layer)"]
                 and r["path"][0] == "backward" and "Layer" in r["path"]}
        layer = "model.layers.2.attention (Leaf) > Layer"
        self.assertEqual(again, {layer: 4, f"{layer} > attention (Leaf)": 1, f"{layer} > mlp (Mlp)": 3, f"{layer} > mlp (Mlp) > mlp.up (Leaf)": 1,
                                 f"{layer} > mlp (Mlp) > mlp.down (Leaf)": 1})

    def test_backward_of_pytorch(self):
        for version, python in REAL.items():
            if cases.run([python, "-c", "import torch; print(hasattr(torch._C, '_current_autograd_node'))"]).stdout != "True\n":
                continue  # before 2.1 it does not say which function it evaluates
            with self.subTest(version):
                self.check_backward(self.profile(python, "gradients", "3", real=True))

    def test_backward_of_a_trace(self):
        """Two steps of PyTorch 2.11 on an H200. The truth is looked up here, event by event."""
        path = f"{SOURCE}/tests/golden/kineto/backward.json.gz"
        done = cases.run([f"{BIN}/rangescope", "report", path, "-f", "json"])
        self.assertEqual(done.returncode, 0, done.stderr)
        with gzip.open(path, "rt") as file:
            events = [e for e in json.load(file)["traceEvents"] if e.get("ph") == "X"]
        end = lambda e: e["ts"] + e["dur"]
        around = lambda e, names: sorted((o for o in names if o["tid"] == e["tid"] and o["ts"] <= e["ts"] and end(e) <= end(o)), key=lambda o: o["ts"])
        modules = [e for e in events if e["name"].startswith("nn.Module: ")]
        functions = [e for e in events if "evaluate_function" in e["name"]]
        operators = [e for e in events if e.get("cat") == "cpu_op" and "Sequence number" in e["args"] and not around(e, functions)]
        calls = {e["args"]["correlation"]: e for e in events if e.get("cat") in ("cuda_runtime", "cuda_driver")}
        true = collections.Counter()
        for kernel in (e for e in events if e.get("cat") == "kernel"):
            inside = around(calls[kernel["args"]["correlation"]], functions)
            if not inside:
                continue
            function = inside[0]
            if "Sequence number" not in function["args"]:  # AccumulateGrad: of the one before it
                function = max((f for f in functions if f["ts"] < function["ts"] and "Sequence number" in f["args"]), key=lambda f: f["ts"])
            made = max((o for o in operators if o["args"]["Sequence number"] == function["args"]["Sequence number"] and o["ts"] < function["ts"]),
                       key=lambda o: o["ts"])
            chain = around(made, modules)
            true[chain[-1]["name"][len("nn.Module: "):] if chain else "backward"] += 1
        self.assertGreater(len(true), 8)
        report = json.loads(done.stdout)
        self.assertEqual(self.backward(report), true)
        backward = next(r for r in report["regions"] if r["path"] == ["backward"])
        self.assertEqual((backward["domain"], backward["occurrences"]), ("nn.Module", 2))  # a pass, from its first to its last function

    def test_phases_of_pytorch(self):
        for version, python in REAL.items():
            with self.subTest(version):
                report = self.profile(python, "train", "4", real=True)
                for phase in ("backward", "optimizer step"):
                    self.assertEqual(self.one(report, phase)["occurrences"], 4)
                self.assertEqual(self.one(report, "Model")["occurrences"], 4)
                report = self.profile(python, "train", "1", real=True, words=("--phases", "off"))
                self.assertEqual({r["path"][0] for r in report["regions"]}, {"Model"})

    def both(self, python, *command, lossy=False):
        """The report of a program of ours, which ends and says as it does without rangescope."""
        env = {**self.env, "SMALL": f"{HERE}/small", "FRAMES": built(python)[0]}
        alone = cases.run(command, env=env, cwd=self.folder)
        self.assertEqual(alone.returncode, 3, alone.stderr)
        shutil.rmtree(f"{self.folder}/run", ignore_errors=True)
        done = cases.run([f"{BIN}/rangescope", "profile", "--no-project", "--cpu", "off", "--sample", "off", "--run-dir", "run",
                          "--modules", "64", "--", *command], cwd=self.folder, env=env)
        self.assertEqual(done.returncode, 3, done.stderr)
        results = [[line for line in out.splitlines() if line.startswith("results")] for out in (alone.stdout, done.stdout)]
        self.assertEqual(*results)
        self.assertTrue(results[0])
        with open(f"{self.folder}/run/report.json", encoding="utf-8") as f:
            report = json.load(f)
        self.assertEqual([loss for loss in report["losses"] if loss["severity"] != "info" and not lossy], [])
        return report

    def scene(self, python, *words, **options):
        return self.both(python, python, f"{HERE}/runtimes.py", *words, **options)

    def test_evaluators_of_frames_are_replaced(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                self.assertEqual(self.calls(self.scene(python, "evaluator", "4")), {name: 8 * n for name, n in ONE_STEP.items()})

    def test_tracers_and_profilers_of_python(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                steps = 6 if int(version.split(".")[2]) >= 12 else 5
                self.assertEqual(self.calls(self.scene(python, "tracer", "2")), {name: steps * n for name, n in ONE_STEP.items()})

    def test_generators_and_coroutines(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                true = self.calls(self.scene(python, "coroutines", "3"))
                self.assertEqual((true["Waits"], true["head"], true["by"]), (24, 30, 6))  # in a loop's tasks, in tasks, in send()

    def test_greenlets(self):
        """Switched at each launch, so calls of one thread's modules overlap; some end inside of them."""
        true = self.calls(self.scene("/usr/bin/python3", "greenlets", "5"))
        self.assertEqual((true["Inside"], true["model.embed"], true["head"]), (1, 16, 10))  # 16 begin, 6 are thrown away

    def test_sub_interpreters(self):
        """Nine models of three interpreters, two models of the main one. Before 3.12 a thread shows the main one's frames."""
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.scene(python, "interpreters", "2")
                if int(version.split(".")[2]) >= 12:
                    self.assertEqual(self.calls(report), {"Outer": 1, **{name: 11 * n for name, n in ONE_STEP.items()}})
                else:
                    self.assertEqual(self.seen(report), {"Outer": 1 + 6 * sum(ONE_STEP.values()), **{name: 2 * n for name, n in ONE_STEP.items()}})
                    self.assertEqual(report["unattributed"]["kernels"], 3 * sum(ONE_STEP.values()))

    def test_thread_states_that_die(self):
        last = {"attention": 3, "mlp": 3, "mlp.up": 3, "mlp.down": 3}  # of layers.1, alone
        for version, python in PYTHONS.items():
            with self.subTest(version):
                self.assertEqual(self.calls(self.scene(python, "threads", "3")), {**last, **{name: 15 * n for name, n in ONE_STEP.items()}})

    def test_modules_that_get_other_names(self):
        """As where a model lies that has died: a second later the names are those of now."""
        true = self.calls(self.scene("/usr/bin/python3", "renamed", "5"))
        self.assertEqual(true, {"Row": 2, "Renamed": 1, **{f"{letter}{i}": 1 for letter in "abc" for i in range(5)}})

    def test_daemon_threads_at_the_end_of_python(self):
        """It frees their thread states while they launch from C; each page of these cannot be read from then on."""
        for version, python in PYTHONS.items():
            with self.subTest(version):
                report = self.scene(python, "daemons", "4", lossy=True)
                self.assertGreaterEqual(self.one(report, "Model", "head")["gpu"]["exclusive_kernels"], 4 * 3)
                self.assertEqual(len(report["regions"]), 2)
                self.assertGreater(report["unattributed"]["kernels"], 0)

    def test_code_of_cython(self):
        python = "/usr/bin/python3"
        folder, include, _ = built(python)
        done = cases.run(["cython3", "-3", f"{HERE}/through.pyx", "-o", f"{folder}/through.c"])
        self.assertEqual(done.returncode, 0, done.stderr)
        compile_c(f"{folder}/through.c", f"{folder}/through.so", "-shared", "-fPIC", f"-I{include}")
        true = self.calls(self.scene(python, "compiled", "3"))
        self.assertEqual(true, {"Compiled": 5, **{f"inner.{name}": 10 * n for name, n in ONE_STEP.items()}})

    def test_python_as_a_library(self):
        """Two lives of the interpreter, then it is unloaded; launches between and after."""
        compile_c(f"{HERE}/frames.c", f"{BUILT.name}/program", "-DPROGRAM")
        for version, python in PYTHONS.items():
            words = built(python)[2]
            own = f"{words['base']}/lib/{words.get('MULTIARCH')}"
            folders = words["LIBDIR"], f"{words['LIBDIR']}/{words.get('MULTIARCH')}", own
            libraries = [path for path in (f"{folder}/{words['INSTSONAME']}" for folder in folders) if os.path.exists(path)]
            self.assertTrue(libraries or python != "/usr/bin/python3", words["INSTSONAME"])
            loader = f"{own}/ld-linux-x86-64.so.2"  # of one with a libc of its own
            before = ("env", f"PYTHONHOME={words['base']}", loader, "--library-path", own) if python.startswith(cases.FETCHED) else ()
            for names in ("global", "local") if libraries else ():
                with self.subTest(version, names=names):
                    report = self.both(python, *before, f"{BUILT.name}/program", libraries[0], names, "2", f"{HERE}/embedded.py")
                    self.assertEqual(self.calls(report), {name: 8 for name in ("Model", "layers.0", "layers.1", "layers.2")})
                    self.assertEqual(report["unattributed"]["kernels"], 3)

    def test_launches_when_python_has_ended(self):
        for version, python in PYTHONS.items():
            with self.subTest(version):
                self.calls(self.profile(python, "hooks", "at_exit"))

    def test_levels_and_off(self):
        report = self.profile("/usr/bin/python3", "hooks", "steps", "2", words=("--modules", "2"))
        self.assertEqual([r["path"][-1] for r in report["regions"]], ["Model", "model (Decoder)", "head (Leaf)"])
        self.assertEqual(report["regions"][1]["gpu"]["kernels"], 2 * (sum(ONE_STEP.values()) - 1))
        for words in (("--modules", "off"), ()):  # by itself only where PyTorch is
            report = self.profile("/usr/bin/python3", "hooks", "steps", "2", words=words)
            self.assertEqual([r["path"][-1] for r in report["regions"]], ["program"])
        self.assertIn("--modules: 'some'", self.profile("/usr/bin/python3", "steps", "2", words=("--modules", "some"), expect=64))


if __name__ == "__main__":
    cases.main()
