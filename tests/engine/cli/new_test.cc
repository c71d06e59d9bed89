// tally new: the file that it writes runs, and shows what the command printed.
#include <doctest/doctest.h>

#include <string>

#include "tests/support/shell.h"

using tally::testing::has;
using tally::testing::Ran;
using tally::testing::Shell;

TEST_CASE("new: a workflow from a command, with its numbers and what it printed") {
  const Shell shell;
  shell.file("program",
             "#!/bin/sh\n"
             "echo \"started 12:30:05 on 2024-01-02\"\n"
             "echo \"Time (total): 5.5s\"\n"
             "echo \"Tokens per second:   100.5 tokens/s (mean)\"\n"
             "echo \"step 1 loss 2.5\"\n"
             "echo \"step 2 loss 2.25\"\n"
             "echo \"got=$2 and $3, it's $4\"\n");
  shell.sh("chmod +x program");
  Ran ran = shell.tally("new bench -- ./program --batch-size 4 --lr=0.5 'a $b' -q");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string text = shell.content("bench.yaml");
  CHECK_MESSAGE(has(ran.out, "\nbench.yaml:\n" + text), ran.out);
  CHECK_MESSAGE(
      has(text,
          "name: bench\n"
          "parameters:                 # more values are more points: [1, 2, 4]\n"
          "  batch_size: [4]\n"
          "  lr: [0.5]\n"
          "run: ./program --batch-size $batch_size --lr=$lr 'a $$b' -q\n"
          "# repeat: 6                 # each point six times: the median and its 95 % interval\n"
          "metrics:\n"
          "  time_total: {_: '^\\s*Time \\(total\\): $jube_pat_fp', unit: s, better: lower}\n"
          "  tokens_per_second: {_: ^\\s*Tokens per second:\\s+$jube_pat_fp, unit: tokens/s, "
          "better: higher}\n"
          "  loss: (?<![\\w.-])loss $jube_pat_fp  # the first of 2; loss_last, _min, _max, _avg "
          "are "
          "columns, too\n"
          "  got: ^\\s*got=$jube_pat_fp\n"),
      text);
  ran = shell.tally("-q run bench.yaml");
  CHECK_MESSAGE(ran.code == 0, (ran.out + ran.err));
  CHECK_MESSAGE(has(ran.out, "|          4 | 0.5 |           5.5 |                       100.5 |"),
                ran.out);
  CHECK(has(shell.content("bench_run/000000/000000_run/work/stdout"),
            "got=4 and --lr=0.5, it's a $b"));
}

TEST_CASE("new: an example without a command, and nothing that is there is lost") {
  const Shell shell;
  CHECK(shell.tally("new first").code == 0);
  Ran ran = shell.tally("-q run first.yaml");
  CHECK_MESSAGE(has(ran.out, "|    4 |  4.0 |\n"), (ran.out + ran.err));
  shell.sh("echo mine > first.yaml");
  ran = shell.tally("new first -- echo a 1");
  CHECK(ran.code == 2);
  CHECK_MESSAGE(has(ran.err, "error: 'first.yaml' is there already\n"), ran.err);
  CHECK(shell.content("first.yaml") == "mine\n");
  ran = shell.tally("new second -- sh -c 'exit 3'");
  CHECK(ran.code == 1);
  CHECK_MESSAGE(has(ran.err, "the command ended with exit code 3: no file was written\n"), ran.err);
  CHECK(!shell.exists("second.yaml"));
  CHECK(shell.tally("--no-exec new third -- touch here").code == 2);
  CHECK(!shell.exists("here"));
  CHECK(shell.tally("new a/b").code == 2);
}

TEST_CASE("new: a metric's first match is the number that it was made for") {
  const Shell shell;
  shell.file("program",
             "echo val_loss 3.0 loss 2.5\necho '| setup time = 9 | time = 3'\n"
             "echo 'null: 4'\n");
  // Without a name the workflow is called as the program.
  Ran ran = shell.tally("new -- sh program");
  CHECK_MESSAGE(ran.code == 0, ran.err);
  const std::string text = shell.content("sh.yaml");
  CHECK_MESSAGE(!has(text, "\n  time: "), text);  // the pattern would find that of the set-up
  ran = shell.tally("-q run sh.yaml");
  CHECK_MESSAGE(has(ran.out,
                    "| val_loss | loss | setup_time | null |\n"
                    "|----------|------|------------|------|\n"
                    "|      3.0 |  2.5 |        9.0 |  4.0 |\n"),
                (text + ran.out + ran.err));
}

TEST_CASE("new: words that are no name, and a command with a line break") {
  const Shell shell;
  for (const char* words : {"''", "'x y'", "a/b", "-- ", "a b", "-- ..", "'a\nb'"}) {
    CAPTURE(std::string(words));
    const Ran ran = shell.tally(std::string("new ") + words);
    CHECK(ran.code == 2);
    CHECK_MESSAGE(has(ran.err, "error: "), ran.err);
    CHECK(shell.sh("ls").out.empty());
  }
  CHECK(shell.tally("new two.yaml -- printf 'a = 1\nb = 2\n'").code == 0);
  const Ran ran = shell.tally("-q run two.yaml");
  CHECK_MESSAGE(has(ran.out, "| 1.0 | 2.0 |\n"), (shell.content("two.yaml") + ran.out + ran.err));
}
