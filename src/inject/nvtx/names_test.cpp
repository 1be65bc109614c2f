// Names, their hashes and handles, and settings that come from two places.
#include <gtest/gtest.h>

#include <set>
#include <string>

#include "inject/nvtx/arena.hpp"
#include "inject/nvtx/handles.hpp"
#include "inject/nvtx/recording_test.hpp"
#include "inject/nvtx/setting.hpp"
#include "inject/nvtx/wide.hpp"

namespace rangescope::inject {
namespace names_test {

Name name(const std::string& text) {
  return name_of(text.data(), text.size());
}
std::string text_of(const Name& name) {
  return {name.text, name.bytes};
}

// --- names ---

TEST(InjectNames, NoTextIsTheEmptyName) {
  const Name none = name_of(nullptr, 5);
  EXPECT_EQ(none.bytes, 0u);
  EXPECT_EQ(none.text, nullptr);
  EXPECT_FALSE(none.cut);
}

TEST(InjectNames, TheHashIsOfAllBytes) {
  const std::string alphabet = "abcdefghijklmnopqrstuvwxyz";
  for (std::size_t length = 1; length <= alphabet.size(); ++length) {
    const std::string text = alphabet.substr(0, length);
    std::set<std::uint32_t> hashes = {name(text).hash};
    for (std::size_t changed = 0; changed < length; ++changed) {
      std::string other = text;
      other[changed] = 'Z';
      hashes.insert(name(other).hash);
    }
    EXPECT_EQ(hashes.size(), length + 1) << text;
  }
}

TEST(InjectNames, EqualTextsHaveEqualHashesWhereverTheyLie) {
  const std::string padded = "xyz step 12";
  EXPECT_EQ(name(padded.substr(4)).hash, name("step 12").hash);
}

TEST(InjectNames, ALongNameIsCut) {
  const std::string text(wire::native::kMaxNameBytes + 1, 'x');
  const Name cut = name(text);
  EXPECT_TRUE(cut.cut);
  EXPECT_EQ(cut.bytes, wire::native::kMaxNameBytes);
  EXPECT_FALSE(name(text.substr(1)).cut);
}

TEST(InjectNames, WideTextsBecomeUtf8) {
  EXPECT_EQ(text_of(WideName(L"step")), "step");
  EXPECT_EQ(text_of(WideName(L"\u00e4\u20ac")), "\xc3\xa4\xe2\x82\xac");
  EXPECT_EQ(text_of(WideName(L"\U0001f600")), "\xf0\x9f\x98\x80");
  EXPECT_EQ(static_cast<const Name&>(WideName(nullptr)).bytes, 0u);
}

TEST(InjectNames, WhatIsNoCharacterIsReplaced) {
  const wchar_t surrogate[] = {static_cast<wchar_t>(0xd800), L'a', 0};
  EXPECT_EQ(text_of(WideName(surrogate)),
            "\xef\xbf\xbd"
            "a");
  const wchar_t too_large[] = {static_cast<wchar_t>(0x110000), 0};
  EXPECT_EQ(text_of(WideName(too_large)), "\xef\xbf\xbd");
}

TEST(InjectNames, ALongWideTextIsWhole) {
  EXPECT_EQ(text_of(WideName(std::wstring(5000, L'x').c_str())), std::string(5000, 'x'));
}

// --- memory ---

TEST(InjectArena, MemoryIsZeroAlignedAndApart) {
  std::set<std::uintptr_t> places;
  for (const std::size_t bytes : {1u, 16u, 100u, 40'000u, 300'000u}) {
    auto* memory = static_cast<unsigned char*>(arena_allocate(bytes));
    ASSERT_NE(memory, nullptr);
    const auto place = reinterpret_cast<std::uintptr_t>(memory);
    EXPECT_EQ(place % 16, 0u);
    for (std::size_t i = 0; i < bytes; ++i)
      ASSERT_EQ(memory[i], 0);
    std::memset(memory, 0xff, bytes);
    places.insert(place);
  }
  EXPECT_EQ(places.size(), 5u);
}

// --- settings ---

TEST(InjectSettings, GivenOnesTakeThePlaceOfTheEnvironment) {
  ::setenv("RANGESCOPE_UNIT", "environment", 1);
  EXPECT_STREQ(setting("RANGESCOPE_UNIT"), "environment");
  given_settings = "OTHER=1\0RANGESCOPE_UNIT_2=two\0EMPTY=\0\0";
  EXPECT_EQ(setting("RANGESCOPE_UNIT"), nullptr);
  EXPECT_STREQ(setting("RANGESCOPE_UNIT_2"), "two");
  EXPECT_STREQ(setting("OTHER"), "1");
  EXPECT_TRUE(is_set("OTHER", "1"));
  EXPECT_FALSE(is_set("OTHER", "2"));
  EXPECT_FALSE(is_set("EMPTY", nullptr));
  EXPECT_TRUE(is_set("EMPTY", ""));
  given_settings = nullptr;
  ::unsetenv("RANGESCOPE_UNIT");
}

// --- handles: their tables are a process's own ---

using InjectHandles = testing::Recording;

TEST_F(InjectHandles, EqualNamesAreOneDomain) {
  EXPECT_EQ(in_child([] {
              const std::uint32_t first = make_domain(name("LLM"));
              const std::uint32_t other = make_domain(name("NCCL"));
              const std::uint32_t again = make_domain(name("LLM"));
              return std::to_string(first) + std::to_string(other) + std::to_string(again) + " " +
                     domain_name(other);
            }),
            "121 NCCL");
}

TEST_F(InjectHandles, AHandleThatIsNotOursIsTheDefaultDomain) {
  EXPECT_EQ(in_child([] {
              const std::uint32_t domain = make_domain(name("LLM"));
              char* handle = static_cast<char*>(domain_handle(domain));
              int elsewhere = 0;
              std::string found;
              for (const void* candidate : {static_cast<const void*>(handle),
                                            static_cast<const void*>(handle + 1),
                                            static_cast<const void*>(handle + 8),
                                            static_cast<const void*>(&elsewhere),
                                            static_cast<const void*>(nullptr)})
                found += std::to_string(domain_of(candidate));
              return found;
            }),
            "10000");
}

TEST_F(InjectHandles, TooManyDomainsAreTheDefaultOneAndCounted) {
  EXPECT_EQ(recorded([] {
              std::uint32_t last = 0;
              for (int i = 1; i < 4096; ++i)
                last = make_domain(name("domain " + std::to_string(i)));
              std::string text = std::to_string(last);
              for (int i = 0; i < 2; ++i)
                text += " " + std::to_string(make_domain(name("one more")));
              return text + " " + std::to_string(make_domain(name("domain 7")));
            }),
            "4095 0 0 7");
  EXPECT_EQ(capture().dropped(wire::native::Drop::kTooManyDomains), 2u);
}

TEST_F(InjectHandles, EqualTextsOfADomainHaveOneHandle) {
  EXPECT_EQ(in_child([]() -> std::string {
              void* const step = make_string(0, name("step"));
              if (make_string(0, name("step")) != step)
                return "another handle";
              if (make_string(1, name("step")) == step)
                return "one handle of two domains";
              if (make_string(0, name("step2")) == step)
                return "one handle of two texts";
              const Name registered = string_of(step);
              return text_of(registered) + (registered.registered ? " registered" : "");
            }),
            "step registered");
}

TEST_F(InjectHandles, AStringThatIsNotOursIsEmpty) {
  EXPECT_EQ(in_child([] {
              auto* const handle = static_cast<char*>(make_string(0, name("step")));
              int elsewhere = 0;
              std::size_t bytes = string_of(nullptr).bytes;
              bytes += string_of(handle + 1).bytes;
              bytes += string_of(handle + 4096).bytes;
              bytes += string_of(&elsewhere).bytes;
              return std::to_string(bytes);
            }),
            "0");
}

TEST_F(InjectHandles, ManyStringsKeepTheirHandles) {
  EXPECT_EQ(in_child([]() -> std::string {
              std::vector<void*> handles;
              for (int i = 0; i < 10'000; ++i)
                handles.push_back(make_string(0, name(std::to_string(i))));
              for (int i = 0; i < 10'000; ++i)
                if (text_of(string_of(handles[static_cast<std::size_t>(i)])) != std::to_string(i))
                  return "handle " + std::to_string(i);
              return "";
            }),
            "");
}

TEST_F(InjectHandles, AChainedToolHasItsOwn) {
  EXPECT_EQ(in_child([]() -> std::string {
              int theirs = 0;
              const std::uint32_t domain = make_domain(name("LLM"));
              void* const step = make_string(domain, name("step"));
              if (other_domain(domain) != nullptr || other_string(step) != nullptr)
                return "before there is one";
              set_other_domain(domain, &theirs);
              set_other_domain(0, &theirs);
              set_other_string(step, &theirs);
              if (other_domain(0) != nullptr)
                return "of the default domain";
              const bool is_kept = other_domain(domain) == &theirs && other_string(step) == &theirs;
              return is_kept ? "" : "lost";
            }),
            "");
}

}  // namespace names_test
}  // namespace rangescope::inject
