#!/usr/bin/env python3
"""The checks themselves: a small wrong file for every rule, and a right one."""
import json
import os
import shutil
import sys
import tempfile
import unittest

import density
import headers
import layers
import length
import losses
import names

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "tools"))
import cases  # noqa: E402

ALLOWED = layers.table("""<!-- layers -->
```
base -> nothing
model -> base
read -> base model
inject -> base
cli -> everything but inject
```
""")


def problems(path, content):
    return layers.check_file(path, content, ALLOWED)


class Layers(unittest.TestCase):
    def test_table(self):
        self.assertEqual(ALLOWED["base"], set())
        self.assertEqual(ALLOWED["cli"], {"base", "model", "read", "cli"})

    def test_allowed(self):
        self.assertEqual(problems("src/read/a.cpp", '#include "read/a.hpp"\n#include <vector>\n#include "model/x.hpp"\n'), [])

    def test_room(self):
        self.assertEqual(problems("src/base/a.cpp", '\n#include "model/x.hpp"\n'),
                         ["src/base/a.cpp:2: base may not include model (model/x.hpp)"])

    def test_strangers(self):
        text = '#include "read/native/x.hpp"\n'
        self.assertEqual(len(problems("src/read/csv/a.cpp", text)), 1)
        self.assertEqual(problems("src/read/registry.cpp", text), [])
        self.assertEqual(problems("src/read/native/b.cpp", text), [])

    def test_parts(self):
        allowed = {"analyze": set(), "analyze/tree": {"names"}, "analyze/names": set()}
        of = lambda path, content: layers.check_file(path, content, allowed)
        self.assertEqual(of("src/analyze/tree/a.cpp", '#include "analyze/names/x.hpp"\n#include "analyze/top.hpp"\n'), [])
        self.assertEqual(of("src/analyze/names/a.cpp", '#include "analyze/tree/x.hpp"\n'),
                         ["src/analyze/names/a.cpp:1: analyze/names may not include analyze/tree (analyze/tree/x.hpp)"])

    def test_losses(self):
        text = 'lose("torn_tail", 1, "x");\nsession.losses.push_back({"no_such_kind", 1, "x"});\nLoss loss("other_kind", 1);\n'
        self.assertEqual(losses.unknown("src/read/a.cpp", text, {"torn_tail"}),
                         [f"src/read/a.cpp:{line}: src/model/loss_kinds.tsv lacks the loss {name}"
                          for line, name in ((2, "no_such_kind"), (3, "other_kind"))])

    def test_parent(self):
        self.assertEqual(len(problems("src/read/csv/a.cpp", '#include "../x.hpp"\n')), 1)

    def test_unrooted(self):
        self.assertEqual(len(problems("src/read/a.cpp", '#include "a.hpp"\n')), 1)

    def test_libraries(self):
        self.assertEqual(len(problems("src/read/a.cpp", "#include <CLI/CLI.hpp>\n")), 1)
        self.assertEqual(problems("src/cli/app.cpp", "#include <CLI/CLI.hpp>\n"), [])
        self.assertEqual(len(problems("src/cli/a.cpp", "#include <CLI/CLI.hpp>\n")), 1)
        self.assertEqual(len(problems("src/inject/a.cpp", "#include <cupti.h>\n")), 1)
        self.assertEqual(problems("src/inject/cupti/a.cpp", "#include <cupti.h>\n"), [])
        self.assertEqual(len(problems("src/read/a.cpp", "#include <boost/any.hpp>\n")), 1)
        self.assertEqual(len(problems("src/read/a.cpp", "#include <regex>\n")), 1)

    def test_cmake(self):
        self.assertEqual(layers.check_cmake("rangescope_room(model ROOMS base LIBRARIES x)", ALLOWED), [])
        self.assertEqual(layers.check_cmake("rangescope_room(model ROOMS base read)", ALLOWED),
                         ["src/CMakeLists.txt: model may not link read"])


class Names(unittest.TestCase):
    HEADER = "namespace r::a {\n[[nodiscard]] double median_of(std::vector<double>& values);\n}  // namespace r::a\n"
    LOCAL = "namespace r::a {\nnamespace {\n\ndouble median_of(std::vector<double> values) {\n}\n\n}  // namespace\n"

    def test_hidden(self):
        self.assertEqual(names.hidden({"src/a/spread.hpp": self.HEADER, "src/a/clocks.cpp": self.LOCAL}),
                         ["src/a/clocks.cpp:4: median_of hides the one of src/a/spread.hpp from files that are compiled with this one"])

    def test_definitions_other_rooms_and_other_namespaces(self):
        definition = self.LOCAL.replace("namespace {\n", "namespace {\n}  // namespace\n", 1)
        self.assertEqual(names.hidden({"src/a/spread.hpp": self.HEADER, "src/a/spread.cpp": definition,
                                       "src/b/clocks.cpp": self.LOCAL, "src/a/b.cpp": self.LOCAL.replace("r::a", "r::a::b")}), [])


class Headers(unittest.TestCase):
    def closures(self, **texts):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        os.makedirs(os.path.join(folder.name, "src/a"))
        for name, text in texts.items():
            with open(os.path.join(folder.name, f"src/a/{name}.hpp"), "w", encoding="utf-8") as f:
                f.write("#pragma once\n" + text)
        return folder.name, {f"src/a/{name}.hpp": headers.Closure(folder.name, f"src/a/{name}.hpp") for name in texts}

    def test_a_header_follows_only_what_it_includes(self):
        _, closures = self.closures(
            base="#include <vector>\n",
            with_map='#include "a/base.hpp"\n#include <map>\n',
            with_set='#include "a/base.hpp"\n#include <set>\n',
            all_of_them='#include "a/with_map.hpp"\n#include "a/with_set.hpp"\n',
            same_library_headers="#include <map>\n#include <set>\n#include <vector>\n")
        self.assertEqual(headers.chains(closures), [["src/a/base.hpp", "src/a/with_map.hpp", "src/a/all_of_them.hpp"],
                                                    ["src/a/same_library_headers.hpp"], ["src/a/with_set.hpp"]])

    @unittest.skipUnless(shutil.which("c++"), "there is no compiler c++")
    def test_a_forgotten_include(self):
        """Neither another header nor a precompiled one hides it; what includes such a header is wrong with it."""
        folder, closures = self.closures(
            text="#include <string>\ninline std::string text();\n",
            texts='#include "a/text.hpp"\n#include <vector>\ninline std::vector<std::string> texts();\n',
            forgotten="#include <string>\ninline std::vector<std::string> forgotten();\n",
            nothing="inline std::string nothing();\n")
        with tempfile.TemporaryDirectory() as cache:
            compiler = headers.Compiler("c++", ["-std=c++20", f"-I{folder}/src"], cache)
            failed = headers.compile_alone(compiler, closures)
        self.assertEqual(set(failed), {"src/a/forgotten.hpp", "src/a/nothing.hpp"})
        self.assertIn("vector", failed["src/a/forgotten.hpp"])


class Length(unittest.TestCase):
    def test_limit(self):
        self.assertEqual(length.too_long("a", "\n" * length.LIMIT), [])
        self.assertEqual(len(length.too_long("a", "\n" * (length.LIMIT + 1))), 1)

    def test_lines_of_src_have_120_columns(self):
        self.assertEqual(length.too_wide("src/a.cpp", "x" * 120 + "\n"), [])
        self.assertEqual(length.too_wide("src/a.cpp", "\n" + "x" * 121), ["src/a.cpp:2: over 120 columns"])


class Density(unittest.TestCase):
    CODE = """int f(int at) {  // told by nobody
  // a ? b : c ? d : e
  const char* text = "? ?";
  int kernels = at ? 1 : 2;
  return at
             ? 1 : kernels ? 2 : 3;
}
"""
    BARS = dict(tokens_a_line=9.5, ternaries_per_1000=12, ternary_chains=0, wide_lines=0, vague_locals_percent=0.5,
                long_functions=0, idioms=0)
    TABLE = "# why\n" + "\t".join(["room", *BARS]) + "\n" + density.row("bar", BARS) + "\n"

    def limits(self, **others):
        return {**self.BARS, **others}

    def problems(self, values, limits):
        return density.problems_of({"a": self.limits(**values)}, self.BARS, {"a": self.limits(**limits)} if limits else {})

    def test_counts(self):
        counts, places = density.counts_of("src/a/x.cpp", self.CODE)
        self.assertEqual({name: counts[name] for name in ("lines", "ternaries", "ternary_chains", "idioms", "locals")},
                         {"lines": 6, "ternaries": 3, "ternary_chains": 1, "idioms": 1, "locals": 1})
        self.assertEqual(counts["tokens"], 36)
        self.assertIn(("ternary_chains", "src/a/x.cpp:5: return at ? 1 : kernels ? 2 : 3"), places)

    def test_wide_lines_and_vague_locals(self):
        counts, places = density.counts_of("src/a/x.cpp", f"int f() {{\n  int one = 1;  // {'x' * 83}\n  int known = 2;\n}}\n")
        self.assertEqual((counts["wide_lines"], counts["vague_locals"], counts["locals"]), (1, 2, 2))
        self.assertEqual([place for name, place in places if name == "vague_locals"],
                         ["src/a/x.cpp:2: one", "src/a/x.cpp:3: known"])

    @unittest.skipUnless(shutil.which("ctags"), "no ctags")
    def test_long_functions(self):
        with tempfile.TemporaryDirectory() as root:
            body = "  f();\n" * 200
            content = f"void f() {{\n  f();\n}}\nvoid g() {{\n{body}}}\n"
            with open(f"{root}/x.cpp", "w", encoding="utf-8") as file:
                file.write(content)
            self.assertEqual(density.long_functions(root, {"x.cpp": content}), [("x.cpp", 4, "g", 806)])

    def test_above_a_limit(self):
        self.assertEqual(self.problems({"wide_lines": 40}, {"wide_lines": 40}), [])
        self.assertIn("wide_lines 41, limit 40", self.problems({"wide_lines": 41}, {"wide_lines": 40})[0])
        self.assertEqual(len(self.problems({"tokens_a_line": 9.6}, {})), 1)

    def test_below_a_limit(self):
        self.assertEqual(self.problems({"wide_lines": 38, "tokens_a_line": 11.25}, {"wide_lines": 40, "tokens_a_line": 11.4}), [])
        self.assertIn("better than its limit", self.problems({"wide_lines": 37}, {"wide_lines": 40})[0])
        self.assertEqual(len(self.problems({"tokens_a_line": 11.2}, {"tokens_a_line": 11.4})), 1)
        self.assertEqual(self.problems({"tokens_a_line": 6}, {"tokens_a_line": 9.5}), [])  # the bar is low enough

    def test_a_row_of_no_room(self):
        self.assertEqual(len(density.problems_of({}, self.BARS, {"gone": self.BARS})), 1)

    def test_lowering_never_raises(self):
        table = self.TABLE + density.row("a", self.limits(wide_lines=40, idioms=3)) + "\n"
        self.assertEqual(density.lowered(table, {"a": self.limits(wide_lines=50, idioms=1)}),
                         self.TABLE + density.row("a", self.limits(wide_lines=40, idioms=1)) + "\n")
        self.assertEqual(density.lowered(table, {"a": self.BARS}), self.TABLE)
        self.assertEqual(density.lowered(table, {}), self.TABLE)


class Runs(unittest.TestCase):
    def test_the_newest_of_two_that_started_in_one_second(self):
        with tempfile.TemporaryDirectory() as runs:
            for name, started_ns in (("20261127-122300-9987-vm", 100), ("20261127-122300-10034-vm", 200)):
                os.mkdir(f"{runs}/{name}")
                with open(f"{runs}/{name}/manifest.json", "w", encoding="utf-8") as file:
                    json.dump({"start_unix_ns": started_ns}, file)
            os.symlink("20261127-122300-9987-vm", f"{runs}/latest")
            self.assertEqual(os.path.basename(cases.newest_run(runs)), "20261127-122300-10034-vm")


if __name__ == "__main__":
    unittest.main()
