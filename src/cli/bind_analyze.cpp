#include "analyze/counters/useful.hpp"
#include "analyze/what_if/rule.hpp"
#include "base/log.hpp"
#include "base/text.hpp"
#include "cli/bind.hpp"
#include "config/decoder.hpp"
#include "config/metric_groups.hpp"
#include "model/range_expression.hpp"
#include "profile/settings.hpp"

namespace rangescope::cli {
void bind_terms(const Arguments& app,
                const std::string& name,
                std::vector<model::RangeTerm>& into,
                std::vector<std::string>& notes) {
  app.add_option(
         name,
         [name, &into, &notes](const std::vector<std::string>& expressions) {
           into.clear();
           for (const std::string& expression : expressions) {
             auto terms = model::parse_terms(expression, &notes);
             if (!terms)
               refuse(name, terms.error().what + " " + terms.error().where, terms.error().hint);
             for (model::RangeTerm& term : *terms)
               into.push_back(std::move(term));
           }
         })
      .repeated();
}

void bind_ranges(const Arguments& app, model::RangeSelection& ranges) {
  bind_terms(app, "--include", ranges.include, ranges.notes);
  bind_terms(app, "--exclude", ranges.exclude, ranges.notes);
}

void bind_kernels(const Arguments& app, model::KernelSelection& kernels) {
  for (const auto& [name, into] :
       {std::pair{"--kernel", &kernels.include}, {"--exclude-kernel", &kernels.exclude}})
    app.add_option(name,
                   [name = std::string(name), into = into](const std::vector<std::string>& all) {
                     into->clear();
                     for (const std::string& written : all) {
                       auto pattern = model::KernelPattern::parse(written);
                       if (!pattern)
                         refuse(name, pattern.error().what, pattern.error().hint);
                       into->push_back(std::move(*pattern));
                     }
                   })
        .type_name("NAME")
        .repeated();
}

void bind_analyze(const Arguments& command, analyze::Options& options) {
  const Arguments app = command.under("Regions");
  bind_ranges(app, options.ranges);
  bind_kernels(app, options.kernels);
  bind_regions(command, options);
}

void bind_regions(const Arguments& command, analyze::Options& options) {
  const Arguments app = command.under("Regions");
  app.add_option("--bucket-by", [&options](const std::string&) { options.by_payload = true; });
  app.add_option("--device", options.device);
  app.add_option("--nest", [&options](const std::string& separator) {
    if (separator.empty())
      refuse("--nest",
             "an empty text separates no levels",
             "Write what stands between them, '::' or /, or leave --nest out");
    options.nest = separator;
  });
  using Fold = std::optional<analyze::FoldNames>;
  app.add_choice("--fold-names",
                 options.fold_names,
                 {{"auto", Fold(analyze::FoldNames::kAuto)},
                  {"numbers", Fold(analyze::FoldNames::kNumbers)},
                  {"off", Fold(analyze::FoldNames::kOff)}});
  app.add_option("--work", options.work).type_name("RANGE=N UNIT").repeated();
  app.add_option("--tokens", options.tokens).type_name("RANGE=N").repeated();
  app.add_option("--flops", options.flops).type_name("RANGE=FLOP").repeated();
  app.add_flag("--aggregate,!--no-aggregate", options.aggregate);
  app.add_flag("--per-process,!--no-per-process", options.per_process);
  app.add_flag("--per-thread", options.per_thread);
  app.add_choice("--push-pop-scope",
                 options.push_pop_scope,
                 {{"thread", analyze::PushPopScope::kThread},
                  {"process", analyze::PushPopScope::kProcess},
                  {"auto", analyze::PushPopScope::kAuto}});
  app.add_flag("--backward-with-forward", options.backward_with_forward);
  app.add_choice(
      "--domains",
      options.domains,
      {{"separate", analyze::Domains::kSeparate}, {"nested", analyze::Domains::kNested}});
  app.add_option("--threads", options.threads);
}

base::Result<void> check_analysis(analyze::Options& options) {
  TRY(config::check_device(options.device));
  auto useful_rules = TRY(config::expand_useful(options.flops));
  options.flops = std::move(useful_rules.flops);
  options.bytes = std::move(useful_rules.bytes);
  for (const std::string& note : useful_rules.notes)
    base::info(base::printable(note));
  std::move(
      useful_rules.tokens.begin(), useful_rules.tokens.end(), std::back_inserter(options.tokens));
  TRY(analyze::parse_work(options.work, options.tokens));
  TRY(analyze::parse_useful(options.flops));
  TRY(analyze::parse_what_if(options.what_if));
  TRY(profile::check_ranges(options.ranges));
  TRY(profile::check_kernels(options.kernels));
  for (const std::string& note : options.ranges.notes)
    base::detail(base::printable(note));
  return {};
}

}  // namespace rangescope::cli
