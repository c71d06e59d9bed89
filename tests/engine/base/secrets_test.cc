#include "engine/base/secrets.h"

#include <doctest/doctest.h>

using namespace tally;

TEST_CASE("names of secrets") {
  for (const char* name :
       {"HF_TOKEN", "AWS_SECRET_ACCESS_KEY", "APIKEY", "PGPASSWORD", "db_password", "SLURM_JWT",
        "MYSQL_PWD", "SECRET", "GitHubToken", "GOOGLE_APPLICATION_CREDENTIALS", "KEY_FILE"}) {
    CAPTURE(name);
    CHECK(names_secret(name));
  }
  for (const char* name : {"", "_", "PWD", "OLDPWD", "TOKENS", "tokens_per_batch", "KEYS", "PASS",
                           "passes", "SECRETARY", "OMP_NUM_THREADS", "KEYBOARD"}) {
    CAPTURE(name);
    CHECK_FALSE(names_secret(name));
  }
}

TEST_CASE("secrets among entries and in texts") {
  CHECK(has_secret({"A=b", "HF_TOKEN=x"}));
  CHECK_FALSE(has_secret({"A=HF_TOKEN", "HF_TOKEN", "HF_TOKEN="}));
  CHECK(shows_secret("curl -H diamond", {"HF_TOKEN=diamond"}));
  CHECK_FALSE(shows_secret("curl -H diamond", {"HF_TOKEN=pearl", "HUB=diamond"}));
  CHECK_FALSE(shows_secret("1 2 3", {"SORT_KEY=1"}));
}
