// Secrets out of what rangescope writes: arguments, environment, addresses.
//
//   --api-key=x  --password x  -H "Authorization: Bearer x"  HF_TOKEN=x
//   https://user:x@host/?token=x  hf_abcdef...
//
// A secret becomes <redacted:1f2e3d4c>. The eight digits are of an HMAC-SHA256 under a key of this
// user
// ($XDG_STATE_HOME/rangescope/redaction.key, made when first needed, mode 0600): equal secrets are
// seen to be equal in all runs of one user, and words can be tried against them only with the key.
// Where the key cannot be kept, it lasts for this process.
//
// It goes by names and shapes. A secret without either (a word alone on the command line) is found
// only where it is also the value of an environment variable whose name says so. Redacting is
// idempotent.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace rangescope::base {

/// True for names of variables whose values are secrets: TOKEN, SECRET, PASS, KEY, AUTH ... in any
/// case, anywhere in it.
[[nodiscard]] bool secret_variable(std::string_view name);
/// True for names of options and fields: --api-key, db.password, X-Auth-Token. Goes by words:
/// max-tokens, tokenizer and num-key-value-heads are none.
[[nodiscard]] bool secret_name(std::string_view name);

/// "<redacted:1f2e3d4c>"; "" stays empty, and what is redacted stays as it is.
[[nodiscard]] std::string redacted(std::string_view secret);

/// Every secret that names and shapes give away, in a text of any kind: a shell line, a header, an
/// address.
[[nodiscard]] std::string redact_text(std::string_view text);
/// The same words, the word behind `--password` and its like among them.
[[nodiscard]] std::vector<std::string> redact_arguments(std::span<const std::string> words);

/// `--record-args`: from now on arguments are written as they are, in this whole process (as
/// base::set_log_level is of the whole process: what is written is the user's one decision, and
/// every room writes). Variables stay redacted.
void set_record_arguments(bool as_they_are) noexcept;

/// The environment of a process that is attached to: from now on every Redactor knows its secrets,
/// in this whole process, for the same reason.
void set_attached_environment(std::vector<std::string> entries);

/// Knows values that are secret wherever they stand: those of this process's secret variables
/// (eight characters or more, no path), of the process that is attached to, and those that learn()
/// gives it.
class Redactor {
 public:
  Redactor();
  void learn(std::string_view name, std::string_view value);  ///< a variable of the program
  [[nodiscard]] std::string text(std::string_view text) const;
  [[nodiscard]] std::string variable(std::string_view name, std::string_view value) const;
  [[nodiscard]] std::vector<std::string> arguments(std::span<const std::string> words) const;

 private:
  [[nodiscard]] std::string known(std::string_view text) const;
  std::vector<std::string> values_;
};

}  // namespace rangescope::base
