#include "base/redact.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "base/text.hpp"

namespace rangescope::base {
namespace redact_test {

using Words = std::vector<std::string>;

bool anywhere(const Words& words, std::string_view secret) {
  return join(words, "\n").find(secret) != std::string::npos;
}

TEST(Redact, ArgumentsLoseTheirSecretsAndKeepTheirNames) {
  for (const Words& words :
       {Words{"--api-key=hush1"},
        Words{"--api_key", "hush1"},
        Words{"--password", "hush1"},
        Words{"--Password=hush1"},
        Words{"-H", "Authorization: Bearer hush1"},
        Words{"--header=authorization: hush1"},
        Words{"env", "HF_TOKEN=hush1"},
        Words{"db.password=hush1"},
        Words{"+workload.env.WANDB_API_KEY=hush1"},
        Words{"-H", "X-Api-Key: hush1"},
        Words{"https://user:hush1@host/x"},
        Words{"https://user:p@hush1@host/x"},
        Words{"postgres://u:p/hush1@host/db"},
        Words{"a=https://h/1?x=1", "b=https://h/2?token=hush1&y=2"},
        Words{"https://a/b,https://u:hush1@c/d"},
        Words{"https://s3/x?X-Amz-Signature=hush1"},
        Words{"sh", "-c", "curl -H 'Authorization: Bearer hush1' http://h"},
        Words{"sh", "-c", "TOKEN=hush1 ./app --secret hush1"},
        Words{"python", "-c", "f(password='hush1')"},
        Words{"{\"password\": \"hush1\", \"x\": 1}"},
        Words{"--dsn=user hush1 host"},
        Words{"--authToken", "hush1"},
        Words{"curl", "-u", "alice:hush1", "http://h"},
        Words{"--proxy-user=alice:hush1"},
        Words{"sh", "-c", "curl --user 'alice:hush1' http://h"},
        Words{"--proxy=user:hush1@host:3128"},
        Words{"-x", "user:hush1@proxy.example.org"},
        Words{"--proxy=user:p@hush1@localhost/x"},
        Words{"sh", "-c", "curl -x 'user:hush1@host:3128' h"},
        Words{"/usr/bin/mysql", "-u", "root", "-phush1", "db"},
        Words{"env", "mariadb-dump", "-phush1!$"},
        Words{"sshpass", "-phush1", "ssh", "host"},
        Words{"sh", "-c", "mysql -uroot -phush1! db && mysqladmin -p'hush1 x' stop"}}) {
    const Words out = redact_arguments(words);
    ASSERT_EQ(out.size(), words.size());
    EXPECT_FALSE(anywhere(out, "hush1")) << join(words, " ") << " -> " << join(out, " ");
    EXPECT_TRUE(anywhere(out, "<redacted:")) << join(out, " ");
    EXPECT_EQ(redact_arguments(out), out);  // once more changes nothing
  }
  const Words out = redact_arguments(
      Words{"--api-key=hush1", "https://user:hush2@host/x", "sk-abcdefghijklmnopqrst"});
  EXPECT_TRUE(out[0].starts_with("--api-key=<redacted:"));
  EXPECT_TRUE(out[1].starts_with("https://<redacted:"));
  EXPECT_TRUE(out[1].ends_with(">@host/x"));
  EXPECT_FALSE(anywhere(out, "abcdef"));
}

TEST(Redact, WhatIsNoSecretStays) {
  const Words words = {"python",
                       "train.py",
                       "mysql_bench.py",
                       "-p8080:80",
                       "--max-tokens",
                       "128",
                       "--tokenizer=gpt2",
                       "--num-key-value-heads",
                       "8",
                       "--passes=3",
                       "--author",
                       "me",
                       "--auth-mode",
                       "none",
                       "a=b",
                       "--",
                       "-k",
                       "2",
                       "https://github.com/@x/y",
                       "http://host:8080/a@b",
                       "regex:^a@b$",
                       "key_padding_mask=1",
                       "trainer.tokens=5",
                       "--keys",
                       "a,b",
                       "monkey=1",
                       "--user",
                       "1000:1000",
                       "-u",
                       "app.py",
                       "Basic"};
  EXPECT_EQ(redact_arguments(words), words);
  EXPECT_EQ(redact_text("rangescope: 3 keys: a, b"), "rangescope: 3 keys: a, b");
}

TEST(Redact, EqualSecretsAreSeenToBeEqual) {
  EXPECT_EQ(redacted("one"), redacted("one"));
  EXPECT_NE(redacted("one"), redacted("two"));
  EXPECT_EQ(redacted(""), "");
  EXPECT_EQ(redact_arguments(Words{"--password", "x"})[1],
            redact_arguments(Words{"--password=x"})[0].substr(11));
}

TEST(Redact, VariablesGoByTheirNamesInAnyCase) {
  for (const char* name :
       {"HF_TOKEN", "hf_token", "Aws_Secret_Access_Key", "DB_PASS", "SESSION_ID", "NGC_API_KEY"})
    EXPECT_TRUE(secret_variable(name)) << name;
  EXPECT_FALSE(secret_variable("OMP_NUM_THREADS"));
  EXPECT_EQ(redact_text("http://u:p@h").find("u:p"), std::string::npos);
}

TEST(Redact, TheValueOfASecretVariableIsOneEverywhere) {
  ::setenv("RANGESCOPE_TEST_TOKEN", "it's-hush-hush", 1);
  const Redactor redactor;
  ::unsetenv("RANGESCOPE_TEST_TOKEN");
  const Words out = redactor.arguments(Words{"./app", "it's-hush-hush", "--x=it's-hush-hush"});
  EXPECT_FALSE(anywhere(out, "hush-hush"));
  EXPECT_EQ(redactor.text("cmd " + shell_quote("it's-hush-hush")).find("hush-hush"),
            std::string::npos);
}

}  // namespace redact_test
}  // namespace rangescope::base
