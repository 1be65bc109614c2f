// env.json: on what machine and with what software a run was made, so that two runs can be
// compared.
//
// Nothing of the environment is stored but an allow-list of variables that change how GPU programs
// behave, and of those no value that looks like a secret. git, nvidia-smi: asked with a time limit
// of two seconds, absent where they are not there.
//
//   { "schema": "rangescope.env/1", "facts": { "host": ..., "os": ..., "kernel": ..., "cpu": ...,
//   "cpus": ...,
//     "memory": ..., "git.commit": ..., "git.dirty": "true", "gpu.0": ..., "driver": ...,
//     "python.torch": "2.11.0", "python.transformers": ... }, "variables": {...} }
#pragma once

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/result.hpp"

namespace rangescope::runs {

struct Provenance {
  std::map<std::string, std::string> facts;
  std::map<std::string, std::string> variables;
};

/// Looks at this machine; `cwd` is where git is asked. `program`: of a Python, the versions of the
/// packages that GPU programs are made of, read from its folders without starting it.
/// `environment`: not ours, but that of a process which runs already. Never fails: what cannot be
/// found is absent.
[[nodiscard]] Provenance look(const std::filesystem::path& cwd,
                              const std::vector<std::string>& program = {},
                              const std::vector<std::string>* environment = nullptr);

/// Is this variable stored?
[[nodiscard]] bool is_allowed_variable(std::string_view name);

[[nodiscard]] base::Result<void> write_provenance(const std::filesystem::path& run,
                                                  const Provenance& provenance);
[[nodiscard]] base::Result<Provenance> read_provenance(const std::filesystem::path& run);

// The data that a program reads, named in workload.inputs and workload.subset: checked before the
// run, and recorded in env.json, so that runs with different data are known to differ.

/// "input.PATH" -> what it is. A file of at most 64 MiB: its bytes and SHA-256; a larger one: bytes
/// and time. A folder: files, bytes and the SHA-256 of their names, sizes and times (at most
/// 100,000 files). kNoInput where one is not there or cannot be read. O(bytes of the small files).
[[nodiscard]] base::Result<std::map<std::string, std::string>> look_at_inputs(
    std::span<const std::string> paths, const std::filesystem::path& cwd);

}  // namespace rangescope::runs
