#include "report/formats/json/job.hpp"

#include <cmath>

#include "report/document/json_parts.hpp"

namespace rangescope::report {
namespace {

void rank_work(JsonWriter& json, const model::RankWork& work) {
  json.open_line_object("work");
  json.field("kernels", work.kernels);
  json.field("kernel_ns", work.kernel_ns);
  json.field("kernel_threads", work.kernel_threads);
  json.field("copied_bytes", work.copied_bytes);
  if (work.tokens > 0) json.field("tokens", work.tokens);
  json.field("kernel_pace", work.kernel_pace);
  json.field("cpu_pace", work.cpu_pace);
  json.field("cpu_ranges", work.cpu_ranges);
  json.field("slower_ranges", work.slower_ranges);
  json.field("sm_clock_hz", work.sm_clock_hz);
  json.field("clock_limited", work.clock_limited);
  json.close();
}

void messages(JsonWriter& json, const model::Report& report) {
  json.line_objects("messages", report.messages, [&](const model::PointToPoint& row) {
    optional_text(json, "communicator", row.communicator);
    json.field("library", row.library);
    json.field("from", row.from);
    json.field("to", row.to);
    json.texts("path", row.path);
    json.field("calls", row.calls);
    json.field("bytes", row.bytes);
    json.field("transfer_ns", row.transfer_ns);
    json.field("late_sender_ns", row.late_sender_ns);
    json.field("late_receiver_ns", row.late_receiver_ns);
    json.field("late_senders", row.late_senders);
    json.field("late_receivers", row.late_receivers);
    row.bytes_per_s ? json.field("bytes_per_s", *row.bytes_per_s) : json.null_field("bytes_per_s");
  });
}

}  // namespace

void write_json_job(const model::Report& report, JsonWriter& json) {
  if (report.ranks.empty()) return;
  json.line_objects("ranks", report.ranks, [&](const model::Rank& rank) {
    json.field("rank", rank.rank);
    rank.local_rank ? json.field("local_rank", *rank.local_rank) : json.null_field("local_rank");
    rank.world > 0 ? json.field("world_size", rank.world) : json.null_field("world_size");
    optional_text(json, "host", rank.host);
    optional_text(json, "device", rank.device);
    json.field("pid", rank.pid);
    optional_text(json, "run", rank.run);
    if (rank.clock_offset_ns != 0) json.field("clock_offset_ns", rank.clock_offset_ns);
    if (!rank.card.empty()) json.field("card", rank.card);
    if (rank.work.known) rank_work(json, rank.work);
  });
  json.objects("collectives", report.collectives, [&](const model::Collective& one) {
    optional_text(json, "communicator", one.communicator);
    json.field("library", one.library);
    json.field("operation", one.operation);
    json.texts("path", one.path);
    json.field("bytes", one.bytes);
    json.field("ranks", one.ranks);
    json.field("calls", one.calls);
    json.field("transfer_ns", one.transfer_ns);
    json.field("wait_ns", one.wait_ns);
    one.algorithm_bytes_per_s ? json.field("algbw_bytes_per_s", *one.algorithm_bytes_per_s)
                              : json.null_field("algbw_bytes_per_s");
    one.bus_bytes_per_s ? json.field("busbw_bytes_per_s", *one.bus_bytes_per_s) : json.null_field("busbw_bytes_per_s");
    one.hidden_share ? json.field("hidden_share", *one.hidden_share) : json.null_field("hidden_share");
    json.line_objects("by_rank", one.by_rank, [&](const model::CollectiveOfRank& rank) {
      json.field("rank", rank.rank);
      json.field("wait_ns", rank.wait_ns);
      json.field("late_ns", rank.late_ns);
      json.field("holds_up_ns", rank.holds_up_ns);
      json.field("costs_ns", rank.costs_ns);
      json.field("last", rank.last);
      json.field("time_ns", rank.time_ns);
      if (!std::isnan(rank.hidden_ns)) json.field("hidden_ns", rank.hidden_ns);
    });
  });
  messages(json, report);
}

}  // namespace rangescope::report
