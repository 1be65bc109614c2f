#include "base/redact.hpp"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cctype>
#include <filesystem>
#include <utility>

#include "base/fs.hpp"
#include "base/hash.hpp"
#include "base/text.hpp"

extern char** environ;

namespace rangescope::base {
namespace {

constexpr std::size_t kKeyBytes = 32;
constexpr std::string_view kMark = "<redacted";

// Whole words of a name, in lower case: sure by themselves, or as the last word only ("auth-mode"
// is no secret).
constexpr std::array<std::string_view, 15> kSureWords = {"password",
                                                         "passwd",
                                                         "passphrase",
                                                         "secret",
                                                         "secrets",
                                                         "apikey",
                                                         "credential",
                                                         "credentials",
                                                         "creds",
                                                         "authorization",
                                                         "bearer",
                                                         "authtoken",
                                                         "accesskey",
                                                         "privatekey",
                                                         "passcode"};
constexpr std::array<std::string_view, 10> kLastWords = {
    "token", "pass", "pwd", "auth", "cookie", "key", "pat", "sig", "signature", "dsn"};
constexpr std::array<std::string_view, 9> kVariableParts = {
    "token", "secret", "pass", "key", "credential", "auth", "cookie", "session", "private"};
// Beginnings of keys whose issuers marked them: OpenAI, GitHub, Hugging Face, AWS, Slack, GitLab,
// JSON Web Tokens, NGC, Google, npm, PyPI, Docker, Groq, Stripe, SendGrid. Weights & Biases has
// none.
constexpr std::string_view kShapes[] = {
    "sk-",   "ghp_", "gho_",  "ghs_", "ghu_", "ghr_",     "github_pat_", "hf_",      "AKIA",
    "ASIA",  "xoxb", "xoxp",  "xoxa", "xoxs", "glpat-",   "eyJ",         "nvapi-",   "AIza",
    "ya29.", "npm_", "pypi-", "gsk_", "SG.",  "sk_live_", "rk_live_",    "dckr_pat_"};
// Options whose value is name:password, in curl and its like; of a container's it is two numbers.
constexpr std::array<std::string_view, 4> kLogins = {"-u", "--user", "--proxy-user", "-U"};
/// Clients that take the password in the word of the option: -psecret.
bool takes_password(std::string_view program) {
  program.remove_prefix(program.rfind('/') + 1);
  if (program.find_first_of("._") != std::string_view::npos)
    return false;  // a program about them
  return program.starts_with("mysql") || program.starts_with("mariadb") || program == "sshpass";
}
constexpr std::string_view kPasswordHere = "-p";
constexpr std::size_t kShapeLength = 16;

std::atomic<bool> g_record_arguments{false};

std::string key_of_this_user() {
  std::string fresh(kKeyBytes, '\0');
  const auto random = [&] {
    return ::getrandom(fresh.data(), fresh.size(), 0) == static_cast<ssize_t>(fresh.size());
  };
  const std::filesystem::path folder = state_folder();
  const auto path = folder / "redaction.key";
  const auto kept = [&]() -> std::string {
    struct stat status {};
    if (folder.empty() || ::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode) ||
        status.st_uid != ::geteuid() || (status.st_mode & 077) != 0)
      return {};
    auto bytes = read_regular(path, kKeyBytes);
    if (!bytes || bytes->size() != kKeyBytes)
      return {};
    return *bytes;
  };
  if (std::string key = kept(); !key.empty())
    return key;
  if (!random())
    return std::string(kMark);  // no such kernel: the hash is then of no key
  if (folder.empty())
    return fresh;
  std::error_code ignored;
  std::filesystem::create_directories(folder, ignored);
  // Made under another name and linked into place, so that of two first runs one wins and both have
  // its key.
  std::string temporary = path.string() + ".XXXXXX";
  const int fd = ::mkostemp(temporary.data(), O_CLOEXEC);  // mode 0600
  if (fd < 0)
    return fresh;
  const bool written =
      ::write(fd, fresh.data(), fresh.size()) == static_cast<ssize_t>(fresh.size());
  ::close(fd);
  if (written)
    (void)::link(temporary.c_str(), path.c_str());
  ::unlink(temporary.c_str());
  std::string key = kept();
  if (key.empty())
    return fresh;
  return key;
}

std::string from_hex(std::string_view hex) {
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (std::size_t i = 0; i + 1 < hex.size(); i += 2)
    bytes += static_cast<char>(digit(hex[i]) * 16 + digit(hex[i + 1]));
  return bytes;
}

// RFC 2104 with SHA-256; the key is shorter than a block.
std::string hmac(std::string_view key, std::string_view text) {
  std::string inner(64, '\x36'), outer(64, '\x5c');
  for (std::size_t i = 0; i < key.size() && i < 64; ++i) {
    inner[i] = static_cast<char>(inner[i] ^ key[i]);
    outer[i] = static_cast<char>(outer[i] ^ key[i]);
  }
  return sha256(outer + from_hex(sha256(inner + std::string(text))));
}

/// Words of "dbPassword", "HF_TOKEN", "--api-key", in lower case.
std::vector<std::string> words_of(std::string_view name) {
  std::vector<std::string> words(1);
  char before = '\0';
  for (const char c : name) {
    const bool letter = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (!letter || (std::isupper(static_cast<unsigned char>(c)) &&
                    std::islower(static_cast<unsigned char>(before)))) {
      if (!words.back().empty())
        words.emplace_back();
    }
    if (letter)
      words.back() += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
    before = c;
  }
  if (words.back().empty())
    words.pop_back();
  return words;
}

template <class List>
bool holds(const List& list, std::string_view word) {
  return std::find(list.begin(), list.end(), word) != list.end();
}

bool name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-' || c == '.';
}
bool space(char c) {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}
bool quote(char c) {
  return c == '"' || c == '\'' || c == '`';
}

/// The part of an address before the host goes, and secret fields of its query. `text` begins
/// behind "://".
std::string redact_address(std::string_view text) {
  const auto slash = text.find_first_of("/?#");
  std::string_view authority = text.substr(0, slash);
  auto user_end = authority.rfind('@');
  // A password may hold a slash where somebody forgot to encode it: user:pa/ss@host. A port is a
  // number.
  if (user_end == std::string_view::npos && slash != std::string_view::npos && text[slash] == '/') {
    const auto colon = authority.find(':');
    const auto later = text.substr(0, text.find('?')).rfind('@');
    if (colon != std::string_view::npos && later != std::string_view::npos &&
        !to_uint(authority.substr(colon + 1)))
      user_end = later;
  }
  std::string out;
  if (user_end != std::string_view::npos) {
    out = redacted(text.substr(0, user_end));
    text.remove_prefix(user_end);
  }
  const auto query = text.find_first_of("?#");
  if (query == std::string_view::npos)
    return out + std::string(text);
  out += text.substr(0, query + 1);
  text.remove_prefix(query + 1);
  while (true) {
    const auto end = text.find_first_of("&;#");
    const std::string_view field = text.substr(0, end);
    const auto equals = field.find('=');
    if (equals != std::string_view::npos && secret_name(field.substr(0, equals)))
      out += std::string(field.substr(0, equals + 1)) + redacted(field.substr(equals + 1));
    else
      out += field;
    if (end == std::string_view::npos)
      return out;
    out += text[end];
    text.remove_prefix(end + 1);
  }
}

/// How much of a word is user:password before @host, in an address without a scheme: curl's and
/// git's proxies take one. A range in a domain, 'regex:a@b', is none.
std::size_t credentials(std::string_view word) {
  const auto colon = word.find(':'), at_sign = word.rfind('@');
  if (colon == std::string_view::npos || at_sign == std::string_view::npos || colon == 0 ||
      at_sign < colon + 2)
    return 0;
  if (word.substr(0, colon) == "regex" || word.substr(colon).starts_with("://"))
    return 0;
  const auto plain = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '-';
  };
  const std::string_view host = word.substr(at_sign + 1);
  const auto end =
      static_cast<std::size_t>(std::find_if_not(host.begin(), host.end(), plain) - host.begin());
  const std::string_view name = host.substr(0, end), rest = host.substr(end);
  const bool has_port =
      rest.starts_with(':') &&
      to_uint(rest.substr(1, rest.find_first_of("/,") - 1)).value_or(65536) < 65536;
  const bool ends = has_port || rest.empty() || rest.front() == '/' || rest.front() == ',';
  const bool may_be_host = has_port || name == "localhost" || name.find('.') != name.npos;
  if (!ends || name.empty() || !may_be_host)
    return 0;
  return at_sign;
}

/// A word that an issuer of keys marked as one.
bool key_shape(std::string_view word) {
  return word.size() >= kShapeLength &&
         std::any_of(std::begin(kShapes), std::end(kShapes), [&](std::string_view begin) {
           return word.starts_with(begin);
         });
}

/// "name:password" without its password; other words as they are.
std::string redact_login(std::string_view word) {
  const auto colon = word.find(':');
  if (colon == std::string_view::npos || colon == 0 || to_uint(word.substr(colon + 1)))
    return redact_text(word);
  return std::string(word.substr(0, colon + 1)) + redacted(word.substr(colon + 1));
}

}  // namespace

bool secret_variable(std::string_view name) {
  const std::string low = lower(name);
  return std::any_of(kVariableParts.begin(),
                     kVariableParts.end(),
                     [&](std::string_view part) { return low.find(part) != std::string::npos; }) ||
         low.ends_with("dsn") || (low != "pwd" && secret_name(name));
}

bool secret_name(std::string_view name) {
  const auto words = words_of(name);
  if (words.empty())
    return false;
  return holds(kLastWords, words.back()) ||
         std::any_of(words.begin(), words.end(), [](const std::string& word) {
           return holds(kSureWords, word);
         });
}

std::string redacted(std::string_view secret) {
  if (secret.empty() || secret.starts_with(kMark))
    return std::string(secret);
  static const std::string key = key_of_this_user();
  return std::string(kMark) + ':' + hmac(key, secret).substr(0, 8) + '>';
}

namespace {

/// One walk over a text, left to right: at the begin of each word it is decided what the word is.
/// O(characters).
class TextRedaction {
 public:
  explicit TextRedaction(std::string_view text) : text_(text) {}

  std::string run() {
    while (next_ < text_.size())
      take_next();
    return std::move(out_);
  }

 private:
  void take_next() {
    const std::string_view rest = text_.substr(next_);
    if (rest.starts_with(kMark))
      return take_mark();
    if (rest.starts_with("://"))
      return take_address();
    if (!name_character(text_[next_]))
      return take_separator();
    const bool begins_word = next_ == 0 || space(text_[next_ - 1]);
    if (is_client_ && begins_word && rest.starts_with(kPasswordHere))
      return take_password_option();
    take_name();
  }

  /// What was redacted before stays as it is.
  void take_mark() {
    const auto end = std::min(text_.find('>', next_), text_.size() - 1) + 1;
    out_ += text_.substr(next_, end - next_);
    next_ = end;
  }

  void take_address() {
    // One word may hold several addresses: a,b.
    std::size_t end = word_end(next_);
    if (auto scheme_end = text_.find("://", next_ + 3); scheme_end < end) {
      while (scheme_end > next_ + 3 && is_of_scheme(text_[scheme_end - 1]))
        --scheme_end;
      end = scheme_end;
    }
    out_ += "://" + redact_address(text_.substr(next_ + 3, end - next_ - 3));
    next_ = end;
  }
  static bool is_of_scheme(char c) {
    return std::isalnum(static_cast<unsigned char>(c)) || c == '+';
  }

  void take_separator() {
    const bool ends_command =
        std::string_view(";|&\n").find(text_[next_]) != std::string_view::npos;
    if (ends_command)
      is_client_ = false;
    out_ += text_[next_++];
  }

  /// -psecret
  void take_password_option() {
    std::size_t begin = next_ + kPasswordHere.size();
    const char around = skip_quote(begin);
    const std::size_t end = around == '\0' ? word_end(begin) : value_end(begin, around);
    take_value(begin, end, redacted(text_.substr(begin, end - begin)));
  }

  void take_name() {
    std::size_t end = next_;
    while (end < text_.size() && name_character(text_[end]))
      ++end;
    const std::string_view name = text_.substr(next_, end - next_);
    if (key_shape(name))
      return take_value(next_, end, redacted(name));
    const std::string_view word = text_.substr(next_, word_end(next_) - next_);
    if (const std::size_t secret = credentials(word); secret > 0)
      return take_value(next_, next_ + secret, redacted(word.substr(0, secret)));
    is_client_ = is_client_ || takes_password(name);
    out_ += name;
    next_ = end;
    const bool has_value = next_ < text_.size() && (text_[next_] == ' ' || text_[next_] == '=');
    if (holds(kLogins, name) && has_value)
      return take_login();
    const bool is_scheme = lower(name) == "bearer" || lower(name) == "basic";
    if (is_scheme || secret_name(name))
      take_value_of(name, is_scheme);
  }

  /// --user name:password
  void take_login() {
    std::size_t begin = next_ + 1;
    const char around = skip_quote(begin);
    const std::size_t end = value_end(begin, around);
    take_value(begin, end, redact_login(text_.substr(begin, end - begin)));
  }

  /// name=value, name: value, "name": "value", --name value; nothing where no value follows.
  /// `is_scheme`: "Bearer value".
  void take_value_of(std::string_view name, bool is_scheme) {
    std::size_t begin = next_;
    if (is_quote_at(begin))
      ++begin;
    const bool is_header =
        begin < text_.size() && text_[begin] == ':' && !text_.substr(begin).starts_with("://");
    const bool is_assigned = begin < text_.size() && text_[begin] == '=';
    const bool is_option = name.starts_with("--") && begin == next_;
    if (!is_header && !is_assigned && !is_option && !is_scheme)
      return;
    if (is_header || is_assigned)
      ++begin;
    while (begin < text_.size() && text_[begin] == ' ' && !is_assigned)
      ++begin;
    if (begin == next_ || (is_scheme && begin + 8 > text_.size()))
      return;
    const char around = skip_quote(begin);
    std::size_t end = value_end(begin, around);
    // Authorization: Basic dXNlcg==; the scheme alone is no secret. YAML and JSON go on behind a
    // comma or line; a header goes to the end of its line.
    if (is_header && around == '\0')
      while (end < text_.size() && text_[end] != '\n' && !quote(text_[end]))
        ++end;
    take_value(begin, end, redacted(text_.substr(begin, end - begin)));
  }

  /// What lies before the value stays as it is.
  void take_value(std::size_t begin, std::size_t end, const std::string& replacement) {
    out_ += text_.substr(next_, begin - next_);
    out_ += replacement;
    next_ = end;
  }

  [[nodiscard]] bool is_quote_at(std::size_t place) const {
    return place < text_.size() && quote(text_[place]);
  }
  /// Steps over an opening quote, and returns it; 0 where there is none.
  char skip_quote(std::size_t& place) const {
    if (!is_quote_at(place))
      return '\0';
    return text_[place++];
  }
  [[nodiscard]] std::size_t word_end(std::size_t begin) const {
    return std::min(text_.find_first_of(" \t\n\r\"'`", begin), text_.size());
  }
  /// Of a value behind a name: at its quote, if it has one, else at the end of the word.
  [[nodiscard]] std::size_t value_end(std::size_t begin, char around) const {
    if (around != '\0')
      return std::min(text_.find(around, begin), text_.size());
    return std::min(text_.find_first_of(" \t\n\r\"'`,;&)}", begin), text_.size());
  }

  std::string_view text_;
  std::size_t next_ = 0;
  bool is_client_ = false;  ///< the command at hand is one of those that take -psecret
  std::string out_;
};

}  // namespace

std::string redact_text(std::string_view text) {
  return TextRedaction(text).run();
}

void set_record_arguments(bool as_they_are) noexcept {
  g_record_arguments = as_they_are;
}

std::vector<std::string> redact_arguments(std::span<const std::string> words) {
  if (g_record_arguments)
    return {words.begin(), words.end()};
  std::vector<std::string> out;
  bool next = false, login = false, client = false;
  for (const std::string& word : words) {
    client = client || takes_password(word);
    if (client && word.starts_with(kPasswordHere) && word.size() > kPasswordHere.size()) {
      out.push_back(std::string(kPasswordHere) + redacted(word.substr(kPasswordHere.size())));
      continue;
    }
    if (std::exchange(login, holds(kLogins, word)) && !login) {
      out.push_back(redact_login(word));
      continue;
    }
    const bool option = word.starts_with('-') && word.size() > 1;
    if (std::exchange(next, false) && !option) {
      out.push_back(redacted(word));
      continue;
    }
    const auto equals = word.find('=');
    if (equals != std::string::npos && secret_name(std::string_view(word).substr(0, equals)) &&
        word.find_first_of(" \t\n'\"") > equals && word.find("://") > equals) {
      out.push_back(word.substr(0, equals + 1) +
                    redacted(std::string_view(word).substr(equals + 1)));
      continue;
    }
    next = option && equals == std::string::npos && secret_name(word);
    out.push_back(redact_text(word));
  }
  return out;
}

namespace {

std::vector<std::string>& attached_environment() {
  static std::vector<std::string> entries;
  return entries;
}

}  // namespace

void set_attached_environment(std::vector<std::string> entries) {
  attached_environment() = std::move(entries);
}

Redactor::Redactor() {
  const auto learn_entry = [this](std::string_view entry) {
    const auto equals = entry.find('=');
    if (equals != std::string_view::npos)
      learn(entry.substr(0, equals), entry.substr(equals + 1));
  };
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    learn_entry(*entry);
  for (const std::string& entry : attached_environment())
    learn_entry(entry);
}

void Redactor::learn(std::string_view name, std::string_view value) {
  constexpr std::size_t kLeast = 8;  // a shorter one occurs in ordinary words
  if (value.size() < kLeast || value.starts_with('/') || !secret_variable(name))
    return;
  values_.emplace_back(value);
  std::sort(values_.begin(), values_.end(), [](const std::string& a, const std::string& b) {
    if (a.size() != b.size())
      return a.size() > b.size();  // one that holds another goes first
    return a < b;
  });
}

std::string Redactor::known(std::string_view text) const {
  std::string out(text);
  for (const std::string& value : values_) {
    if (out.find(value) != std::string::npos)
      out = replace_all(out, value, redacted(value));
    const std::string quoted = replace_all(value, "'", "'\\''");
    if (quoted != value && out.find(quoted) != std::string::npos)
      out = replace_all(out, quoted, redacted(value));
  }
  return out;
}

std::string Redactor::text(std::string_view text) const {
  return redact_text(known(text));
}
std::string Redactor::variable(std::string_view name, std::string_view value) const {
  return secret_variable(name) ? redacted(value) : text(value);
}
std::vector<std::string> Redactor::arguments(std::span<const std::string> words) const {
  if (g_record_arguments)
    return {words.begin(), words.end()};
  std::vector<std::string> without_known;
  for (const std::string& word : words)
    without_known.push_back(known(word));
  return redact_arguments(without_known);
}

}  // namespace rangescope::base
