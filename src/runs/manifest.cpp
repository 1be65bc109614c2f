#include "runs/manifest.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <new>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/redact.hpp"
#include "base/signals.hpp"
#include "base/text.hpp"
#include "base/units.hpp"
#include "base/workers.hpp"
#include "runs/imports.hpp"
#include "runs/json_text.hpp"
#include "runs/provenance.hpp"
#include "wire/native.hpp"

namespace rangescope::runs {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kManifestFile = "manifest.json";

OrderedJson printable_list(const std::vector<std::string>& texts, const base::Redactor& redactor) {
  OrderedJson list = OrderedJson::array();
  for (const std::string& text : redactor.arguments(texts))
    list.push_back(valid_utf8(text));
  return list;
}

OrderedJson exit_of(const Manifest& manifest) {
  if (manifest.exit_code)
    return {{"code", *manifest.exit_code}};
  if (manifest.signal)
    return {{"signal", *manifest.signal}, {"signal_name", base::signal_name(*manifest.signal)}};
  return nullptr;
}

OrderedJson usage_of(const model::ProcessUsage& usage) {
  OrderedJson json = {{"user_ns", usage.user_ns}, {"system_ns", usage.system_ns}};
  json["peak_rss_bytes"] = nullptr;
  if (usage.peak_rss_bytes)
    json["peak_rss_bytes"] = *usage.peak_rss_bytes;
  if (usage.machine) {
    json["cpus"] = usage.machine->cpus;
    json["other_cpus_used"] = usage.machine->busy_with_others;
  }
  return json;
}

model::ProcessUsage usage_in(const nlohmann::json& json) {
  model::ProcessUsage usage;
  usage.user_ns = json.at("user_ns").get<double>();
  usage.system_ns = json.at("system_ns").get<double>();
  const auto peak = json.find("peak_rss_bytes");
  if (peak != json.end() && peak->is_number())
    usage.peak_rss_bytes = peak->get<double>();
  const auto cpus = json.find("cpus");
  const auto others = json.find("other_cpus_used");
  if (cpus != json.end() && others != json.end())
    usage.machine = {cpus->get<int>(), others->get<double>()};
  return usage;
}

void take_end(const nlohmann::json& json, Manifest& manifest) {
  const auto end = json.find("end_unix_ns");
  if (end != json.end() && end->is_number())
    manifest.end_unix_ns = end->get<std::int64_t>();
}

void take_exit(const nlohmann::json& json, Manifest& manifest) {
  const auto exit = json.find("exit");
  if (exit == json.end() || !exit->is_object())
    return;
  if (exit->contains("code"))
    manifest.exit_code = exit->at("code").get<int>();
  if (exit->contains("signal"))
    manifest.signal = exit->at("signal").get<int>();
}

base::Result<std::map<std::string, FileProof>> files_in(const nlohmann::json& json,
                                                        const fs::path& run) {
  std::map<std::string, FileProof> proofs;
  const auto files = json.find("files");
  if (files == json.end())
    return proofs;
  for (const auto& [path, proof] : files->items()) {
    if (!lies_in_run(path))
      return base::fail(base::Code::kBadData,
                        "names a file outside the run: " + base::printable(path),
                        (run / kManifestFile).string());
    FileProof& read = proofs[path];
    read.bytes = proof.at("bytes").get<std::uint64_t>();
    read.sha256 = proof.at("sha256").get<std::string>();
  }
  return proofs;
}

// Not part of the proof: the two files that change after it, and the lock, which goes.
bool is_proved(const fs::path& relative) {
  return relative != kManifestFile && relative != "status.json" && relative.filename() != ".lock";
}

// Whether a file is one large hole from some place on: a capture of a process that still runs
// (inject/nvtx/capture.hpp). It will change, and to hash 4 GiB of zeros takes minutes.
bool is_being_written(const fs::path& path) {
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0)
    return false;
  const off_t size = ::lseek(file, 0, SEEK_END);
  const bool hole = size > 0 && ::lseek(file, size - 1, SEEK_DATA) < 0 && errno == ENXIO;
  ::close(file);
  return hole;
}

/// How the file differs from its proof; "" where it does not.
base::Result<std::string> kind_of_difference(const fs::path& file, const FileProof& proof) {
  std::error_code error;
  const auto size = fs::file_size(file, error);
  if (error)
    return "missing";
  if (size != proof.bytes)
    return base::counted(size, "byte") + " instead of " + std::to_string(proof.bytes);
  const std::string hash = TRY(base::sha256_file(file));
  if (hash != proof.sha256)
    return "changed";
  return "";
}

base::Result<std::vector<fs::path>> files_of(const fs::path& run) {
  std::vector<fs::path> files;
  std::error_code error;
  auto walk = fs::recursive_directory_iterator(run, error);
  for (; !error && walk != fs::recursive_directory_iterator(); walk.increment(error)) {
    std::error_code ignored;
    if (walk->is_symlink(ignored) || !walk->is_regular_file(ignored))
      continue;
    const auto relative = walk->path().lexically_relative(run);
    if (is_proved(relative))
      files.push_back(relative);
  }
  if (error)
    return base::fail(base::Code::kIo, "cannot list the files: " + error.message(), run.string());
  std::ranges::sort(files);
  return files;
}

/// By the index of the file. A capture has a few large files, and the user waits: in parallel.
std::vector<base::Result<std::string>> hashes_of(const fs::path& run,
                                                 const std::vector<fs::path>& files) {
  std::vector<base::Result<std::string>> hashes(files.size());
  const auto hash_file = [&](std::size_t i) {
    const fs::path file = run / files[i];
    hashes[i] = base::sha256_file(file);
  };
  try {
    base::parallel_for(files.size(), 0, hash_file);
  } catch (const std::bad_alloc&) {  // a thread brings a heap of its own
    for (std::size_t i = 0; i < files.size(); ++i)
      hash_file(i);
  }
  return hashes;
}

}  // namespace

base::Result<void> write_manifest(const fs::path& run, const Manifest& manifest) {
  OrderedJson files = OrderedJson::object();
  for (const auto& [path, proof] : manifest.files)
    files[base::printable(path)] = {{"bytes", proof.bytes}, {"sha256", proof.sha256}};
  const base::Redactor redactor;
  OrderedJson json = {{"schema", kManifestSchema},
                      {"id", manifest.id},
                      {"tool", manifest.tool},
                      {"argv", printable_list(manifest.argv, redactor)},
                      {"arguments", printable_list(manifest.arguments, redactor)},
                      {"cwd", base::printable(redactor.text(manifest.cwd))},
                      {"start", utc_text(manifest.start_unix_ns)},
                      {"start_unix_ns", manifest.start_unix_ns},
                      {"end", nullptr},
                      {"end_unix_ns", nullptr},
                      {"exit", exit_of(manifest)},
                      {"files", std::move(files)}};
  if (manifest.end_unix_ns != 0) {
    json["end"] = utc_text(manifest.end_unix_ns);
    json["end_unix_ns"] = manifest.end_unix_ns;
  }
  if (manifest.usage)
    json["usage"] = usage_of(*manifest.usage);
  return write_json(run / kManifestFile, json);
}

base::Result<Manifest> read_manifest(const fs::path& run) {
  auto json = TRY(read_json(run / kManifestFile, kManifestSchema));
  try {
    Manifest manifest;
    manifest.id = json.at("id").get<std::string>();
    manifest.tool = json.value("tool", "");
    manifest.argv = json.value("argv", manifest.argv);
    manifest.arguments = json.value("arguments", manifest.arguments);
    manifest.cwd = json.value("cwd", "");
    manifest.start_unix_ns = json.at("start_unix_ns").get<std::int64_t>();
    take_end(json, manifest);
    take_exit(json, manifest);
    if (json.contains("usage"))
      manifest.usage = usage_in(json.at("usage"));
    manifest.files = TRY(files_in(json, run));
    return manifest;
  } catch (const nlohmann::json::exception& error) {
    return base::fail(base::Code::kBadData,
                      std::string("is not a manifest: ") + error.what(),
                      (run / kManifestFile).string());
  }
}

base::Result<std::map<std::string, FileProof>> prove_files(const fs::path& run) {
  auto files = TRY(files_of(run));
  std::erase_if(files, [&run](const fs::path& file) { return is_being_written(run / file); });
  auto hashes = hashes_of(run, files);
  std::map<std::string, FileProof> proofs;
  for (std::size_t i = 0; i < files.size(); ++i) {
    if (!hashes[i])
      return base::fail(std::move(hashes[i]));
    const fs::path& file = files[i];
    std::error_code error;
    FileProof& proof = proofs[file.string()];
    proof.bytes = fs::file_size(run / file, error);
    proof.sha256 = std::move(*hashes[i]);
  }
  return proofs;
}

std::uint64_t written_bytes(const fs::path& file) {
  std::error_code error;
  const std::uint64_t size = fs::file_size(file, error);
  if (error)
    return 0;
  if (!is_being_written(file))
    return size;
  wire::native::FileHeader header{};
  const auto head = base::read_head(file, sizeof header);
  if (!head || head->size() != sizeof header)
    return size;
  std::memcpy(&header, head->data(), sizeof header);
  return wire::native::written_bytes(header, size);
}

base::Result<std::vector<Difference>> verify(const fs::path& run) {
  auto manifest = TRY(read_manifest(run));
  if (manifest.end_unix_ns == 0) {
    return base::fail(base::Code::kBadData,
                      "the run was never finished, so there are no hashes to compare with",
                      run.string(),
                      "Read what is there: rangescope report " + base::shell_quote(run.string()));
  }
  std::vector<Difference> differences;
  for (const auto& [path, proof] : manifest.files) {
    const std::string kind = TRY(kind_of_difference(run / path, proof));
    if (!kind.empty())
      differences.push_back({path, kind});
  }
  const auto files = files_of(run);
  if (!files)
    return differences;
  for (const fs::path& file : *files) {
    const std::string name = base::printable(file.string());
    if (manifest.files.contains(name) || name.starts_with("report."))
      continue;
    if (is_being_written(run / file))
      differences.push_back({name, "still being written"});
    else
      differences.push_back({name, "not in the manifest"});
  }
  return differences;
}

model::RunInfo run_info(const fs::path& run) {
  model::RunInfo info;
  info.id = run.filename().string();
  if (const auto manifest = read_manifest(run)) {
    info.id = manifest->id;
    info.tool = manifest->tool;
    info.command = manifest->argv;
    info.cwd = manifest->cwd;
    info.start_unix_ns = manifest->start_unix_ns;
    info.exit_code = manifest->exit_code;
    info.signal = manifest->signal;
    info.usage = manifest->usage;
  }
  if (const auto imports = read_imports(run); imports && !imports->empty()) {
    // Folder and time are those of the import; what was recorded knows its own.
    info.cwd.clear();
    info.start_unix_ns = 0;
  }
  if (const auto provenance = read_provenance(run)) {
    info.environment = provenance->facts;
    for (const auto& [name, value] : provenance->variables)
      info.environment["env." + name] = value;
    if (const auto host = provenance->facts.find("host"); host != provenance->facts.end())
      info.host = host->second;
  }
  return info;
}

std::int64_t unix_now_ns() {
  return std::chrono::nanoseconds(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::string utc_text(std::int64_t unix_ns) {
  const auto seconds = static_cast<std::time_t>(unix_ns / 1'000'000'000);
  return fmt::format(
      "{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(seconds), unix_ns / 1'000'000 % 1000);
}

}  // namespace rangescope::runs
