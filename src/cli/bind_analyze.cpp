#include "analyze/counters/useful.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/bind.hpp"
#include "config/decoder.hpp"
#include "config/metric_groups.hpp"
#include "model/range_expression.hpp"
#include "profile/settings.hpp"

namespace rangescope::cli {
namespace {

std::vector<std::pair<std::string, std::optional<analyze::FoldNames>>> fold_choices() {
  return {{"auto", analyze::FoldNames::kAuto},
          {"numbers", analyze::FoldNames::kNumbers},
          {"off", analyze::FoldNames::kOff}};
}

}  // namespace

void bind_terms(const Arguments& app, const std::string& name, std::vector<model::RangeTerm>& into,
                std::vector<std::string>& notes, const std::string& text) {
  app.add_option(
         name,
         [name, &into, &notes](const std::vector<std::string>& all) {
           into.clear();
           for (const std::string& written : all) {
             auto terms = model::parse_terms(written, &notes);
             if (!terms) refuse(name, terms.error().what + " " + terms.error().where, terms.error().hint);
             std::move(terms->begin(), terms->end(), std::back_inserter(into));
           }
         },
         text)
      .type_name("RANGE")
      .repeated();
}

void bind_ranges(const Arguments& app, model::RangeSelection& ranges) {
  bind_terms(app, "--include", ranges.include, ranges.notes,
             "Only these ranges and what is in them: decode, decode*, LLM@*, 'decode > layer_0', or ncu's grammar; may "
             "be repeated");
  bind_terms(app, "--exclude", ranges.exclude, ranges.notes, "Not these ranges; wins over --include");
}

void bind_kernels(const Arguments& app, model::KernelSelection& kernels) {
  const auto bind = [&](const char* name, std::vector<model::KernelPattern>& into, const std::string& text) {
    app.add_option(
           name,
           [name, &into](const std::vector<std::string>& all) {
             into.clear();
             for (const std::string& written : all) {
               auto pattern = model::KernelPattern::parse(written);
               if (!pattern) refuse(name, base::to_string(pattern.error()), pattern.error().hint);
               into.push_back(std::move(*pattern));
             }
           },
           text)
        .type_name("NAME")
        .repeated();
  };
  bind("--kernel", kernels.include, "Only kernels of this name, or regex:PATTERN; may be repeated");
  bind("--exclude-kernel", kernels.exclude, "Not these kernels; wins over --kernel");
}

void bind_analyze(const Arguments& command, analyze::Options& options) {
  const Arguments app = command.under("Regions");
  const auto list = [&](const std::string& name, std::vector<std::string>& into, const std::string& type,
                        const std::string& text) { app.add_option(name, into, text).type_name(type).repeated(); };
  bind_ranges(app, options.ranges);
  bind_kernels(app, options.kernels);
  app.add_option(
         "--bucket-by",
         [&options](const std::string& text) {
           if (text != "payload")
             refuse("--bucket-by", "'" + base::printable(text) + "' is nothing to tell occurrences apart by",
                    "Write --bucket-by payload");
           options.by_payload = true;
         },
         "payload: occurrences with different NVTX payloads (batch size, sequence length) are regions of their own")
      .type_name("payload");
  app.add_option("--device", options.device,
                 "GPU whose peaks count (h200-sxm, a file of conf/device), whatever was recorded (auto)")
      .type_name("ID");
  app.add_option("--nest", options.nest, "What separates levels within a range's name: with '::', A::A1 is A > A1")
      .type_name("SEPARATOR");
  app.add_choice(
      "--fold-names", options.fold_names, fold_choices(),
      "auto: what PyTorch's emit_nvtx writes behind names is no part of them; numbers: 'iter 17' is 'iter #'");
  list("--work", options.work, "RANGE=N UNIT",
       "What an occurrence does, in a unit of yours, for rates and joules a unit: 'decode=1 token', 'step=payload "
       "images'");
  list("--tokens", options.tokens, "RANGE=N", "--work of tokens: decode=8");
  list("--flops", options.flops, "RANGE=FLOP",
       "Useful FLOPs of an occurrence, for MFU: decode=2.1e9, step=6e9*payload, decode=transformer(params=7e9,...); "
       "auto=config.json,prompt=512,new=64: by a decoder's configuration, and MBU");
  app.add_flag("--aggregate,!--no-aggregate", options.aggregate, "Regions over all processes");
  app.add_flag("--per-process,!--no-per-process", options.per_process, "Regions of each process");
  app.add_flag("--per-thread", options.per_thread, "Regions of each thread too");
  app.add_choice("--push-pop-scope", options.push_pop_scope,
                 {{"thread", analyze::PushPopScope::kThread},
                  {"process", analyze::PushPopScope::kProcess},
                  {"auto", analyze::PushPopScope::kAuto}},
                 "Which ranges a kernel belongs to that a thread without a range of its own launched");
  app.add_flag("--backward-with-forward", options.backward_with_forward,
               "In traces of PyTorch: GPU work of the backward pass also counts for the operators of the forward pass");
  app.add_choice("--domains", options.domains,
                 {{"separate", analyze::Domains::kSeparate}, {"nested", analyze::Domains::kNested}},
                 "Each domain its own tree, or one stack over all domains");
  app.add_option("--threads", options.threads, "Workers that read and analyze; 0: one a core, up to what pays off")
      .type_name("N")
      .between(0, 1024);
}

base::Result<void> check_analysis(analyze::Options& options) {
  if (auto known = config::check_device(options.device); !known) return known;
  auto useful_rules = config::expand_useful(options.flops);
  if (!useful_rules) return base::fail(std::move(useful_rules));
  options.flops = std::move(useful_rules->flops);
  options.bytes = std::move(useful_rules->bytes);
  std::move(useful_rules->tokens.begin(), useful_rules->tokens.end(), std::back_inserter(options.tokens));
  if (auto work = analyze::parse_work(options.work, options.tokens); !work) return base::fail(std::move(work));
  if (auto useful = analyze::parse_useful(options.flops); !useful) return base::fail(std::move(useful));
  profile::warn_of_bars(options.ranges);
  for (const std::string& note : options.ranges.notes) base::detail(base::printable(note));
  return {};
}

}  // namespace rangescope::cli
