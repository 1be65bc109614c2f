#include "base/text.hpp"
#include "cli/bind.hpp"
#include "cli/destination.hpp"
#include "profile/jobs.hpp"

namespace rangescope::cli {

void bind_destination(const Arguments& command, ReportChoice& choice) {
  const Arguments app = command.under("Report");
  app.add_option("-o,--to", choice.to, "Where it is written; - is standard output").type_name("FILE");
  app.add_flag("--raw-cells", choice.raw_cells,
               "-f csv -o FILE: no apostrophe before cells that a spreadsheet would compute");
  app.add_option("--color", choice.color, "auto: on a terminal, unless NO_COLOR is set")
      .one_of({"auto", "always", "never"});
  app.add_count("--width", choice.width, "Columns of the table; 0: no limit (the terminal's, else $COLUMNS, else 120)");
}

void bind_json(const Arguments& app, std::string& format) {
  app.under("Report").add_flag(
      "--json", [&format] { format = "json"; }, "The same as -f json");
}

void bind_report(const Arguments& command, ReportChoice& choice) {
  const Arguments app = command.under("Report");
  std::vector<std::string> formats;
  for (const auto& exporter : report::exporters()) formats.emplace_back(exporter->name());
  app.add_option("-f,--format", choice.format, "How it is written (table, or what the ending of -o says)")
      .type_name(base::join(formats, "|"));
  bind_json(app, choice.format);
  bind_destination(app, choice);
  app.when_parsed([app, &choice] {
    for (const std::string_view ending : {".pdf", ".png", ".jpg", ".svg", ".docx", ".xlsx", ".ods"})
      if (choice.to.ends_with(ending))
        refuse("--to", "nothing is written as " + std::string(ending),
               ending == ".xlsx" || ending == ".ods" ? "Write -o report.csv and open that"
                                                     : "Write -o report.html and print the page");
    if (!app.results("--format").empty() || !app.results("--json").empty()) return;
    std::size_t longest = 0;  // x.trace.json is chrome's
    for (const auto& exporter : report::exporters()) {
      const std::string_view ending = exporter->extension();
      if (ending.size() <= longest || !choice.to.ends_with("." + std::string(ending))) continue;
      longest = ending.size();
      choice.format = exporter->name();
    }
  });
  app.add_count("--depth", choice.style.depth, "Deepest level of ranges that is shown; 0: all");
  app.add_option("--sort", choice.style.sort, "Largest of this value first, within each parent: wall, gpu.busy_ns ...")
      .type_name("VALUE");
  app.add_count("--top", choice.style.top, "Only the so many largest regions, and what is above them (20)");
  app.add_flag("--all", choice.style.all, "Every region of every process by itself: nothing left out or put together");
  app.add_flag("--flat", choice.style.flat, "A list instead of a tree, what takes most time of its own first");
  app.add_flag("--per-rank", choice.style.per_rank, "Also a table of each rank of a parallel job");
  app.add_option("--columns", choice.style.columns, "Values to show, with commas between; see rangescope help columns")
      .type_name("VALUE,...")
      .delimiter(',')
      .repeated();
  app.add_count("--top-kernels", choice.style.top_kernels, "Kernels listed below the table; 0: none (5)");
  app.add_flag("--explain", choice.style.explain, "Say what each column means and why a region is bound as it is");
}

void bind_read(const Arguments& command, read::Options& options) {
  const Arguments app = command.under("Reading");
  app.add_option(
         "--rank",
         [&options](const std::string& text) {
           const auto ranks = profile::parse_ranks({text}, "--rank");
           if (!ranks) refuse("--rank", ranks.error().what, ranks.error().hint);
           options.ranks.insert(options.ranks.end(), ranks->begin(), ranks->end());
         },
         "Only these ranks of a parallel job: 7, or 0,8,16-23")
      .type_name("N,...")
      .repeated();
  app.add_option("--nsys", options.nsys_path, "nsys to export .nsys-rep, .qdrep and .qdstrm with").type_name("PATH");
  app.add_option("--number-format", options.number_format,
                 "How CSV of ncu writes numbers, where it can be read in two ways: C, en, de, fr")
      .one_of({"C", "en", "de", "fr"});
}

}  // namespace rangescope::cli
