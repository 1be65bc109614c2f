#include "analyze/useful.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/app.hpp"
#include "cli/bind.hpp"
#include "model/range_expression.hpp"

namespace rangescope::cli {
namespace {

std::vector<std::pair<std::string, std::optional<analyze::FoldNames>>> fold_choices() {
  return {{"auto", analyze::FoldNames::kAuto},
          {"numbers", analyze::FoldNames::kNumbers},
          {"off", analyze::FoldNames::kOff}};
}

}  // namespace

void bind_analyze(const Arguments& app, analyze::Options& options) {
  const auto list = [&](const std::string& name, std::vector<std::string>& into, const std::string& type,
                        const std::string& text) {
    app.add_option(name, into, text).type_name(type).repeated().group("Regions");
  };
  list("--include", options.include, "RANGE",
       "Only these ranges and what is in them: decode, decode*, LLM@*, or ncu's grammar; may be repeated");
  list("--exclude", options.exclude, "RANGE", "Not these ranges; wins over --include");
  list("--kernel", options.kernel_include, "NAME", "Only kernels of this name, or regex:PATTERN; may be repeated");
  list("--exclude-kernel", options.kernel_exclude, "NAME", "Not these kernels; wins over --kernel");
  app.add_option(
         "--bucket-by",
         [&options](const std::string& said) {
           if (said != "payload")
             refuse("--bucket-by", "'" + base::printable(said) + "' is nothing to tell occurrences apart by",
                    "Write --bucket-by payload");
           options.by_payload = true;
         },
         "payload: occurrences with different NVTX payloads (batch size, sequence length) are regions of their own")
      .type_name("payload")
      .group("Regions");
  app.add_choice(
         "--fold-names", options.fold_names, fold_choices(),
         "auto: what PyTorch's emit_nvtx writes behind names is no part of them; numbers: 'iter 17' is 'iter #'")
      .group("Regions");
  list("--flops", options.flops, "RANGE=FLOP",
       "Useful FLOPs of an occurrence, for MFU: decode=2.1e9, step=6e9*payload, decode=transformer(params=7e9,...)");
  app.add_flag("--aggregate,!--no-aggregate", options.aggregate, "Regions over all processes").group("Regions");
  app.add_flag("--per-process,!--no-per-process", options.per_process, "Regions of each process").group("Regions");
  app.add_flag("--per-thread", options.per_thread, "Regions of each thread too").group("Regions");
  app.add_choice("--push-pop-scope", options.push_pop_scope,
                 {{"thread", analyze::PushPopScope::kThread},
                  {"process", analyze::PushPopScope::kProcess},
                  {"auto", analyze::PushPopScope::kAuto}},
                 "Which ranges a kernel belongs to that a thread without a range of its own launched")
      .group("Regions");
  app.add_choice("--domains", options.domains,
                 {{"separate", analyze::Domains::kSeparate}, {"nested", analyze::Domains::kNested}},
                 "Each domain its own tree, or one stack over all domains")
      .group("Regions");
  app.add_option("--threads", options.threads, "Workers that read and analyze; 0: as many as help")
      .type_name("N")
      .between(0, 1024)
      .group("Regions");
}

base::Result<void> normalize_expressions(analyze::Options& options) {
  if (auto useful = analyze::parse_useful(options.flops); !useful) return base::fail(std::move(useful));
  for (auto* list : {&options.include, &options.exclude}) {
    for (const std::string& written : *list) {
      auto normalized = model::normalize(written);
      if (!normalized) return base::fail(std::move(normalized));
      for (const std::string& note : normalized->notes) base::detail(base::printable(note));
    }
    auto expressions = model::normalized_expressions(*list);
    if (!expressions) return base::fail(std::move(expressions));
    *list = std::move(*expressions);
  }
  return {};
}

}  // namespace rangescope::cli
