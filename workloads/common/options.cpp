#include "common/options.hpp"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <utility>

namespace workload {

Options::Options(std::string program, std::string summary)
    : program_(std::move(program)), summary_(std::move(summary)) {}

void Options::number(const char* name,
                     std::int64_t* value,
                     std::int64_t least,
                     std::int64_t most,
                     const char* help) {
  options_.push_back({name, help, value, least, most, nullptr, nullptr});
}

void Options::flag(const char* name, bool* value, const char* help) {
  options_.push_back({name, help, nullptr, 0, 0, value, nullptr});
}

void Options::text(const char* name, bool* given, std::string* value, const char* help) {
  options_.push_back({name, help, nullptr, 0, 0, given, value});
}

void Options::usage(const std::string& problem) const {
  std::FILE* out = problem.empty() ? stdout : stderr;
  if (!problem.empty())
    std::fprintf(out, "%s: %s\n\n", program_.c_str(), problem.c_str());
  std::fprintf(out, "usage: %s [options]\n%s\n\n", program_.c_str(), summary_.c_str());
  for (const Option& o : options_) {
    if (o.number) {
      std::fprintf(out,
                   "  --%-12s %s (%lld)\n",
                   (o.name + " N").c_str(),
                   o.help.c_str(),
                   static_cast<long long>(*o.number));
    } else {
      std::fprintf(out,
                   "  --%-12s %s\n",
                   o.text ? (o.name + "[=F]").c_str() : o.name.c_str(),
                   o.help.c_str());
    }
  }
  std::exit(problem.empty() ? 0 : 64);
}

void Options::parse(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i], value;
    if (word == "-h" || word == "--help")
      usage("");
    bool has_value = false;
    if (const auto equals = word.find('='); equals != std::string::npos) {
      value = word.substr(equals + 1);
      word.resize(equals);
      has_value = true;
    }
    const Option* option = nullptr;
    for (const Option& o : options_) {
      if (word == "--" + o.name)
        option = &o;
    }
    if (!option)
      usage("unknown option " + word);
    if (!option->number) {
      if (has_value && !option->text)
        usage(word + " takes no value");
      *option->flag = true;
      if (has_value)
        *option->text = value;
      continue;
    }
    if (!has_value) {
      if (++i == argc)
        usage(word + " needs a number");
      value = argv[i];
    }
    char* end = nullptr;
    errno = 0;
    const long long parsed = std::strtoll(value.c_str(), &end, 10);
    if (value.empty() || *end || errno || parsed < option->least || parsed > option->most) {
      usage(word + " takes a number from " + std::to_string(option->least) + " to " +
            std::to_string(option->most) + ", not '" + value + "'");
    }
    *option->number = parsed;
  }
}

}  // namespace workload
